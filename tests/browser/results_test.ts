/** Results and tables in the console. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { startServer } from "../server.ts";
import { run, test, textsOf, type } from "./visit.ts";

const cellsOf = (page: Page, column: number) => textsOf(page, `.grid .row [aria-colindex="${column}"]`);
const head = (column: number) => `.grid [role=columnheader][aria-colindex="${column}"]`;

test("rows are sorted, columns frozen and described", async ({ page }) => {
  await run(page, "select x, 100 - x y, 'text' s from long_sequence(30)");
  await page.click(head(2));
  await page.waitForSelector(`${head(2)}[aria-sort=ascending]`);
  assert.deepEqual((await cellsOf(page, 1)).slice(0, 3), ["30", "29", "28"]);
  await page.click(head(2));
  await page.waitForSelector(`${head(2)}[aria-sort=descending]`);
  assert.deepEqual((await cellsOf(page, 1)).slice(0, 3), ["1", "2", "3"]);
  await page.click(head(3), { button: "right" });
  await page.click(".menu >> text=Freeze");
  await page.waitForSelector(`${head(3)}.frozen`);
  assert.equal(await page.getAttribute(".grid .head > [role] >> nth=0", "aria-colindex"), "3");
  await page.click(head(1), { button: "right" });
  await page.click(".menu >> text=Statistics");
  assert.match(
    await page.innerText(".dialog pre"),
    /^rows +30\nnot null +30\ndistinct +30\nsmallest +1\nlargest +30\naverage +15\.5\n/,
  );
});

test("a long value is shown whole, and values are reached by arrow keys", async ({ page }) => {
  await run(page, "select 1 a, '{\"b\": [1, 2]}' b union all select 2, repeat('long ', 1000)");
  await page.focus(".grid");
  for (const key of ["ArrowDown", "ArrowRight", "Enter"]) await page.keyboard.press(key);
  assert.equal((await page.innerText(".dialog pre")).trim(), "long ".repeat(1000).trim());
  await page.keyboard.press("Escape");
  await page.focus(".grid");
  for (const key of ["ArrowUp", "Enter"]) await page.keyboard.press(key);
  assert.equal(await page.innerText(".dialog pre"), JSON.stringify({ b: [1, 2] }, null, 2));
});

const copies = [
  ["TSV", "x\tn\n1\t\n2\t\n"],
  ["CSV", "x,n\n1,\n2,\n"],
  ["Markdown", "| x | n |\n| --- | --- |\n| 1 | null |\n| 2 | null |\n"],
  ["JSON", '[\n{"x":1,"n":null},\n{"x":2,"n":null}\n]\n'],
];

test("rows are copied, and downloaded whole", async ({ page }) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await run(page, "select x, null n from long_sequence(2)");
  for (const [form, text] of copies) {
    await page.click("text=Copy ▾");
    await page.click(`.menu >> text=As ${form}`);
    await page.waitForSelector(`.notice:has-text('as ${form} are in the clipboard')`);
    const copied = await page.evaluate(() =>
      (navigator as unknown as { clipboard: { readText(): Promise<string> } }).clipboard.readText()
    );
    assert.equal(copied, text);
  }
  await run(page, "select x from long_sequence(20000)");
  await page.click("text=Download ▾");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=All rows as CSV")]);
  const text = await Deno.readTextFile(await download.path());
  assert.equal(text.trim().split("\r\n").length, 20_001);
});

test("times are shown in UTC or in local time, with all their digits", async ({ page }) => {
  await run(page, "select '2026-02-02T10:20:30.123456Z'::timestamp at");
  assert.equal(await page.innerText(".grid [role=gridcell]"), "2026-02-02T10:20:30.123456Z");
  await page.click("text=UTC ▾");
  await page.click("text=Local time");
  await page.waitForSelector(".grid [role=gridcell]:has-text('10:20:30.123456 +00:00')");
});

test("nothing moves while rows come", async ({ page }) => {
  const sql = "select x, x * 1000 y, case when x > 9 then 'a longer text than before ' || x else 't' end t " +
    "from long_sequence(1000000)";
  await page.keyboard.press("Control+B");
  for (const width of [1100, 375]) {
    await page.setViewportSize({ width, height: 720 });
    await type(page, sql);
    // What moves within the results, from the first row on.
    await page.evaluate(`(() => {
      globalThis.moved = [];
      const isMeant = ({ node }) => (node?.nodeType === Node.TEXT_NODE ? node.parentElement : node)?.closest?.(".results");
      new PerformanceObserver((list) => {
        for (const { sources } of list.getEntries()) {
          if (document.querySelector(".results[aria-busy=true] .row, .results[aria-busy=false] .row") === null) continue;
          moved.push(...sources.filter(isMeant).map(({ node }) => node.textContent.slice(0, 30)));
        }
      }).observe({ type: "layout-shift" });
    })()`);
    const before = await page.getAttribute(".results", "data-run");
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector(`.results:not([data-run="${before}"]) .grid .row:not(.loading)`);
    await page.waitForSelector(".results[aria-busy=false]");
    // Entries are told after the frame that they are of.
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestIdleCallback(done)))");
    assert.deepEqual(await page.evaluate("moved"), [], `${width} px`);
  }
});

test("a result is refreshed by itself while its tab is shown", async ({ page }) => {
  await run(page, "select now()");
  const first = await page.innerText(".grid [role=gridcell]");
  await page.click("text=Refresh ▾");
  await page.click(".menu >> text=Every 1 s");
  await page.waitForSelector(`.grid [role=gridcell]:not(:text-is("${first}"))`);
  const second = await page.innerText(".grid [role=gridcell]");
  await page.waitForSelector(`.grid [role=gridcell]:not(:text-is("${second}"))`);
  await page.click("text=Every 1 s ▾");
  await page.click(".menu >> text=By hand");
  await page.waitForSelector("text=Refresh ▾");
});

test("a statement that runs tells how far it is, and is cancelled", async ({ page }) => {
  await type(page, "select count() from long_sequence(2000000000000) where rnd_double() < 0");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector(".results [role=status]:has-text(' read ')");
  await page.click("text=Cancel");
  await page.waitForSelector(".results .error:has-text('Cancelled')");
});

test("the tree shows tables with their columns, and changes them when that is confirmed", async ({ page, server }) => {
  await server.exec("create table prices (symbol symbol, bid double, at timestamp) timestamp(at) partition by day");
  await server.exec("insert into prices values ('a', 1.5, '2026-01-01')");
  await page.click("[aria-label='Refresh the tables']");
  await page.click(".tree .name:has-text('prices')");
  await page.waitForSelector(".tree .column:has-text('bid')");
  const columns = (await textsOf(page, ".tree .column")).map((text) => text.replace(/\s+/g, " "));
  assert.deepEqual(columns, ["symbol SYMBOL", "bid DOUBLE", "at TIMESTAMP · time"]);
  assert.match(await page.innerText(".tree .details"), /on disk · partitioned by day · last write 20/);
  const choose = async (name: string) => {
    await page.click("[aria-label^='Actions of ']");
    await page.click(`.menu >> text=${name}`);
  };
  await choose("Show rows");
  await page.waitForSelector(".grid .row");
  assert.equal(await page.innerText(".grid [role=gridcell]"), "a");
  await choose("Show partitions");
  await page.waitForSelector(".grid [role=gridcell]:text-is('2026-01-01')");
  await choose("Add a column");
  await page.fill(".dialog [name=name]", "odd name");
  await page.selectOption(".dialog [name=type]", "INT");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".tree .column:has-text('odd name')");
  await choose("Rename");
  await page.fill(".dialog [name=name]", "quotes");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".tree .name:has-text('quotes')");
  await page.click(".tree .name:has-text('quotes')");
  await page.click(".tree .column:has-text('bid') .name");
  await page.click(".menu >> text=Drop");
  assert.equal(await page.innerText(".dialog pre"), "alter table quotes drop column bid;");
  await page.click(".dialog button.danger");
  await page.waitForSelector(".tree .column:has-text('bid')", { state: "detached" });
  await choose("Show its definition");
  await page.waitForSelector(".cm-line:has-text('CREATE TABLE')");
  await choose("Remove all rows");
  assert.equal(await page.innerText(".dialog pre"), "truncate table quotes;");
  await page.click(".dialog button.danger");
  await page.waitForSelector(".tree .name:has-text('0 rows')");
  await server.exec("insert into quotes (symbol, at) values ('a', '2026-01-01')");
  await choose("Drop");
  assert.equal(await page.innerText(".dialog pre"), "drop table quotes;");
  await page.click(".dialog >> text=Cancel");
  assert.equal((await server.exec("select count() from quotes")).dataset?.[0][0], 1);
  await choose("Drop");
  await page.click(".dialog button.danger");
  await page.waitForSelector(".tree:not(:has(.name))");
});

test("a view is shown as such, with its rows and its definition", async ({ page, server }) => {
  await server.exec("create view few as (select x from long_sequence(7))");
  await page.click("[aria-label='Refresh the tables']");
  const item = ".tree .item:has-text('few')";
  await page.waitForSelector(`${item} small:text-is('view')`);
  const choose = async (action: string) => {
    await page.click(`${item} [aria-haspopup=menu]`);
    await page.click(`.menu >> text=${action}`);
  };
  await choose("Show rows");
  await page.waitForSelector(".grid [role=gridcell]:text-is('7')");
  await choose("Show its definition");
  await page.waitForSelector(".cm-line:has-text('CREATE VIEW')");
  await choose("Drop");
  assert.equal(await page.innerText(".dialog pre"), "drop view few;");
  await page.click(".dialog button.danger");
  await page.waitForSelector(item, { state: "detached" });
});

test("a materialized view has its own actions", async ({ page, server }) => {
  await server.exec("create table ticks (ts timestamp, v long) timestamp(ts) partition by day wal");
  await server.exec("insert into ticks values ('2024-01-01', 5), ('2024-01-02', 6)");
  await server.exec("create materialized view daily as (select ts, sum(v) s from ticks sample by 1d)");
  const item = ".tree .item:has-text('daily')";
  await page.click("[aria-label='Refresh the tables']");
  await page.waitForSelector(item);
  const choose = async (action: string) => {
    await page.click(`${item} [aria-haspopup=menu]`);
    await page.click(`.menu >> text=${action}`);
  };
  await choose("Show its definition");
  await page.waitForSelector(".cm-line:has-text('CREATE MATERIALIZED VIEW')");
  await choose("Refresh it in full");
  assert.equal(await page.innerText(".dialog pre"), "refresh materialized view daily full;");
  await page.click(".dialog >> text=Cancel");
  await choose("Drop");
  assert.equal(await page.innerText(".dialog pre"), "drop materialized view daily;");
  await page.click(".dialog button.danger");
  await page.waitForSelector(item, { state: "detached" });
});

test("a table is created, and a refusal keeps what was typed", async ({ page, server }) => {
  await server.exec("create table taken (a int)");
  await page.click("[aria-label='Create a table']");
  await page.fill(".create-table [name=table]", "taken");
  await page.fill("[aria-label='Name of column 2']", "my price");
  await page.click("text=Add a column");
  await page.fill("[aria-label='Name of column 3']", "symbol");
  await page.selectOption("[aria-label='Type of column 3']", "SYMBOL");
  await page.selectOption(".create-table [name=partitionBy]", "HOUR");
  await page.click(".create-table button.main");
  await page.waitForSelector(".create-table .error:has-text('exists')");
  assert.equal(await page.inputValue("[aria-label='Name of column 2']"), "my price");
  await page.fill(".create-table [name=table]", "made");
  await page.click(".create-table button.main");
  await page.waitForSelector(".tree .name:has-text('made')");
  const { dataset } = await server.exec("select \"column\", type, designated from table_columns('made')");
  assert.deepEqual(dataset, [["ts", "TIMESTAMP", true], ["my price", "DOUBLE", false], ["symbol", "SYMBOL", false]]);
  assert.deepEqual((await server.exec("select partitionBy from tables() where table_name = 'made'")).dataset, [[
    "HOUR",
  ]]);
  // A question is asked again with what was typed.
  await page.click("[aria-label='Actions of made']");
  await page.click(".menu >> text=Rename");
  await page.fill(".dialog [name=name]", "taken");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".dialog pre:has-text('exists')");
  assert.equal(await page.inputValue(".dialog [name=name]"), "taken");
  await page.fill(".dialog [name=name]", "renamed");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".tree .name:has-text('renamed')");
});

/** Copy, file, statistics and chart take all of a million rows from the result that is there: the statement does not run again. */
async function readWhole(page: Page): Promise<void> {
  const statements: string[] = [];
  page.on("request", (request) => request.method() === "POST" && statements.push(request.url()));
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.click("text=Copy ▾");
  await page.click("text=As TSV");
  await page.waitForSelector(".notice:has-text('1,000,000 rows as TSV are in the clipboard')", { timeout: 60_000 });
  await page.click("text=Copy ▾");
  await page.click("text=As JSON");
  await page.waitForSelector(".notice:has-text('of 1,000,000 rows as JSON, the 32.0 MiB that a copy may have')");
  await page.click("text=Download ▾");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=All rows as CSV")]);
  const text = await Deno.readTextFile(await download.path());
  assert.ok(text.startsWith("x,rest,text\r\n1,1,row 1\r\n") && text.endsWith("\r\n1000000,1,row 1000000\r\n"));
  assert.equal(text.length, 20_777_805);
  await page.click(head(1), { button: "right" });
  await page.click(".menu >> text=Statistics");
  assert.match(
    await page.innerText(".dialog pre"),
    /^rows +1,000,000\nnot null +1,000,000\ndistinct +1,000,000\nsmallest +1\nlargest +1000000\naverage +500000\.5\n/,
  );
  await page.keyboard.press("Escape");
  assert.deepEqual(statements, []);
}

