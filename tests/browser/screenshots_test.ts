/**
 * Pictures of the console's pages at three widths, light and dark, in `build/screenshots/`, for people to look at. What is checked is
 * that no page is wider than its window.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { chromium, type Page } from "playwright-core";
import { fromFileUrl } from "../paths.ts";
import { startServer, type TestServer } from "../server.ts";
import { BROWSER_ARGS, browserName, browserPath } from "./browser.ts";

const FOLDER = fromFileUrl("../build/screenshots");
const WIDTHS = [1440, 1024, 375];

const TRADES =
  "create table trades as (select * from read_parquet('trades.parquet')) timestamp(timestamp) partition by day";
const PANELS = [
  { kind: "number", width: 3, height: "low", statement: "select count() from trades" },
  { kind: "number", width: 3, height: "low", statement: "select nothing from trades" },
  { kind: "table", width: 6, height: "low", statement: "select * from trades limit 100" },
  {
    ...{ kind: "chart", width: 12, height: "medium" },
    statement: "select timestamp, symbol, avg(amount) from trades sample by 1d",
  },
];

/** `ready`: what is there when the page shows what it has. */
const PAGES = [
  { name: "first", path: "", ready: ".cm-content" },
  { name: "result", path: linkTo("select * from trades limit 1000"), ready: ".grid .row" },
  { name: "server", path: "#/server", ready: ".live-charts canvas" },
  { name: "tables", path: "#/server/tables", ready: ".facts td" },
  { name: "errors", path: "#/server/errors", ready: ".facts td" },
  { name: "settings", path: "#/server/settings", ready: ".facts td" },
  { name: "dashboards", path: "#/dashboards", ready: ".facts td" },
  { name: "dashboard", path: "#/dashboards/ID", ready: ".panel canvas" },
];

function linkTo(query: string): string {
  return `?${new URLSearchParams({ query, executeQuery: "true" })}`;
}

async function makeDashboard(server: TestServer): Promise<string> {
  const panels = PANELS.map((panel, at) => ({ id: at + 1, title: `Panel ${at + 1}`, unit: "plain", ...panel }));
  const variables = [{ name: "symbol", type: "text", value: "BTC-USD" }];
  const definition = JSON.stringify({ version: 1, range: { all: true }, refreshSeconds: 0, variables, panels });
  const body = JSON.stringify({ name: "Trading", sharedWith: [], definition });
  return (await (await fetch(`${server.http}/api/v1/dashboards`, { method: "POST", body })).json()).id;
}

async function shoot(page: Page, { name, ready }: typeof PAGES[number], url: string): Promise<void> {
  for (const width of WIDTHS) {
    // The tables are beside the editor or closed as there is room when the page is loaded.
    await page.setViewportSize({ width, height: 900 });
    await page.goto("about:blank");
    await page.goto(url);
    await page.waitForSelector(ready);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      // Charts follow in the next frames.
      await page.waitForTimeout(100);
      const what = `${name}-${width}-${colorScheme}`;
      assert.ok(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), `${what} is too wide`);
      // A hidden caret would be a style that the page's policy refuses.
      await page.screenshot({ path: join(FOLDER, `${what}.png`), caret: "initial" });
    }
  }
}

const options = { ignore: browserName === undefined, sanitizeOps: false, sanitizeResources: false };
Deno.test({
  name: "console: no page is wider than its window; pictures of all",
  ...options,
  fn: async () => {
    await Deno.mkdir(FOLDER, { recursive: true });
    await using server = await startServer();
    assert.equal((await server.exec(TRADES)).error, undefined);
    await server.exec("select nothing from trades");
    const id = await makeDashboard(server);
    const browser = await chromium.launch({ executablePath: browserPath, args: BROWSER_ARGS });
    try {
      for (const one of PAGES) {
        const page = await browser.newPage();
        await shoot(page, one, `${server.http}/${one.path.replace("ID", id)}`);
        await page.close();
      }
    } finally {
      await browser.close();
    }
  },
});
