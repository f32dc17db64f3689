import assert from "node:assert/strict";
import type { AggregateNode, ScanNode } from "../sql/plan.ts";
import type { ColumnChunk, ScanSource } from "../storage/contract.ts";
import { answerFromStatistics } from "./statistics.ts";

const chunk = (
  nullCount: number,
  min?: number | bigint,
  max?: number | bigint,
  sum?: number | bigint,
): ColumnChunk => ({
  address: 0,
  file: 0,
  offset: 0,
  sizeBytes: 0,
  crc: 0,
  valueBytes: 0,
  stats: { nullCount, min, max, sum },
});

const source: ScanSource = {
  tableId: 1,
  version: 1,
  rowCount: 30,
  sorted: true,
  directory: "/t1",
  segments: [
    {
      rowCount: 10,
      timestampMin: 0n,
      timestampMax: 9n,
      uid: 0,
      partition: 0n,
      chunks: [chunk(2, 5n, 9n, 40n), chunk(0, -1.5, 2, 7)],
    },
    { rowCount: 20, timestampMin: 10n, timestampMax: 29n, uid: 1, partition: 0n, chunks: [undefined, chunk(20)] },
  ],
  dictionaries: [undefined, undefined],
};
const scan: ScanNode = {
  node: "scan",
  id: 0,
  tableId: 1,
  tableName: "t",
  columnIds: [0, 1],
  reverse: false,
  rowId: false,
  columns: [{ name: "l", type: "LONG" }, { name: "d", type: "DOUBLE" }],
  timestamp: -1,
  order: "none",
};

function aggregate(calls: [name: string, index?: number][], input = scan): AggregateNode {
  const aggregates = calls.map(([name, index]) => {
    const args = index === undefined ? [] : [{ kind: "column" as const, index, type: scan.columns[index].type }];
    return { function: `${name}(${args.map((arg) => arg.type).join()})`, args, distinct: false, type: "LONG", at: 0 };
  });
  return { node: "aggregate", input, keys: [], aggregates, columns: [], timestamp: -1, order: "none" };
}

Deno.test("answerFromStatistics() computes count, sum, min and max over segments, with later columns as nulls", () => {
  const plan = answerFromStatistics(
    aggregate([["count"], ["count", 0], ["min", 0], ["max", 0], ["sum", 0], ["min", 1], ["max", 1]]),
    [source],
  );
  assert.deepEqual(plan.node === "values" && plan.rows, [[30n, 8n, 5n, 9n, 40n, -1.5, 2]]);
});

const left = [
  { title: "a sum of doubles, which depends on the order", plan: aggregate([["sum", 1]]) },
  { title: "an average", plan: aggregate([["avg", 0]]) },
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
