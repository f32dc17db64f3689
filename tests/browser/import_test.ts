/** Import of CSV and Parquet files in the console. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { startServer } from "../server.ts";
import { test } from "./visit.ts";

const CSV = "ts,symbol,price\n2026-01-01T00:00:00.000000Z,BTC-USD,97000.5\n2026-01-01T00:00:01.000000Z,ETH-USD,3100\n";

/** Drags a file from outside the browser over the editor and drops it there. */
async function drop(page: Page, path: string): Promise<void> {
  const { x, y } = (await page.locator(".cm-content").boundingBox())!;
  const session = await page.context().newCDPSession(page);
  const send = (type: "dragEnter" | "dragOver" | "drop") =>
    session.send("Input.dispatchDragEvent", {
      ...{ type, x: x + 20, y: y + 20 },
      data: { items: [], files: [path], dragOperationsMask: 1 },
    });
  await send("dragEnter");
  await send("dragOver");
  await page.waitForSelector(".drop-here");
  await send("drop");
  await page.waitForSelector(".drop-here", { state: "detached" });
}

test("a CSV file that is dropped on the page is shown, imported and reported", async ({ page, server }) => {
  const path = join(server.root, "my prices.csv");
  await Deno.writeTextFile(path, CSV);
  const before = await page.innerText(".cm-content");
  await drop(page, path);
  assert.equal(await page.innerText(".cm-content"), before, "the editor takes nothing of it");
  await page.waitForSelector(".import td:has-text('97000.5')");
  assert.equal(await page.inputValue(".import [name=name]"), "my_prices");
  const found = await page.locator(".import .mapping tbody td:nth-child(2)").allInnerTexts();
  assert.deepEqual(found, ["TIMESTAMP", "VARCHAR", "DOUBLE"]);
  await page.fill("[aria-label='Name of price in the table']", "paid");
  await page.selectOption("[aria-label='Type of symbol in the table']", "SYMBOL");
  await page.selectOption(".import [name=timestamp]", "ts");
  await page.click(".import button.main");
  await page.waitForSelector(".import [role=status]:has-text('2 rows imported into my_prices')");
  assert.deepEqual(
    (await page.locator(".import tbody tr").allInnerTexts()).map((line) => line.split(/\s+/)),
    [["ts", "TIMESTAMP", "0"], ["symbol", "SYMBOL", "0"], ["paid", "DOUBLE", "0"]],
  );
  await page.click(".import button.main");
  await page.waitForSelector(".tree .name:has-text('my_prices')");
  const { dataset } = await server.exec("select count(), max(paid) from my_prices");
  assert.deepEqual(dataset?.[0], [2, 97000.5]);
  await importBadLines(page, server.root);
  const bad = await server.exec("select * from bad order by n limit 2");
  assert.deepEqual(bad.columns?.map(({ name }) => name), ["n", "price"]);
  assert.deepEqual(bad.dataset, [[0, null], [1, 1.5]]);
});

/** Values and lines that do not fit are listed, and all of them are in a file. A column is left out. */
async function importBadLines(page: Page, root: string): Promise<void> {
  const path = join(root, "bad.csv");
  // The form of a file is found from its first 1,000 lines.
  const lines = Array.from({ length: 1_200 }, (_, k) => `${k},note ${k},${k % 2 === 0 ? `bad ${k}` : 1.5}`);
  await Deno.writeTextFile(path, `n,note,price\n${lines.join("\n")}\n1,2,3,4\n`);
  await drop(page, path);
  await page.waitForSelector(".import td:has-text('bad 0')");
  await page.uncheck(".import .mapping tr:has-text('note') [type=checkbox]");
  await page.selectOption("[aria-label='Type of price in the table']", "DOUBLE");
  await page.click(".import button.main");
  await page.waitForSelector(".import h3:has-text('The first 100 of 601 values and lines that did not fit')");
  const first = await page.locator(".import .faults tbody tr >> nth=1").allInnerTexts();
  assert.deepEqual(first[0].split("\t"), ["4", "price", "bad 2", "expected DOUBLE"]);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Download the list")]);
  const text = await Deno.readTextFile(await download.path());
  assert.ok(text.startsWith("line,column,value,reason\r\n2,price,bad 0,expected DOUBLE\r\n"), text.slice(0, 100));
  assert.ok(text.endsWith('\r\n1202,,"1,2,3,4","found 4 values, expected 3"\r\n'), text.slice(-100));
  await page.click(".import button.main");
}