test("a million rows are scrolled to the last one, without holding them", async ({ page, server }) => {
  const summary = await run(page, "select x, x % 7 rest, 'row ' || x text from long_sequence(1000000)");
  assert.match(summary, /^1,000,000 rows · /);
  assert.equal(await page.getAttribute(".grid", "aria-rowcount"), "1000001");
  const rowAt = (index: number) =>
    page.waitForSelector(`.grid .row:not(.loading)[aria-rowindex="${index + 1}"] >> text=row ${index}`);
  await page.focus(".grid");
  await page.keyboard.press("Control+End");
  await rowAt(1_000_000);
  const box = (await page.locator(".grid").boundingBox())!;
  await page.mouse.move(box.x + 200, box.y + 200);
  await page.mouse.wheel(0, -26 * 1_000);
  await rowAt(999_000);
  await page.locator(".grid").evaluate((grid) => grid.scrollTo(0, (grid.scrollHeight - grid.clientHeight) / 2));
  await rowAt(500_005);
  assert.ok(await page.locator(".grid .row").count() < 100);
  await readWhole(page);
  // One file, which goes when the next statement runs.
  const files = () => [...Deno.readDirSync(`${server.root}/tmp/results`)].length;
  assert.equal(files(), 1);
  await page.click(head(2));
  await page.waitForSelector(`${head(2)}[aria-sort=ascending]`, { timeout: 120_000 });
  await page.waitForSelector(`.grid .row[aria-rowindex="2"] [aria-colindex="2"]:text-is("0")`);
  await run(page, "select 1");
  for (let k = 0; k < 50 && files() > 0; k++) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(files(), 0);
}, { isAlone: true });

