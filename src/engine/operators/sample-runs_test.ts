import assert from "node:assert/strict";
import { createRegistry, functionId } from "../../sql/functions/mod.ts";
import type { AggregateCall, Column, Expr, Plan, Sampling, ScanNode } from "../../sql/plan.ts";
import type { ScanSource } from "../../storage/contract.ts";
import type { Value } from "../../types/mod.ts";
import type { Operator, QueryContext } from "../contract.ts";
import { openTask } from "../parallel.ts";
import {
  agg,
  chunkAt,
  leaf,
  over,
  randomFrom,
  type Row,
  RowsInput,
  rowsOf,
  scanOf,
  segmentOf,
  sourceOf,
  testContext,
} from "../testing.ts";

const functions = createRegistry();
const COLUMNS: Column[] = [{ name: "t", type: "TIMESTAMP" }, { name: "s", type: "SYMBOL" }, {
  name: "v",
  type: "DOUBLE",
}, { name: "b", type: "BOOLEAN" }];
const c = (k: number): Expr => ({ kind: "column", index: k, type: COLUMNS[k].type });
const SECOND = 1_000_000n;

/** Times with gaps, and stretches of many rows in one second. */
function makeRows(rowCount: number): Row[] {
  const random = randomFrom(11);
  let time = 1_709_164_000n * SECOND;
  return Array.from({ length: rowCount }, (): Row => {
    time += random() % 10 === 0 ? BigInt(random() % 4_000) * SECOND : BigInt(random() % 200_000);
    const maybe = (value: Value): Value => (random() % 8 === 0 ? null : value);
    return [time, maybe(`s${random() % 6}`), maybe((random() % 800) / 8), random() % 2 === 0];
  });
}

function stored(rows: Row[], context: QueryContext, segmentRows: number): { node: ScanNode; source: ScanSource } {
  const { heap } = context;
  const input = new RowsInput([...COLUMNS], rows, context, rows.length);
  const { columns } = input.next()!;
  const widths = [8, 4, 8, 1];
  const segments = Array.from({ length: Math.ceil(rows.length / segmentRows) }, (_, ordinal) => {
    const firstRow = ordinal * segmentRows, rowCount = Math.min(segmentRows, rows.length - firstRow);
    const chunks = columns.map(({ address }, k) => chunkAt(address + firstRow * widths[k], { nullCount: 0 }));
    const [first] = rows[firstRow], [last] = rows[firstRow + rowCount - 1];
    return segmentOf(ordinal, rowCount, chunks, [first as bigint, last as bigint]);
  });
  assert.ok(heap);
  const dictionaries = columns.map((column) => column.dictionary);
  return { node: scanOf(COLUMNS, { timestamp: 0, order: "asc" }), source: sourceOf(segments, { dictionaries }) };
}

function sampled(
  input: Operator | Plan,
  sampling: Sampling,
  keys: Expr[],
  aggregates: AggregateCall[],
  context: QueryContext,
): Row[] {
  const columns = [COLUMNS[0], ...[...keys, ...aggregates].map((part, k) => ({ name: `o${k}`, type: part.type }))];
  const node = {
    node: "sample" as const,
    time: c(0),
    sampling,
    keys,
    aggregates,
    fills: [],
    columns,
    timestamp: 0,
    order: "asc",
  };
  return rowsOf(over(node, leaf(input, { timestamp: 0, order: "asc" })), context);
}

Deno.test("runs between bucket edges equal grouping by each row's bucket, on one thread and on three", () => {
  const rows = makeRows(5_000);
  const aggregates = [
    agg("count", "LONG"),
    agg("sum", "DOUBLE", c(2)),
    agg("first", "DOUBLE", c(2)),
    agg("last", "SYMBOL", c(1)),
    agg("max", "DOUBLE", c(2)),
  ];
  const plain = { align: "calendar" as const, timeZone: "", offset: 0n };
  const samplings: Sampling[] = [
    { count: 1, unit: "s", ...plain },
    { count: 5, unit: "m", ...plain },
    { count: 1, unit: "h", ...plain, offset: 1_800n * SECOND },
    { count: 1, unit: "d", ...plain, timeZone: "Europe/Berlin" },
    { count: 1, unit: "h", ...plain, timeZone: "America/New_York" },
    { count: 1, unit: "M", ...plain },
    { count: 40, unit: "y", ...plain },
    { count: 30, unit: "m", ...plain, from: 1_709_200_000n * SECOND, to: 1_709_900_000n * SECOND },
  ];
  const predicate: Expr = {
    kind: "call",
    function: functionId("=", ["SYMBOL", "STRING"]),
    args: [c(1), { kind: "constant", value: "s3", type: "STRING" }],
    type: "BOOLEAN",
    at: 0,
  };
  for (const sampling of samplings) {
    for (const keys of [[], [c(1)], [c(3), c(1)]]) {
      for (const filtered of [false, true]) {
        const alone = testContext(1 << 27, { functions });
        const filter = (input: Operator | Plan): Operator | Plan =>
          filtered ? over({ node: "filter", predicate, columns: COLUMNS }, input) : input;
        const expected = sampled(
          filter(new RowsInput([...COLUMNS], rows, alone)),
          sampling,
          keys,
          aggregates,
          alone,
        );
        for (const segmentRows of [130, 5_000]) {
          const { node, source } = stored(rows, alone, segmentRows);
          const parallel: QueryContext["parallel"] = {
            workerCount: 3,
            run(task, data, count) {
              const helpers = [0, 1, 2].map(() => openTask(task, structuredClone(data), context));
              for (let morsel = count - 1; morsel >= 0; morsel--) helpers[(morsel * 7) % 3].run(morsel);
              return helpers.map((helper) => {
                const result = JSON.parse(JSON.stringify(helper.finish()));
                helper.close?.();
                return result;
              });
            },
          };
          const context: QueryContext = { ...alone, sources: [source] };
          assert.deepEqual(
            sampled(filter(node), sampling, keys, aggregates, context),
            expected,
          );
          const spread = { ...context, parallel };
          assert.deepEqual(
            sampled(filter(node), sampling, keys, aggregates, spread),
            expected,
          );
        }
        assert.equal((alone.memory as { usedBytes: number }).usedBytes, 0);
      }
    }
  }
});
