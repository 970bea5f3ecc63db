// Screenshots of the built page: node screenshots.mjs FOLDER. Every panel, light and dark, desktop and phone.
import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { open } from "./tests/browser/chromium.mjs";

const [folder = "screenshots", only, full = "full"] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const page = pathToFileURL(new URL("dist/index.html", import.meta.url).pathname).href;
const views = { desk: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };
const { browser, close } = await open();
try {
  for (const [view, viewport] of Object.entries(views)) {
    for (const scheme of ["light", "dark"]) {
      const tab = await browser.newPage();
      await tab.setViewportSize(viewport);
      await tab.emulateMedia({ colorScheme: scheme });
      for (const panel of ["scan", "drift", "learn", "certificate", "compare"]) {
        if (only && only !== panel) continue;
        await tab.goto("about:blank");
        await tab.goto(`${page}#${panel}`);
        if (panel === "scan") await tab.getByLabel("Round").fill("5");
        if (panel === "learn") {
          await tab.getByRole("button", { name: "Train" }).click();
          await tab.waitForSelector("#panel-learn .status.good, #panel-learn .status.bad", { timeout: 120_000 });
        }
        if (panel === "certificate") {
          await tab.getByRole("button", { name: "Example: S3" }).click();
          await tab.getByRole("button", { name: "read (0 1)" }).click();
          await tab.getByRole("button", { name: "read (1 2)" }).click();
        }
        if (panel === "compare") await tab.getByRole("button", { name: /Change one arrow/ }).click();
        await tab.screenshot({ path: `${folder}/${panel}-${view}-${scheme}.png`, fullPage: full === "full" });
      }
      await tab.close();
    }
  }
} finally {
  await close();
}
