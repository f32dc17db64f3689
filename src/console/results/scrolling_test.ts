import assert from "node:assert/strict";
import { scaleOf } from "./scrolling.ts";

const ROW_PX = 26, VIEW_PX = 500;

Deno.test("few rows are scrolled pixel by pixel", () => {
  const { heightPx, toRows, toScroll } = scaleOf(1_000, ROW_PX, VIEW_PX);
  assert.deepEqual([heightPx, toRows(1_234), toScroll(1_234)], [26_000, 1_234, 1_234]);
  assert.equal(scaleOf(3, ROW_PX, VIEW_PX).toRows(0), 0);
});

Deno.test("the last of many rows can be reached in an element of limited height", () => {
  for (const rowCount of [1_000_000, 50_000_000, 2_000_000_000]) {
    const { heightPx, toRows, toScroll } = scaleOf(rowCount, ROW_PX, VIEW_PX);
    assert.ok(heightPx < 17_000_000);
    assert.equal(toRows(0), 0);
    assert.equal(Math.round(toRows(heightPx - VIEW_PX)), rowCount * ROW_PX - VIEW_PX);
    assert.equal(Math.round(toRows(toScroll(123_456_7))), 123_456_7);
  }
});
