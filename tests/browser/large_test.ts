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

/** Making 5,000 takes some 40 seconds: see CONTRIBUTING.md. */
const TABLES = Number(Deno.env.get("SUNDIAL_TABLES") ?? 600);

test("thousands of tables are listed and searched", async ({ page, server }) => {
  const names = Array.from({ length: TABLES }, (_, k) => `table_${String(k).padStart(4, "0")}`), last = names.at(-1)!;
  const make = async () => {
    for (let name = names.pop(); name !== undefined; name = names.pop()) {
      const { error } = await server.exec(`create table ${name} (ts timestamp, x long) timestamp(ts) partition by day`);
      assert.equal(error, undefined);
    }
  };
  await Promise.all(Array.from({ length: 8 }, make));
  await page.click("[aria-label='Refresh the tables']");
  await page.waitForSelector(`.tree input[placeholder='Search ${TABLES.toLocaleString("en")} tables']`);
  assert.equal(await page.locator(".tree .name").count(), 500);
  await page.waitForSelector(`.tree .empty:has-text('${(TABLES - 500).toLocaleString("en")} more')`);
  await page.fill(".tree input", last.slice(-4));
  await page.click(`.tree .name:has-text('${last}')`);
  await page.waitForSelector(".tree .column:has-text('ts')");
  assert.equal(await page.locator(".tree .item:not(.column)").count(), 1);
});
