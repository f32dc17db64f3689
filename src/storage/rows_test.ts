import assert from "node:assert/strict";
import { newSchema } from "./definitions.ts";
import { halvesOf, type Rows, sorting, timeAt } from "./rows.ts";
import { newTable } from "./test-rows.ts";

const schema = newSchema(1, newTable("t", { ts: "TIMESTAMP", v: "LONG" }, "ts"));

/** Parts of rows whose times are a permutation of 0 to their count; `v` is three times the time. */
function shuffled(rowCount: number, partCount: number): Rows[] {
  const partRows = rowCount / partCount;
  return Array.from({ length: partCount }, (_, part) => {
    const times = BigInt64Array.from({ length: partRows }, (_, k) => BigInt((part * partRows + k) * 7919 % rowCount));
    const values = [times, times.map((time) => 3n * time)].map(({ buffer }) => ({ values: new Uint8Array(buffer) }));
    return { rowCount: partRows, columns: values, times: halvesOf(values[0].values, partRows) };
  });
}

Deno.test("sorting() takes steps in proportion to the rows, so that a step stays short", () => {
  const [few, many] = [1 << 19, 1 << 21].map((rowCount) => {
    const steps = sorting(schema, shuffled(rowCount, 16));
    let count = 0, step = steps.next();
    for (; !step.done; step = steps.next()) count++;
    assert.equal(step.value.length, 1);
    const [{ columns, times }] = step.value;
    const threes = new BigInt64Array(columns[1]!.values.buffer);
    const isWrong = threes.findIndex((value, k) => value !== 3n * BigInt(k) || timeAt(times!, k) !== BigInt(k));
    assert.equal(isWrong, -1);
    return count;
  });
  assert.ok(many > 3 * few, `${few} steps, and ${many} of four times as many rows`);
});