test("sorted rows and a Parquet file are those of the result, not of another run; an expired one says so", async ({ page, server }) => {
  const random = "select x, rnd_double() y from long_sequence(50000)";
  for (const [statement, rows] of [[random, 50_000], [`${random} limit 20`, 20]] as const) {
    await run(page, statement);
    await page.click(head(2));
    await page.waitForSelector(`${head(2)}[aria-sort=ascending]`, { timeout: 60_000 });
    await page.waitForSelector(`.grid .row[aria-rowindex="2"]:not(.loading)`);
    const [x, y] = await textsOf(page, `.grid .row[aria-rowindex="2"] [role=gridcell]`);
    await page.click("text=Download ▾");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=All rows as Parquet")]);
    await Deno.copyFile(await download.path(), `${server.root}/import/result.parquet`);
    const { dataset } = await server.exec(
      "select count(), first(x), first(y) from (read_parquet('result.parquet') order by y)",
    );
    assert.deepEqual(dataset?.[0].map(String), [String(rows), x, y]);
  }
  const id = await resultOf(page, random);
  await fetch(`${server.http}/api/v1/sql/results?id=${id}`, { method: "DELETE" });
  await page.click(head(2));
  const reply = page.waitForResponse((response) => response.request().method() === "POST" && response.ok());
  await page.click("text=Run again");
  const again = (await (await reply).json()).id;
  assert.notEqual(again, id);
  await page.waitForSelector(".results[aria-busy=false] .grid .row:not(.loading)");
  await page.click("text=Download ▾");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=All rows as Parquet")]);
  assert.match(download.suggestedFilename(), /\.parquet$/);
});

