/** The editor of the console, as users use it. */
import assert from "node:assert/strict";
import { run, test, textsOf, type } from "./visit.ts";

test("the first screen invites a query over the demo file, which runs with one click", async ({ page }) => {
  assert.equal(await page.title(), "Sundial");
  await page.click("button.main");
  await page.waitForSelector(".grid .row");
  assert.deepEqual((await textsOf(page, ".grid .row:first-child [role=gridcell]")).slice(0, 2), ["BTC-USD", "25091"]);
});

test("a query by Ctrl+Enter shows rows, types, row count and time", async ({ page }) => {
  const status = await run(
    page,
    "select side, symbol, count() trades, min(timestamp) first_seen, null nothing from read_parquet('trades.parquet') order by symbol, side",
  );
  assert.match(status, /^24 rows · [\d.]+ m?s \(compile /);
  const head = await textsOf(page, ".grid [role=columnheader]");
  assert.deepEqual(head.slice(0, 3).map((text) => text.split(/\s+/)), [
    ["side", "VARCHAR"],
    ["symbol", "VARCHAR"],
    ["trades", "LONG"],
  ]);
  const cells = await textsOf(page, ".grid .row:first-child [role=gridcell]");
  assert.equal(cells[0], "buy");
  assert.equal(cells.at(-1), "null");
});

test("keywords of all statements are highlighted", async ({ page }) => {
  await type(page, "EXPLAIN ANALYZE savepoint deallocate select");
  // Words of its own dialect come from the server.
  await page.waitForSelector(".cm-line span:text-is('EXPLAIN')");
  const weights = await page.evaluate(
    "[...document.querySelectorAll('.cm-line span')].map((span) => `${span.textContent} ${getComputedStyle(span).fontWeight}`)",
  );
  assert.deepEqual(weights, ["EXPLAIN 600", "ANALYZE 600", "savepoint 600", "deallocate 600", "select 600"]);
});

test("the grid holds only the rows in view, and scrolls to the last one", async ({ page }) => {
  assert.match(await run(page, "select x from long_sequence(50000)"), /^50,000 rows · /);
  assert.ok(await page.locator(".grid .row").count() < 100);
  await page.locator(".grid").evaluate((grid) => grid.scrollTo(0, grid.scrollHeight));
  await page.waitForSelector(".grid [role=gridcell]:text-is('50000')");
});

test("an error is underlined at its place, and the server's suggestion is a fix to click", async ({ page }) => {
  const status = await run(
    page,
    "select 1;\nselect x,\n  pricee\nfrom read_parquet('trades.parquet')",
    "Control+Shift+Enter",
  );
  assert.match(status, /no column x\b.*\nat line 2, column 8$/);
  assert.equal(await page.innerText(".cm-lintRange-error"), "x");
  assert.match(await run(page, "select\n  pricee from read_parquet('trades.parquet')"), /line 2, column 3$/);
  await page.hover(".cm-lintRange-error");
  await page.click(".cm-tooltip >> text=Replace by price");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector(".run-mark.done");
  assert.match(await page.innerText(".results [role=status]"), /^100,000 rows/);
  // The same by keys: the fix is a button below the message, too.
  await run(page, "select pricee from read_parquet('trades.parquet')");
  await page.focus(".results button:text-is('Replace by price')");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".cm-lintRange-error, .run-mark, .fix").count(), 0);
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector(".run-mark.done");
  assert.match(await page.innerText(".results [role=status]"), /^100,000 rows/);
});

test("several statements: rows and time beside each, the first that fails ends the row", async ({ page }) => {
  const text = "create table t (s varchar);\ninsert into t values ('<img src=x onerror=alert(1)>');\nselect s from t;";
  assert.match(await run(page, text, "Control+Shift+Enter"), /^1 row · /);
  const marks = await textsOf(page, ".run-mark");
  assert.equal(marks.length, 3);
  for (const mark of marks) assert.match(mark, /^(OK|1 row) · [\d.]+ m?s$/);
  // Text from the database is never interpreted as markup.
  assert.deepEqual(await textsOf(page, ".grid [role=gridcell]"), ["<img src=x onerror=alert(1)>"]);
  await page.click(".runs button:first-child");
  assert.match(await page.innerText(".results [role=status]"), /^OK · /);
  await run(page, "select 1;\nselect nothing;\nselect 2;", "Control+Shift+Enter");
  assert.deepEqual((await textsOf(page, ".run-mark")).map((mark) => mark.split(" ")[0]), ["1", "failed"]);
});

