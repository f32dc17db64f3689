/** The console with much of everything: columns, text in one value, tables. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { run, test, type Visit } from "./visit.ts";

/** Compressed size of the page and its files. */
async function loadedBytes(page: Page): Promise<number> {
  const sizes = await page.evaluate(() =>
    [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
      .map((entry) => entry as unknown as { name: string; encodedBodySize: number; initiatorType: string })
      .filter(({ initiatorType }) => initiatorType !== "fetch" && initiatorType !== "xmlhttprequest")
      .map(({ encodedBodySize }) => encodedBodySize)
  );
  const sum = sizes.reduce((sum, size) => sum + size, 0);
  assert.ok(sum > 50_000, `${sum} bytes of ${sizes.length} files`);
  return sum;
}

test("a table of 500 columns is listed and scrolled across, and only columns in view are in the page", async ({ page, server }) => {
  assert.ok(await loadedBytes(page) < 400_000);
  const columns = Array.from({ length: 500 }, (_, k) => `x * ${k + 1} c${k + 1}`).join(", ");
  await server.exec(`create table wide as (select ${columns} from long_sequence(5000))`);
  await page.click("[aria-label='Refresh the tables']");
  await page.click(".tree .name:has-text('wide')");
  await page.waitForSelector(".tree .column:has-text('c500')");
  assert.equal(await page.locator(".tree .column").count(), 500);
  assert.match(await run(page, "select * from wide"), /^5,000 rows/);
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
  await page.waitForSelector(".dialog h2:has-text('10,000,001 characters')");
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

const TABLES = 5_000;
/** `line.auto.create.new.tables.max`: of one request. */
const TABLES_A_REQUEST = 1_000;

const manyTables = async ({ page, server }: Visit) => {
  const names = Array.from({ length: TABLES }, (_, k) => `table_${String(k).padStart(4, "0")}`), last = names.at(-1)!;
  for (let first = 0; first < TABLES; first += TABLES_A_REQUEST) {
    const body = names.slice(first, first + TABLES_A_REQUEST).map((name) => `${name} x=1i 1700000000000000000\n`).join(
      "",
    );
    const reply = await fetch(`${server.http}/write`, { method: "POST", body });
    assert.equal(reply.status, 204, await reply.text());
  }
  await page.click("[aria-label='Refresh the tables']");
  await page.waitForSelector(".tree input[placeholder='Search 5,000 tables']");
  assert.equal(await page.locator(".tree .name").count(), 500);
  await page.waitForSelector(".tree .empty:has-text('4,500 more')");
  await page.fill(".tree input", last.slice(-4));
  await page.click(`.tree .name:has-text('${last}')`);
  await page.waitForSelector(".tree .column:has-text('timestamp')");
  assert.equal(await page.locator(".tree .item:not(.column)").count(), 1);
};

// Waiting for the disk at each table would take most of the time.
test("5,000 tables are listed and searched", manyTables, { env: { SVC_CAIRO_COMMIT_MODE: "nosync" } });
