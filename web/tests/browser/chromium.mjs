/** Debian's chromium, with an empty profile that is removed afterwards. No browser is ever downloaded. */

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export const executable = PLACES.find((path) => existsSync(path));

/** @returns {Promise<{browser: import("playwright-core").BrowserContext, close: () => Promise<void>}>} */
export async function open(options = {}) {
  const profile = mkdtempSync(join(tmpdir(), "exactstate-web-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: executable,
    headless: true,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    ...options,
  });
  return {
    browser: context,
    close: async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