test("the statement at the cursor runs, or what is selected", async ({ page }) => {
  await type(page, "select 1 one;\nselect 2 two;\nselect 3 three;");
  const names = async (keys: string) => {
    const before = await page.getAttribute(".results", "data-run");
    await page.keyboard.press(keys);
    await page.waitForSelector(`.results[aria-busy=false]:not([data-run="${before}"])`);
    await page.waitForSelector(".grid .row");
    const titles = (await textsOf(page, ".runs button")).map((text) => text.split("\n")[0]);
    const [head] = await textsOf(page, ".grid [role=columnheader]");
    return [...titles, head.split(/\s+/)[0]];
  };
  await page.keyboard.press("Control+Home");
  assert.deepEqual(await names("F9"), ["one"]);
  await page.keyboard.press("ArrowDown");
  assert.deepEqual(await names("Control+Enter"), ["two"]);
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+Control+End");
  assert.deepEqual(await names("Control+Enter"), ["select 2 two", "select 3 three", "three"]);
});

test("marks move with the text, and go when their statement is edited", async ({ page }) => {
  await run(page, "select 1;\nselect nothing;", "Control+Shift+Enter");
  await page.keyboard.press("Control+Home");
  await page.keyboard.insertText("-- first\n");
  assert.deepEqual(
    (await textsOf(page, ".cm-line")).map((line) => line.trim().replace(/1 row.*/, "1 row")),
    ["-- first", "select 1;1 row", "select nothing;failed"],
  );
  assert.equal(await page.innerText(".cm-lintRange-error"), "nothing");
  await page.click("[aria-label='New tab']");
  await page.click(".tab button:text-is('Query 1')");
  assert.equal(await page.locator(".run-mark").count(), 2);
  await page.keyboard.press("Control+End");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.insertText(" yet");
  assert.equal(await page.locator(".run-mark").count(), 1);
  assert.equal(await page.locator(".cm-lintRange-error").count(), 0);
});

test("completion knows tables, their columns and functions with their documentation", async ({ page, server }) => {
  await server.exec("create table prices (symbol symbol, bid double, at timestamp) timestamp(at)");
  await page.reload();
  await page.waitForSelector(".cm-content");
  // Completion knows the tables that have been loaded.
  await page.waitForSelector(".tree :text('prices')");
  await type(page, "select  from prices");
  await page.keyboard.press("Home");
  for (let at = 0; at < "select ".length; at++) await page.keyboard.press("ArrowRight");
  await page.keyboard.type("bi");
  await page.waitForSelector(".cm-completionLabel:has-text('bid')");
  await page.keyboard.press("Escape");
  await type(page, "select vwap");
  await page.keyboard.press("Control+Space");
  await page.waitForSelector(".cm-completionInfo .form");
  assert.match(await page.innerText(".cm-completionInfo"), /vwap\(price, volume\)/);
  for (const [text, label, detail] of [["select * from pri", "prices", "table"], ["select 1 samp", "sample", ""]]) {
    await page.keyboard.press("Escape");
    await type(page, text);
    await page.keyboard.press("Control+Space");
    await page.waitForSelector(`.cm-tooltip-autocomplete li:has(.cm-completionLabel:text-matches("^${label}$", "i"))`);
    const entry = page.locator(`.cm-tooltip-autocomplete li:has(.cm-completionLabel:text-matches("^${label}$", "i"))`)
      .first();
    assert.match(await entry.innerText(), new RegExp(`${label}\\s*${detail}`, "i"));
  }
});

test("tabs and their texts outlive a reload; the history finds a statement", async ({ page }) => {
  await run(page, "select 'first'");
  await page.click("[aria-label='New tab']");
  await run(page, "select 'second'");
  await page.reload();
  await page.waitForSelector(".cm-content");
  assert.match(await page.innerText(".cm-line"), /^select 'second'1 row/);
  assert.equal(await page.locator(".tab").count(), 2);
  await page.keyboard.press("Control+H");
  await page.keyboard.type("first");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".cm-line:has-text(\"select 'first'\")");
  assert.equal(await page.locator(".tab").count(), 3);
});