/** Runs a statement, and gives the name of its result in the server. */
async function resultOf(page: Page, sql: string): Promise<string> {
  const reply = page.waitForResponse((response) =>
    response.request().method() === "POST" && response.url().endsWith("/sql/results")
  );
  await run(page, sql);
  return (await (await reply).json()).id;
}

test("results outlive a reload, small and large ones; stored columns tell their sizes", async ({ page, server }) => {
  await server.exec("create table stored as (select x % 7 small, x::varchar text from long_sequence(50000))");
  await run(page, "select 6 * 7 answer; select x, 'row ' || x text from long_sequence(300000)", "Control+Shift+Enter");
  const reload = async () => {
    await page.reload();
    await page.waitForSelector(".summary[role=status]:has-text('300,000 rows')");
  };
  await reload();
  await page.focus(".grid");
  await page.keyboard.press("Control+End");
  await page.waitForSelector(".grid .row:not(.loading) >> text=row 300000");
  await page.click(".runs button >> nth=0");
  await page.waitForSelector(".grid [role=gridcell]:text-is('42')");
  await page.click(".runs button >> nth=1");
  await server.stop();
  await using _again = await startServer({ root: server.root, httpPort: server.httpPort, keepRoot: true });
  await page.waitForSelector(".away", { state: "hidden" });
  await reload();
  await page.click(".tree .name:has-text('stored')");
  await page.waitForSelector(".tree .column:has-text('small') .storage:text-matches('KiB of .* · frame')");
  await page.focus(".grid");
  await page.keyboard.press("Control+End");
  await page.click("text=Run again");
  await page.waitForSelector(".grid .row:not(.loading)");
}, { isAlone: true });

