/** The browser for tests of pages. */
import { join } from "node:path";
import { installed } from "../programs.ts";

/** Undefined if none is installed. */
export const [browserName] = await installed(["chromium"], "browser");

export const BROWSER_ARGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-dev-shm-usage",
];

/** Empty if none is installed. */
export const browserPath = browserName === undefined ? "" : pathOf(browserName);

function pathOf(program: string): string {
  const found = (Deno.env.get("PATH") ?? "").split(":").map((directory) => join(directory, program)).find((path) => {
    try {
      return Deno.statSync(path).isFile;
    } catch {
      return false;
    }
  });
  return found ?? program;
}