test("a file that is refused says why, and nothing is kept", async ({ page, server }) => {
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.click("[aria-label='Import a CSV or Parquet file']"),
  ]);
  const text = CSV.replace("BTC-USD,97000.5", "BTC-USD,97000.5,more,than,columns") + CSV.repeat(2);
  await chooser.setFiles({ name: "bad.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  await page.selectOption(".import [name=atomicity]", "abort");
  await page.click(".import button.main");
  await page.waitForSelector(".import [role=alert]");
  assert.match(await page.innerText(".import [role=alert]"), /bad syntax|line 2/);
  assert.equal((await server.exec("select count() from tables()")).dataset?.[0][0], 0);
  // What was chosen stays for another attempt, which leaves the bad line out.
  assert.equal(await page.inputValue(".import [name=atomicity]"), "abort");
  await page.selectOption(".import [name=atomicity]", "skipRow");
  await page.click(".import button.main");
  await page.waitForSelector(".import .faults td:has-text('found 6 values, expected 3')");
});

test("a server that goes away keeps what was chosen for an import, which then goes on", async ({ page, server }) => {
  const path = join(server.root, "prices.csv");
  await Deno.writeTextFile(path, CSV);
  await drop(page, path);
  await page.waitForSelector(".import td:has-text('97000.5')");
  assert.equal(await page.inputValue(".import [name=timestamp]"), "ts", "the time column is found");
  await page.fill("[aria-label='Name of ts in the table']", "at");
  await page.fill("[aria-label='Name of price in the table']", "paid");
  assert.equal(await page.inputValue(".import [name=timestamp]"), "at");
  await page.fill(".import [name=name]", "kept");
  await server.stop();
  await page.click(".import button.main");
  await page.waitForSelector(".import [role=alert]:has-text('cannot be reached')");
  await page.waitForSelector(".away:not([hidden])");
  await using again = await startServer({ root: server.root, httpPort: server.httpPort, keepRoot: true });
  await page.waitForSelector(".away", { state: "hidden" });
  assert.equal(await page.inputValue("[aria-label='Name of price in the table']"), "paid");
  await page.click(".import button.main");
  await page.waitForSelector(".import [role=status]:has-text('2 rows imported into kept')");
  assert.deepEqual((await again.exec("select max(paid), max(at) from kept")).dataset, [[
    97000.5,
    "2026-01-01T00:00:01.000000Z",
  ]]);
}, { isAlone: true });

test("a Parquet file is shown with its types, mapped, imported and reported", async ({ page, server }) => {
  const files = () => [...Deno.readDirSync(`${server.root}/import/.sundial-uploads`)].length;
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.click("[aria-label='Import a CSV or Parquet file']"),
  ]);
  await chooser.setFiles(`${server.root}/import/trades.parquet`);
  await page.waitForSelector(".import .mapping tbody tr");
  assert.equal(files(), 1);
  assert.match(await page.innerText(".import form p"), /^100,000 rows, \d+ columns/);
  assert.equal(await page.inputValue(".import [name=name]"), "trades");
  const { columns } = await server.exec("select * from read_parquet('trades.parquet') limit 1");
  const found = await page.locator(".import .mapping tbody td:nth-child(2)").allInnerTexts();
  assert.deepEqual(found, columns!.map(({ type }) => type));
  await page.fill("[aria-label='Name of price in the table']", "paid");
  await page.uncheck(".import .mapping tr:has-text('side') [type=checkbox]");
  await page.click(".import button.main");
  await page.waitForSelector(".import [role=status]:has-text('100,000 rows imported into trades')");
  await page.click(".import button.main");
  await page.waitForSelector(".tree .name:has-text('trades')");
  const { dataset } = await server.exec("select count(), count(paid) from trades");
  assert.deepEqual(dataset?.[0], [100_000, 100_000]);
  for (let k = 0; k < 50 && files() > 0; k++) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(files(), 0);
  // Rows are added to a table that exists.
  await drop(page, `${server.root}/import/trades.parquet`);
  await page.waitForSelector(".import .mapping tbody tr");
  await page.fill("[aria-label='Name of price in the table']", "paid");
  await page.uncheck(".import .mapping tr:has-text('side') [type=checkbox]");
  await page.waitForSelector(".import label:has-text('(rows will be added)')");
  await page.click(".import button.main");
  await page.waitForSelector(".import [role=status]:has-text('100,000 rows imported into trades')");
  assert.equal((await server.exec("select count() from trades")).dataset?.[0][0], 200_000);
});

test("a file that is not Parquet gets an error that says so", async ({ page }) => {
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.click("[aria-label='Import a CSV or Parquet file']"),
  ]);
  await chooser.setFiles({ name: "bad.parquet", mimeType: "", buffer: Buffer.from("not Parquet") });
  await page.waitForSelector(".import [role=alert]:has-text('cannot be read as Parquet')");
});