test("a result that has expired says so, and runs again by a click", async ({ page, server }) => {
  await run(page, "select x, rpad('x', 20, 'y') text from long_sequence(300000)");
  const [{ name }] = [...Deno.readDirSync(`${server.root}/tmp/results`)];
  await Deno.remove(`${server.root}/tmp/results/${name}`);
  await page.focus(".grid");
  await page.keyboard.press("Control+End");
  await page.click("text=Run again");
  await page.waitForSelector(".grid .row:not(.loading)");
  await page.focus(".grid");
  await page.keyboard.press("Control+End");
  await page.waitForSelector(`.grid .row:not(.loading) >> text=300000`);
}, { isAlone: true });

test("EXPLAIN ANALYZE is a tree with rows, times and bytes", async ({ page }) => {
  await run(page, "explain analyze select x % 10 k, count() from long_sequence(1000000) where x > 5 order by 2");
  await page.waitForSelector(".plan tbody tr");
  const operators = await textsOf(page, ".plan tbody th");
  assert.match(operators[0], /Sort/);
  assert.ok(operators.some((text) => text.includes("Aggregate")));
  assert.equal(await page.locator(".plan .costliest").count(), 1);
  assert.match((await textsOf(page, ".plan tbody td.share"))[0], /ms.*%/s);
  await page.click("text=Text");
  assert.match(await page.innerText(".grid .row:last-child [role=gridcell]"), /^Execution time/);
  await page.click("text=Tree");
});
