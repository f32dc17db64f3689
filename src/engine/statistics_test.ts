import assert from "node:assert/strict";
import type { AggregateNode } from "../sql/plan.ts";
import { answerFromStatistics } from "./statistics.ts";
import { chunkAt, scanOf, segmentOf, sourceOf } from "./testing.ts";

const chunk = (
  nullCount: number,
  min?: number | bigint,
  max?: number | bigint,
  sum?: bigint,
) => chunkAt(0, { nullCount, min, max, sum });

const source = sourceOf([
  segmentOf(0, 10, [chunk(2, 5n, 9n, 40n), chunk(0, -1.5, 2), chunk(0, -(2n ** 51n), 0n, -(2n ** 51n))], [0n, 9n]),
  segmentOf(1, 20, [undefined, chunk(20), chunk(19, 1n, 1n, 1n)], [10n, 29n]),
]);
const scan = scanOf([{ name: "l", type: "LONG" }, { name: "d", type: "DOUBLE" }, { name: "m", type: "LONG" }]);

function aggregate(calls: [name: string, index?: number][], input = scan): AggregateNode {
  const aggregates = calls.map(([name, index]) => {
    const args = index === undefined ? [] : [{ kind: "column" as const, index, type: scan.columns[index].type }];
    return { function: `${name}(${args.map((arg) => arg.type).join()})`, args, distinct: false, type: "LONG", at: 0 };
  });
  return { node: "aggregate", input, keys: [], aggregates, columns: [], timestamp: -1, order: "none" };
}

Deno.test("answerFromStatistics() computes count, sum, min, max and exact averages over segments, with later columns as nulls", () => {
  const plan = answerFromStatistics(
    aggregate([["count"], ["count", 0], ["min", 0], ["max", 0], ["sum", 0], ["min", 1], ["max", 1], ["avg", 0]]),
    [source],
  );
  assert.deepEqual(plan.node === "values" && plan.rows, [[30n, 8n, 5n, 9n, 40n, -1.5, 2, 5]]);
});

const left = [
  { title: "a sum of doubles, which depends on the order", plan: aggregate([["sum", 1]]) },
  { title: "an average of doubles", plan: aggregate([["avg", 1]]) },
  { title: "an average of a sum that doubles may not have exactly", plan: aggregate([["avg", 2]]) },
  { title: "keys", plan: { ...aggregate([["count"]]), keys: [{ kind: "column" as const, index: 0, type: "LONG" }] } },
  {
    title: "a predicate",
    plan: aggregate([["count"]], { ...scan, predicate: { kind: "constant", value: true, type: "BOOLEAN" } }),
  },
  { title: "an interval that cuts a segment", plan: aggregate([["count"]], { ...scan, intervals: [[5n, 100n]] }) },
];
for (const { title, plan } of left) {
  Deno.test(`answerFromStatistics() leaves ${title}`, () => {
    assert.equal(answerFromStatistics(plan, [source]), plan);
  });
}