test("a panel and a question have the focus before the next key can arrive", async ({ page, server }) => {
  // The next key is another task of the browser, and so is a message.
  const focusAfter = (press: string): Promise<string> =>
    page.evaluate(`(async () => {
      (${press})();
      await new Promise((resolve) => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = resolve;
        port2.postMessage(0);
      });
      return document.activeElement.getAttribute("aria-label") ?? document.activeElement.name;
    })()`);
  const pressKey = (key: string) =>
    `() => dispatchEvent(new KeyboardEvent("keydown", { key: "${key}", code: "Key${key.toUpperCase()}", ctrlKey: true }))`;
  for (const [key, label] of [["h", "Search the history"], ["k", "Search commands"]]) {
    assert.equal(await focusAfter(pressKey(key)), label);
    await page.keyboard.press("Escape");
  }
  await server.exec("create table t (a int)");
  await page.click("[aria-label='Refresh the tables']");
  await page.click("[aria-label='Actions of t']");
  const choose =
    `() => [...document.querySelectorAll(".menu button")].find(({ innerText }) => innerText === "Rename …").click()`;
  assert.equal(await focusAfter(choose), "name");
});

test("everything is reachable by keys: tabs, tables, columns of a result, and the focus comes back", async ({ page, server }) => {
  await server.exec("create table t (a int, b int)");
  await page.reload();
  await page.waitForSelector(".tree .item");
  const command = async (name: string) => {
    await page.keyboard.press("Control+K");
    await page.keyboard.type(name);
    await page.keyboard.press("Enter");
  };
  const focused = () =>
    page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.name");
  const tabTo = async (label: string, key = "Tab") => {
    for (let presses = 0, at = await focused(); presses < 30 && at !== label; presses++, at = await focused()) {
      // In the editor Tab indents, but for two seconds after Escape it moves the focus.
      if (at === "SQL") await page.keyboard.press("Escape");
      await page.keyboard.press(key);
    }
    assert.equal(await focused(), label);
  };
  await command("rename the tab");
  await page.keyboard.type("Mine");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".tab button:text-is('Mine')");
  assert.equal(await focused(), "SQL");
  await run(page, "select x, -x y from long_sequence(3)");
  await tabTo("Rows");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Shift+F10");
  await page.waitForSelector(".menu");
  await page.keyboard.press("Enter");
  await page.waitForSelector("[aria-colindex='2'][aria-sort=ascending]");
  assert.equal(await focused(), "Rows");
  await tabTo("Actions of t", "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".menu");
  await page.keyboard.press("Escape");
  assert.equal(await focused(), "Actions of t");
});

test("the text is formatted in the dialect", async ({ page }) => {
  await type(page, "select symbol, avg(price) from trades where price>1 sample by 1h");
  await page.click("text=Format");
  await page.waitForSelector(".cm-line >> nth=4");
  assert.ok((await textsOf(page, ".cm-line")).includes("sample by"));
});

const linked = (query: string) => ({ path: `/?${new URLSearchParams({ query, executeQuery: "true" })}` });

test("a link runs what only reads", async ({ page }) => {
  await page.waitForSelector(".grid .row");
  assert.equal(await page.innerText(".grid [role=gridcell]"), "42");
  assert.equal(new URL(page.url()).search, "");
}, linked("select 42 answer"));

test("a link does not run what may change something", async ({ page }) => {
  assert.equal(await page.innerText(".cm-line"), "create table made_by_a_link (a int)");
  await page.waitForSelector(".notice:not([hidden])");
  assert.match(await run(page, "select count() from tables()"), /^1 row/);
  assert.equal(await page.innerText(".grid [role=gridcell]"), "0");
}, linked("create table made_by_a_link (a int)"));

test("a server that went away is told, and nothing typed is lost", async ({ page, server }) => {
  await server.stop();
  assert.match(await run(page, "select 1"), /server cannot be reached/);
  assert.equal((await page.innerText(".cm-line")).trim(), "select 1failed");
}, { isAlone: true });
