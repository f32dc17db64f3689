/**
 * Every state of the console, light and dark: axe finds no fault by WCAG AA, and nothing is wider than a narrow screen. With
 * `SUNDIAL_SCREENSHOTS=DIR` each is also photographed at three widths.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import axe from "axe-core";
import { chromium, type Page } from "playwright-core";
import { ADMIN, startProtected } from "../access/server.ts";
import { BROWSER_ARGS, browserName, browserPath } from "./browser.ts";
import { endSession, run, type } from "./visit.ts";

const screenshots = Deno.env.get("SUNDIAL_SCREENSHOTS");
const WIDE = { width: 1440, height: 900 }, NARROW = { width: 375, height: 700 };
const PHOTOGRAPHED = [WIDE, { width: 1024, height: 768 }, NARROW];
const THEMES = ["light", "dark"] as const;

interface Fault {
  id: string;
  nodes: { target: string[]; any: { message: string }[] }[];
}

async function checkLooks(page: Page, state: string): Promise<void> {
  const faults: string[] = [];
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const found = await page.evaluate(`axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"], preload: false
    }).then(({ violations }) => violations.map(({ id, nodes }) =>
      ({ id, nodes: nodes.map(({ target, any }) => ({ target, any: any.map(({ message }) => ({ message })) })) })))`);
    for (const { id, nodes } of found as Fault[]) {
      for (const { target, any } of nodes) {
        // The editor keeps the focus and moves in its list of completions by arrow keys.
        if (id === "scrollable-region-focusable" && target[0].startsWith("#cm-ac-")) continue;
        faults.push(`${colorScheme}: ${id}: ${target}: ${any[0]?.message ?? ""}`);
      }
    }
    for (const size of screenshots === undefined ? [] : PHOTOGRAPHED) {
      await page.setViewportSize(size);
      await page.waitForTimeout(120);
      // A hidden caret would be a style that the page's policy refuses.
      const path = join(screenshots!, `${state.replaceAll(/\W+/g, "-")}-${size.width}-${colorScheme}.png`);
      await page.screenshot({ path, caret: "initial" });
    }
  }
  await page.setViewportSize(NARROW);
  const width = await page.evaluate("document.documentElement.scrollWidth");
  if (width as number > NARROW.width) faults.push(`${width} px wide on a screen of ${NARROW.width}`);
  await page.setViewportSize(WIDE);
  assert.deepEqual(faults, [], state);
}

/** Opens a state, and closes what would cover the next. */
type State = [name: string, open: (page: Page) => Promise<void>, close?: (page: Page) => Promise<unknown>];

/** One after the other, on one page. */
const states: State[] = [
  ["sign-in", async (page) => void await page.waitForSelector(".sign-in")],
  ["sign-in refused", async (page) => {
    await page.fill("[autocomplete=username]", ADMIN.name);
    await page.fill("[type=password]", "guess");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".sign-in .error");
  }],
  ["first screen", async (page) => {
    await page.fill("[type=password]", ADMIN.password);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".tree .item");
  }],
  ["rows", async (page) => void await run(page, "select * from read_parquet('trades.parquet')")],
  ["chart", async (page) => {
    await run(page, "select timestamp, price from read_parquet('trades.parquet') limit 500");
    await page.click("button:text-is('Chart')");
    await page.waitForSelector(".chart canvas");
  }, (page) => page.click("button:text-is('Rows')")],
  ["plan", async (page) => void await run(page, "explain select count() from t")],
  ["several statements", async (page) => void await run(page, "select 1; select x; select 2", "Control+Shift+Enter")],
  ["refused statement", async (page) => {
    await run(page, "select pricee from read_parquet('trades.parquet')");
  }],
  ["completion", async (page) => {
    await type(page, "select vwap");
    await page.keyboard.press("Control+Space");
    await page.waitForSelector(".cm-completionInfo .form");
  }, (page) => page.keyboard.press("Escape")],
  ["open table", (page) => page.click(".tree .name >> nth=0")],
  ["menu of a table", (page) => page.click("[aria-label='Actions of t']"), (page) => page.keyboard.press("Escape")],
  ["question", async (page) => {
    await page.click("[aria-label='Actions of t']");
    await page.click(".menu button:text-is('Drop …')");
  }, (page) => page.keyboard.press("Escape")],
  ["import", async (page) => {
    const chosen = page.waitForEvent("filechooser");
    await page.click("[aria-label='Import a CSV or Parquet file']");
    const buffer = Buffer.from("ts,price\n2024-01-01,1.5\n");
    await (await chosen).setFiles({ name: "prices.csv", mimeType: "text/csv", buffer });
    await page.waitForSelector(".import .preview td");
  }, (page) => page.keyboard.press("Escape")],
  ["commands", (page) => page.keyboard.press("Control+K"), (page) => page.keyboard.press("Escape")],
  ["history", (page) => page.keyboard.press("Control+H"), (page) => page.keyboard.press("Escape")],
  ["account", async (page) => {
    await page.click("nav button:has-text('admin')");
    await page.click(".menu button >> nth=0");
    await page.waitForSelector(".account td");
  }, (page) => page.keyboard.press("Escape")],
  ["server page", (page) => page.click("nav[aria-label=Pages] a:text-is('Server')")],
  ...["Tables", "Errors", "Settings"].map((name): State => [
    `server page ${name}`,
    (page) => page.click(`.sections a:text-is('${name}')`),
  ]),
  ["dashboards", (page) => page.click("nav[aria-label=Pages] a:text-is('Dashboards')")],
  ["expired session", async (page) => {
    await endSession(page);
    await page.click("nav[aria-label=Pages] a:text-is('Query')");
    await type(page, "select 1");
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector("dialog .sign-in");
  }],
];

Deno.test({
  name: "console: every state, light and dark, is accessible and fits a narrow screen",
  ignore: browserName === undefined,
  sanitizeOps: false,
  sanitizeResources: false,
  async fn(test) {
    await using server = await startProtected();
    await server.set("create table t (ts timestamp, name symbol, price double) timestamp(ts) partition by day");
    const browser = await chromium.launch({ executablePath: browserPath, args: BROWSER_ARGS });
    try {
      const page = await browser.newPage({ viewport: WIDE });
      await page.goto(server.http);
      await page.evaluate(axe.source);
      for (const [name, open, close] of states) {
        await test.step(name, async () => {
          await open(page);
          try {
            await checkLooks(page, name);
          } finally {
            await close?.(page);
          }
        });
      }
    } finally {
      await browser.close();
    }
  },
});
