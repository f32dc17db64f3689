/** The page at `/` in a real browser: what a first visitor does. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { startServer, type TestServer } from "../server.ts";
import { BROWSER_ARGS, browserName, browserPath } from "./browser.ts";

async function withPage(use: (page: Page, server: TestServer) => Promise<void>): Promise<void> {
  await using server = await startServer();
  const browser: Browser = await chromium.launch({
    executablePath: browserPath,
    args: BROWSER_ARGS,
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1100, height: 720 } });
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("request", (request) => {
      if (!request.url().startsWith(server.http)) faults.push(`the page asks for ${request.url()}`);
    });
    await page.goto(`${server.http}/`);
    await use(page, server);
    // What it looked like, for whoever wants to see it.
    const directory = await Deno.makeTempDir({ prefix: "sundial-page-" });
    await page.screenshot({ path: join(directory, "page.png") });
    console.log(`  ${join(directory, "page.png")}`);
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
  }
}

async function run(page: Page, sql: string): Promise<string> {
  await page.click(".cm-content");
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(sql);
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector("[aria-busy=false]");
  return await page.innerText("[role=status]");
}

// Connections of the browser outlive a test case here and there.
const test = { ignore: browserName === undefined, sanitizeOps: false, sanitizeResources: false };

Deno.test({
  name: "page: a query by Ctrl+Enter shows rows, types, row count and time",
  ...test,
  fn: () =>
    withPage(async (page) => {
      assert.equal(await page.title(), "Sundial");
      const status = await run(
        page,
        "select side, symbol, count() trades, avg(price) price, min(timestamp) first_seen, null nothing from read_parquet('trades.parquet') order by symbol, side",
      );
      assert.match(status, /^[\d,]+ rows · [\d.,]+ ms/);
      const head = await page.locator(".grid thead th").allInnerTexts();
      assert.deepEqual(head[0].toLowerCase().split(/\s+/), ["side", "varchar"]);
      assert.deepEqual(head[2].toLowerCase().split(/\s+/), ["trades", "long"]);
      const cells = await page.locator(".grid tbody tr:first-child td").allInnerTexts();
      assert.equal(cells[0], "buy");
      assert.equal(cells.at(-1), "null");
      assert.match(await run(page, "select x from long_sequence(5000)"), /^5,000 rows, the first 1,000 are shown · /);
      assert.equal(await page.locator(".grid tbody tr").count(), 1000);
    }),
});

Deno.test({
  name: "page: an error is shown with its place, text of the database is never markup, and DDL says that it is done",
  ...test,
  fn: () =>
    withPage(async (page, server) => {
      const status = await run(page, "select x,\n  nothing\nfrom long_sequence(3)");
      assert.match(status, /nothing/);
      assert.match(status, /line 2, column 3/);
      assert.equal(await page.innerText(".cm-lintRange-error"), "nothing");
      assert.equal(await page.locator(".grid tbody tr").count(), 0);
      assert.match(await run(page, "create table t (s varchar)"), /^OK · /);
      await run(page, "insert into t values ('<img src=x onerror=alert(1)>')");
      assert.match(await run(page, "select s from t"), /^1 row · /);
      assert.equal(await page.innerText(".grid tbody td"), "<img src=x onerror=alert(1)>");
      await server.stop();
      assert.match(await run(page, "select 1"), /server cannot be reached/);
    }),
});
