/** Charts in the console. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { run, test } from "./visit.ts";

const SERIES = "select dateadd('h', x::int, '2026-01-01T00:00:00Z'::timestamp) at";

async function chartOf(page: Page, columns: string): Promise<string> {
  await run(page, `${SERIES}, ${columns} from long_sequence(48)`);
  await page.waitForSelector(".chart canvas");
  return await page.getAttribute(".chart", "aria-label") ?? "";
}

test("a result is drawn as what it looks like, and saved as a picture", async ({ page }) => {
  await run(page, "select 1 x, 2 y");
  await page.click(".results button:text-is('Chart')");
  assert.equal(await chartOf(page, "case when x % 2 = 0 then 'even' else 'odd' end s, x v"), "Chart of odd, even");
  await page.waitForSelector("button:text-is('Line ▾')");
  await run(page, "select x::varchar name, x height from long_sequence(5)");
  await page.waitForSelector("button:text-is('Bar ▾')");
  await run(page, "select x * 7 % 11 a, x b from long_sequence(50)");
  await page.waitForSelector("button:text-is('Scatter ▾')");
  assert.equal(await chartOf(page, "x open, x + 2 high, x - 1 low, x + 1 close"), "Chart of open, high, low, close");
  await page.click("button:text-is('Candlestick ▾')");
  await page.click(".menu >> text=Area");
  await page.waitForSelector("button:text-is('Area ▾')");
  await chartOf(page, "x open, x + 2 high, x - 1 low, x + 3 close");
  await page.waitForSelector("button:text-is('Area ▾')");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Save as PNG")]);
  const picture = await Deno.readFile(await download.path());
  assert.deepEqual([...picture.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
  assert.ok(picture.length > 5000);
  const [drawing] = await Promise.all([page.waitForEvent("download"), page.click("text=Save as SVG")]);
  const svg = await Deno.readTextFile(await drawing.path());
  assert.match(svg, /^<svg xmlns/);
  assert.equal(svg.match(/fill-opacity/g)?.length, 4);
  assert.match(svg, />open</);
});

test("a chart fills its panel, and a result without numbers shows what is missing", async ({ page }) => {
  await run(page, "select 'only text' t");
  await page.click(".results button:text-is('Chart')");
  await page.waitForSelector("text=A chart needs rows with a column of numbers");
  await chartOf(page, "x v");
  const widths = async () =>
    await page.locator(".chart").evaluate((box) => [box.clientWidth, box.ownerDocument.body.scrollWidth]);
  const before = await widths();
  assert.equal(before[1], 1100);
  await page.setViewportSize({ width: 700, height: 600 });
  for (let tries = 0; tries < 100 && (await widths())[0] === before[0]; tries++) await page.waitForTimeout(50);
  assert.equal((await widths())[0], before[0] - 400);
});

test("a zoomed chart asks the server for finer samples, and is moved along", async ({ page, server }) => {
  await server.exec(
    `create table t as (
       select timestamp_sequence('2026-01-01', 1000000) ts, x % 60 v from long_sequence(864000)
     ) timestamp(ts) partition by day`,
  );
  await run(page, "select ts, avg(v) from t sample by 1h");
  await page.click(".results button:text-is('Chart')");
  await page.waitForSelector(".chart .u-over");
  const answered = () => page.waitForResponse((reply) => reply.request().method() === "POST");
  // The first reply may come before the rows.
  const whole = page.waitForResponse(async (reply) =>
    reply.url().includes("/sql/results") && reply.request().method() !== "DELETE" &&
    (await reply.json()).state === "done"
  );
  const zoomed = answered();
  const box = (await page.locator(".chart .u-over").boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.4, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 30, { steps: 5 });
  await page.mouse.up();
  assert.equal((await (await zoomed).json()).bucket, "5m");
  const { rows } = await (await whole).json();
  assert.ok(rows > 200 && rows < 400, `${rows} rows`);
  const moved = answered();
  await page.click("text=Later →");
  assert.equal((await (await moved).json()).bucket, "5m");
  await page.click("text=Show all");
  await page.waitForSelector("text=Drag zooms in");
});

test("several series are drawn as a heat map", async ({ page }) => {
  await run(page, `${SERIES}, x % 12 a, x % 7 b, x c from long_sequence(200)`);
  await page.click(".results button:text-is('Chart')");
  await page.click("button:text-is('Line ▾')");
  await page.click(".menu >> text=Heat map");
  await page.waitForSelector("button:text-is('Heat map ▾')");
  await page.waitForSelector(".chart canvas");
  assert.match(await page.innerText(".chart .scale"), /^0\s+200$/);
});

test("a million rows are drawn whole, by their extremes, and finer where the chart is zoomed", async ({ page }) => {
  await run(
    page,
    `${SERIES.replace("'h'", "'s'")}, case when x = 700000 then 5000 else x % 10 end v from long_sequence(1000000)`,
  );
  await page.click(".results button:text-is('Chart')");
  await page.waitForSelector(".hint:has-text('The smallest and the largest value of each 64 rows are drawn')");
  const [drawing] = await Promise.all([page.waitForEvent("download"), page.click("text=Save as SVG")]);
  // The axis goes to the one large value.
  assert.ok((await Deno.readTextFile(await drawing.path())).includes(">5,000<"));
  const box = (await page.locator(".chart .u-over").boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.4, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.43, box.y + 30, { steps: 5 });
  await page.mouse.up();
  // All rows of so short a range are drawn.
  await page.waitForSelector(".hint:empty", { state: "attached" });
});
