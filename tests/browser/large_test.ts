/** The console with much of everything: columns, text in one value, tables. */
import assert from "node:assert/strict";
import { run, test } from "./visit.ts";

test("500 columns are scrolled across, and only those in view are in the page", async ({ page }) => {
  const columns = Array.from({ length: 500 }, (_, k) => `x * ${k + 1} c${k + 1}`).join(", ");
  assert.match(await run(page, `select ${columns} from long_sequence(5000)`), /^5,000 rows/);
  assert.ok(await page.locator(".grid [role=columnheader]").count() < 40);
  await page.focus(".grid");
  await page.keyboard.press("End");
  await page.waitForSelector(".grid [role=columnheader]:has-text('c500')");
  await page.keyboard.press("Control+End");
  await page.waitForSelector(".grid .row[aria-rowindex='5001'] >> text='2500000'");
  assert.ok(await page.locator(".grid [role=gridcell]").count() < 2_000);
  // No digit is cut off.
  const cut = await page.locator(".grid .row [role=gridcell]").evaluateAll((cells) =>
    cells.filter((cell) => cell.scrollWidth > cell.clientWidth).length
  );
  assert.equal(cut, 0);
});

test("a text of 10 MB is shown in part, and copied whole", async ({ page }) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await run(page, "select x, repeat('0123456789', 1000000) || x long from long_sequence(3)");
  await page.waitForSelector(".grid .row:nth-child(3) [aria-colindex='2']:has-text('0123456789')");
  await page.dblclick(".grid .row:nth-child(3) [aria-colindex='2']");
  await page.waitForSelector(".dialog h2:has-text('10000001 characters')");
  assert.ok((await page.innerText(".dialog pre")).length < 300_000);
  await page.click(".dialog button.main");
  await page.waitForSelector(".notice:not([hidden])");
  const copied = await page.evaluate(async () => {
    const { clipboard } = navigator as unknown as { clipboard: { readText(): Promise<string> } };
    const text = await clipboard.readText();
    return [text.length, text.slice(-3)];
  });
  assert.deepEqual(copied, [10_000_001, "893"]);
});

test("5,000 tables are listed and searched", async ({ page, server }) => {
  await server.exec("create table table_4999 (ts timestamp, x long) timestamp(ts) partition by day");
  // Making so many takes minutes: the list has names of tables that are not there.
  const dataset = Array.from(
    { length: 5_000 },
    (_, k) => [`table_${String(k).padStart(4, "0")}`, "ts", "DAY", 1_000, 65_536, null],
  );
  await page.route("**/exec", async (route) => {
    const isList = new URLSearchParams(route.request().postData() ?? "").get("query")?.includes("table_storage()");
    if (!isList) return await route.continue();
    const columns = ["a", "b", "c", "d", "e", "f"].map((name) => ({ name, type: "VARCHAR" }));
    await route.fulfill({ json: { columns, dataset, count: dataset.length } });
  });
  await page.click("[aria-label='Refresh the tables']");
  await page.waitForSelector(".tree input[placeholder='Search 5,000 tables']");
  assert.ok(await page.locator(".tree .name").count() <= 500);
  await page.waitForSelector(".tree .empty:has-text('4500 more')");
  await page.fill(".tree input", "4999");
  await page.click(".tree .name:has-text('table_4999')");
  await page.waitForSelector(".tree .column:has-text('ts')");
  assert.equal(await page.locator(".tree .item:not(.column)").count(), 1);
});
