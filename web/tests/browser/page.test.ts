/** The built page in Debian's chromium, driven as a person would: from file://, with the mouse, the keyboard and files. */

import { existsSync, readFileSync, writeFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { golden } from "../golden";
// @ts-expect-error: plain JavaScript, so that screenshots.mjs can use it without a build
import { executable, open } from "./chromium.mjs";
import { CONTRASTS, WIDER } from "./look";

const BUILT = new URL("../../dist/index.html", import.meta.url).pathname;
const COMMITTED = new URL("../../../exactstate/report/play.html", import.meta.url).pathname;
const CERTIFICATES = new URL("../../../results/certificates/gradient/", import.meta.url).pathname;
const ADDRESS = pathToFileURL(BUILT).href;
const PANELS = ["scan", "drift", "learn", "certificate", "compare"];
const files = mkdtempSync(join(tmpdir(), "exactstate-files-"));

function file(name: string, text: string): string {
  const path = join(files, name);
  writeFileSync(path, text);
  return path;
}

describe("the build", () => {
  test("is one file below 400 KB, and the one that is committed", () => {
    expect(existsSync(BUILT), "build it first: make web").toBe(true);
    const built = readFileSync(BUILT);
    expect(built.length).toBeLessThan(400_000);
    expect(built.equals(readFileSync(COMMITTED)), "exactstate/report/play.html is not what the sources give: make web").toBe(true);
  });
  test("names no address but the namespace of SVG", () => {
    expect([...new Set(readFileSync(BUILT, "utf-8").match(/https?:\/\/[^\s"'`]*/g))]).toEqual(["http://www.w3.org/2000/svg"]);
  });
  test("the lock file names no registry", () => {
    expect(readFileSync(new URL("../../package-lock.json", import.meta.url), "utf-8")).not.toMatch(/"resolved"|https?:\/\/(?!opencollective|github|tidelift|paulmillr|www\.patreon|ko-fi)[^"]*\.tgz/);
  });
});

describe.skipIf(!executable)("in chromium", () => {
  let browser: BrowserContext;
  let close: () => Promise<void>;
  let page: Page;
  let complaints: string[] = [];
  let requests: string[] = [];

  beforeAll(async () => {
    ({ browser, close } = await open());
    page = await browser.newPage();
    page.setDefaultTimeout(500_000);
    page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("dialog", (dialog) => {
      complaints.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => requests.push(request.url()));
  });
  afterAll(async () => close?.());
  beforeEach(() => {
    complaints = [];
    requests = [];
  });

  async function visit(panel: string, look: { width?: number; scheme?: "light" | "dark" } = {}): Promise<void> {
    await page.setViewportSize({ width: look.width ?? 1280, height: 900 });
    await page.emulateMedia({ colorScheme: look.scheme ?? "light" });
    await page.goto("about:blank");
    requests = [];
    await page.goto(`${ADDRESS}#${panel}`);
  }
  const status = (panel: string): Promise<string> => page.locator(`#panel-${panel} .stage > .status:not(:empty)`).last().innerText();
  const drop = async (paths: string[]): Promise<void> => {
    const contents = paths.map((path) => ({ name: path.split("/").pop()!, text: readFileSync(path, "utf-8") }));
    await page.evaluate((given) => {
      const data = new DataTransfer();
      for (const { name, text } of given) data.items.add(new File([text], name));
      document.querySelector(".page")!.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }, contents);
  };
  const appears = (where: string, text: string | RegExp): Promise<void> =>
    page.locator(where).filter({ hasText: text }).first().waitFor({ timeout: 500_000 });
  const quiet = (): void => {
    expect(complaints).toEqual([]);
    for (const address of requests) expect(address).toMatch(/^(file|data|blob):/);
  };

  test.each(PANELS.flatMap((panel) => (["light", "dark"] as const).flatMap((scheme) => [1280, 390].map((width) => [panel, scheme, width] as const))))(
    "%s is readable, %s, %i wide",
    async (panel, scheme, width) => {
      await visit(panel, { scheme, width });
      if (panel === "certificate") await page.getByRole("button", { name: "Example: S3" }).click();
      if (panel === "compare") await page.getByRole("button", { name: /Change one arrow/ }).click();
      const texts = (await page.evaluate(CONTRASTS)) as { text: string; ratio: number }[];
      expect(texts.length).toBeGreaterThan(20);
      expect(texts.filter(({ ratio }) => ratio < 4.5)).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
      expect(await page.evaluate(WIDER)).toEqual([]);
      const names = await page.locator("button:visible, select:visible, input:not([type=file]):visible, [role=button]:visible, [role=slider]:visible").evaluateAll((all) =>
        all.filter((one) => !(one.getAttribute("aria-label") || one.textContent || (one as HTMLInputElement).labels?.length)).map((one) => one.outerHTML));
      expect(names).toEqual([]);
      quiet();
    },
  );

  test("the checks bark at a bad page", async () => {
    await page.setContent("<p style='color:#999;background:#fff'>pale</p><div style='width:3000px'>wide</div>");
    expect(((await page.evaluate(CONTRASTS)) as { ratio: number }[]).some(({ ratio }) => ratio < 4.5)).toBe(true);
    expect(await page.evaluate(WIDER)).not.toEqual([]);
  });

  describe("the scan", () => {
    test("step, scrub and play, on every machine of the list", async () => {
      await visit("scan");
      const machine = page.getByLabel("Machine", { exact: true });
      for (const name of await machine.locator("option").evaluateAll((all) => all.map((one) => (one as HTMLOptionElement).value))) {
        await machine.selectOption(name);
        expect(await status("scan")).toMatch(/Equal after every symbol; .* The tree took 9 rounds, the loop 16\./);
      }
      await machine.selectOption("S3");
      await page.getByLabel("Round").fill("0");
      expect(await status("scan")).toContain("tables compose upwards");
      for (let i = 0; i < 5; i++) await page.getByRole("button", { name: "Step" }).click();
      expect(await status("scan")).toContain("Round 5: states come down");
      await page.getByRole("button", { name: "Play" }).click();
      await appears("#panel-scan .status", "Equal after every symbol");
      quiet();
    });

    test("type a word, mistype one, draw one", async () => {
      await visit("scan");
      const word = page.getByLabel(/^Word/);
      await word.fill("(0 1) (0 1) (1 2)");
      expect(await status("scan")).toContain("ends in (1 2)");
      await word.fill("(0 1) (9 9)");
      expect(await page.locator("#scan-word-status").innerText()).toContain("“(9” is not a symbol");
      await word.fill(Array(33).fill("(0 1)").join(" "));
      expect(await page.locator("#scan-word-status").innerText()).toContain("33 symbols");
      await word.fill("(0 1) (0 1) (0 1) (0 1)");
      const columns = page.locator(".roll .column");
      for (const t of [0, 2]) await columns.nth(t).locator("rect").nth(1).click();
      expect(await word.inputValue()).toBe("(1 2) (0 1) (1 2) (0 1)");
      quiet();
    });

    test("machines from files, as in Python", async () => {
      await visit("scan");
      const rows = golden<{ json: string; dot: string; word: string[]; states: string[] }>("runs");
      const chosen = rows.filter(({ word, json }) => word.length > 0 && word.length <= 32 && !(JSON.parse(json) as { symbols: string[] }).symbols.some((s) => s.trim() !== s)).slice(0, 12);
      for (const [i, row] of chosen.entries()) {
        await drop([i % 2 ? file(`m${i}.dot`, row.dot) : file(`m${i}.json`, row.json)]);
        await appears("#panel-scan .status.good", `m${i}.`);
        await page.getByLabel(/^Word/).fill(row.word.join(" "));
        expect(await page.locator("#panel-scan .stage > .status.good").last().innerText()).toContain("Equal after every symbol");
        const last = page.locator("svg.scan > g").nth(-2).locator("title").last();
        expect(await last.textContent()).toContain(`after ${row.word.length} symbol`);
      }
      await drop([file("broken.json", '{"format": "exactstate-machine", "version": 9}')]);
      await appears("#panel-scan .status.bad", "version");
      quiet();
    });
  });

  test("losing track: perturbation and formats", async () => {
    await visit("drift");
    expect(await status("drift")).toBe("The rotation is wrong from step 45 on; the flip-flop is wrong from step 23 on. The NFSM is right at every step.");
    await page.getByLabel("Perturbation of every step").fill("-50");
    const firsts: number[] = [];
    for (const name of ["fp8 e5m2", "bf16", "fp16"]) {
      await page.getByLabel("Number format").selectOption(name);
      firsts.push(Number((await status("drift")).match(/rotation is wrong from step ([\d,]+)/)![1].replace(",", "")));
    }
    expect(firsts).toEqual([...firsts].sort((a, b) => a - b));
    const wanted = golden<{ format?: string; iterated: number }>("drift").find((row) => row.format === "fp16")!.iterated;
    expect(firsts[2]).toBe(wanted);
    quiet();
  });

  test.each([["S3", 2], ["FF", 1]])("learning %s", async (task, heads) => {
    await visit("learn");
    await page.getByLabel("Task").selectOption(task);
    const began = Date.now();
    await page.getByRole("button", { name: "Train" }).click();
    await page.waitForSelector("#panel-learn .stage > .status.good, #panel-learn .stage > .status.bad", { timeout: 500_000 });
    const said = await status("learn");
    expect(said.replace(/\s+/g, "")).toMatch(/^✓Exactafter/);
    expect(await page.locator("#panel-learn .kept svg.diagram").count()).toBe(heads);
    expect(await page.locator("#panel-learn .result svg.diagram").count()).toBe(2);
    console.info(`learning ${task}: ${said}; ${((Date.now() - began) / 1000).toFixed(1)} s seen from outside`);
    quiet();
  });

  describe("the certificate", () => {
    test("the example, the changed example, files that are kept, and changed ones", async () => {
      await visit("certificate");
      await page.getByRole("button", { name: "Example: S3" }).click();
      expect(await status("certificate")).toContain("Valid: S3");
      expect(await page.locator(".bar.weakest").count()).toBe(1);
      await page.getByRole("button", { name: "read (0 1)" }).click();
      expect(await page.locator(".player-side .status").innerText()).toContain("After 1 symbol");
      await page.getByRole("button", { name: "one digit changed" }).click();
      expect(await status("certificate")).toContain("Not valid");
      expect(await page.locator(".findings li").first().innerText()).toContain("SHA-256");
      for (const name of ["A5-42.json", "FF-42.json"]) {
        await page.locator("#panel-certificate input[type=file]").setInputFiles(join(CERTIFICATES, name));
        await appears("#panel-certificate .status", "Valid");
        const text = readFileSync(join(CERTIFICATES, name), "utf-8");
        await drop([file("changed.json", text.replace(/"task_states": \d/, '"task_states": 9'))]);
        await appears("#panel-certificate .status", "Not valid: changed.json");
      }
      await drop([file("text.json", "hello")]);
      await appears("#panel-certificate .status", "neither a machine nor a certificate");
      quiet();
    });

    test("a machine is run on text", async () => {
      await visit("certificate");
      await drop([file("machine.json", golden<{ json: string }>("runs")[0].json)]);
      await page.waitForSelector("#panel-certificate .player");
      const symbol = (JSON.parse(golden<{ json: string }>("runs")[0].json) as { symbols: string[] }).symbols[0];
      await page.getByLabel("Text to read").fill(`${symbol} ${symbol} ${symbol}`);
      expect(await page.locator(".player-side .status").innerText()).toContain("After 3 symbols");
      await page.getByRole("button", { name: "Back" }).last().click();
      expect(await page.locator(".player-side .status").innerText()).toContain("After 2 symbols");
      quiet();
    });
  });

  test("two machines: equal, changed, other symbols", async () => {
    await visit("compare");
    expect(await status("compare")).toContain("same outputs on every word");
    await page.getByRole("button", { name: /Change one arrow/ }).click();
    expect(await status("compare")).toContain("Different after 3 symbols: (0 1) (1 2) (0 1)");
    expect(await page.locator("tr.apart").count()).toBe(1);
    await page.getByRole("combobox", { name: "Second machine" }).selectOption("Z7");
    expect(await status("compare")).toContain("different symbols");
    const row = golden<{ one: string; other: string; length: number | null }>("pairs").find(({ length }) => length !== null && length > 1)!;
    await drop([file("one.json", row.one), file("other.json", row.other)]);
    await appears("#panel-compare .status", "other.json is open");
    await appears("#panel-compare .status", "one.json is open");
    expect(await status("compare")).toContain(`Different after ${row.length} symbols`);
    quiet();
  });

  test("names cannot become markup", async () => {
    const names = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", '"><svg onload=alert(3)>', "\u202eabc"];
    const hostile = file("<b>hostile<b>.json", JSON.stringify({
      format: "exactstate-machine", version: 1, kind: "moore", symbols: names.slice(0, 3), states: names, tables: [[1, 2, 3, 0], [0, 1, 2, 3], [3, 3, 3, 3]],
      start: 0, outputs: names, readout: [0, 1, 2, 3],
    }));
    for (const panel of PANELS) {
      await visit(panel);
      await drop([hostile]);
      await appears("section:visible .status, section:visible select", "hostile");
      expect(await page.locator("img, iframe, script:not(#play-script), b").count()).toBe(0);
      expect(await page.evaluate("document.body.textContent.includes('\\u202e')")).toBe(false);
    }
    await visit("certificate");
    const certificate = readFileSync(join(CERTIFICATES, "S3-42.json"), "utf-8").replace("(0 1)", "<img src=x onerror=alert(4)>");
    await drop([file("hostile-certificate.json", certificate)]);
    await appears("#panel-certificate .status", "Not valid");
    expect(await page.locator("img").count()).toBe(0);
    quiet();
  });

  test("by keyboard only", async () => {
    await visit("scan");
    const focused = (): Promise<string> => page.evaluate(() => {
      const one = document.activeElement as HTMLInputElement;
      return `${one.tagName.toLowerCase()} ${one.getAttribute("aria-label") || one.labels?.[0]?.textContent || one.textContent}`.slice(0, 60);
    });
    const order: string[] = [];
    for (let i = 0; i < 19; i++) {
      await page.keyboard.press("Tab");
      order.push(await focused());
    }
    expect(order).toEqual([
      "a Skip to the panel", "button Theme: auto", "button 1The scan", "select Machine", "button Open a machine…", "input Word (at most 32 symbols)",
      "button Delete last", "button Random", "button append (0 1)", "button append (1 2)", "button Back", "button Play", "button Step", "input Round",
      "div The tree", expect.stringMatching(/^g symbols 1 to 16: /), expect.stringMatching(/^g position 1/), expect.anything(), expect.anything(),
    ]);
    // the tree: root, its left child, that one's neighbor
    await page.locator("[data-key='4:0']").focus();
    await page.keyboard.press("ArrowDown");
    expect(await focused()).toMatch(/^g symbols 1 to 8/);
    await page.keyboard.press("ArrowRight");
    expect(await focused()).toMatch(/^g symbols 9 to 16/);
    await page.keyboard.press("ArrowUp");
    expect(await focused()).toMatch(/^g symbols 1 to 16/);
    // the word: up and down change a symbol
    await page.locator("[data-key='w0']").focus();
    const before = await page.locator("[data-key='w0']").getAttribute("aria-valuetext");
    await page.keyboard.press("ArrowDown");
    expect(await page.locator("[data-key='w0']").getAttribute("aria-valuetext")).not.toBe(before);
    await page.keyboard.press("ArrowRight");
    expect(await focused()).toMatch(/^g position 2/);
    // the clock
    await page.getByLabel("Round").focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    expect(await status("scan")).toContain("Round 1");
    // the tabs
    await page.locator("#tab-scan").focus();
    const visited: string[] = [];
    for (let i = 0; i < 5; i++) {
      await page.keyboard.press("ArrowRight");
      visited.push(await page.evaluate("location.hash"));
    }
    expect(visited).toEqual(["#drift", "#learn", "#certificate", "#compare", "#scan"]);
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowLeft");
    // the certificate: open the example, read two symbols, go back
    await page.getByRole("button", { name: "Example: S3" }).focus();
    await page.keyboard.press("Enter");
    expect(await status("certificate")).toContain("Valid");
    await page.getByLabel("Text to read").focus();
    await page.keyboard.type("(0 1) (1 2)");
    expect(await page.locator(".player-side .status").innerText()).toContain("After 2 symbols");
    // theme
    await page.getByRole("button", { name: /^Theme/ }).focus();
    await page.keyboard.press("Space");
    await page.keyboard.press("Space");
    expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("dark");
    quiet();
  });

  test("time until the page can be used", async () => {
    const times: number[] = [];
    for (let i = 0; i < 5; i++) {
      await visit("scan");
      times.push((await page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")) as number);
    }
    console.info(`load event after ${times.map((t) => t.toFixed(0)).join(", ")} ms; ${readFileSync(BUILT).length.toLocaleString("en")} bytes`);
    expect(times.every((t) => t > 0)).toBe(true);
  });
});
