/**
 * Benchmarks the engine alone: the benchmark's aggregates over trades in shared memory, without SQL, storage and wires.
 *
 *     deno run -A bench/engine.ts [rows] [workers]
 */
import process from "node:process";
import { createOperator, createQueryMemory, createScheduler, type Scheduler } from "../src/engine/mod.ts";
import { valueAt } from "../src/engine/columns.ts";
import { createRegistry } from "../src/sql/functions/mod.ts";
import { createPool } from "../src/storage/mod.ts";
import type { AggregateCall, Column, Expr, Plan, ScanNode } from "../src/sql/plan.ts";
import { createHeap } from "../src/storage/heap.ts";
import { formatPool } from "../src/storage/frames.ts";
import type { ScanSource, SegmentSource } from "../src/storage/contract.ts";
import type { Value } from "../src/types/mod.ts";
import { makeTrades } from "./trades.ts";

const rowCount = Number(Deno.args[0] ?? 10_000_000),
  workerCount = Number(Deno.args[1] ?? navigator.hardwareConcurrency);
const only = Deno.args[2];
const SEGMENT_ROWS = 65_536;

const heap = createHeap(2 ** 32 - 65_536);
formatPool(heap, 16 << 20);
const COLUMNS: Column[] = [
  { name: "timestamp", type: "TIMESTAMP" },
  { name: "symbol", type: "SYMBOL" },
  { name: "side", type: "SYMBOL" },
  { name: "price", type: "DOUBLE" },
  { name: "amount", type: "DOUBLE" },
  { name: "trader", type: "LONG" },
];
const WIDTHS = [8, 4, 4, 8, 8, 8];

const trades = makeTrades(rowCount);
const addresses = WIDTHS.map((width) => heap.allocate(rowCount * width, "other"));
heap.i64.set(trades.timestamp, addresses[0] / 8);
heap.i32.set(trades.symbol, addresses[1] / 4);
heap.i32.set(trades.side, addresses[2] / 4);
heap.f64.set(trades.price, addresses[3] / 8);
heap.f64.set(trades.amount, addresses[4] / 8);
for (let row = 0; row < rowCount; row++) {
  heap.i32[addresses[5] / 4 + 2 * row] = trades.trader[row];
  heap.i32[addresses[5] / 4 + 2 * row + 1] = 0;
}

function dictionary(columnId: number, texts: string[]) {
  const entries = heap.allocate(texts.length * 8, "other"), bytes = heap.allocate(texts.join("").length, "other");
  let at = bytes;
  texts.forEach((text, k) => {
    const encoded = new TextEncoder().encode(text);
    heap.u8.set(encoded, at);
    heap.u32[entries / 4 + 2 * k] = at;
    heap.i32[entries / 4 + 2 * k + 1] = encoded.length;
    at += encoded.length;
  });
  return { tableId: 1, columnId, entries, count: texts.length };
}
const dictionaries = [
  undefined,
  dictionary(1, trades.symbolNames),
  dictionary(2, ["buy", "sell"]),
  undefined,
  undefined,
  undefined,
];

/** A scan of some columns, and its source. */
function scan(names: string[], intervals?: [bigint, bigint][]): { node: ScanNode; source: ScanSource } {
  const ids = names.map((name) => COLUMNS.findIndex((column) => column.name === name));
  const segments: SegmentSource[] = [];
  for (let first = 0; first < rowCount; first += SEGMENT_ROWS) {
    const count = Math.min(SEGMENT_ROWS, rowCount - first);
    segments.push({
      rowCount: count,
      timestampMin: trades.timestamp[first],
      timestampMax: trades.timestamp[first + count - 1],
      uid: segments.length,
      partition: 0n,
      chunks: ids.map((id) => ({
        address: addresses[id] + first * WIDTHS[id],
        file: 0,
        offset: 0,
        sizeBytes: 0,
        crc: 0,
        valueBytes: count * WIDTHS[id],
        stats: id === 5 ? { nullCount: 0, min: 0n, max: 999_999n } : { nullCount: 0 },
      })),
    });
  }
  const columns = ids.map((id) => COLUMNS[id]);
  const timestamp = names.indexOf("timestamp");
  return {
    node: {
      node: "scan",
      id: 0,
      tableId: 1,
      tableName: "trades",
      columnIds: ids,
      columns,
      timestamp,
      order: timestamp < 0 ? "none" : "asc",
      reverse: false,
      rowId: false,
      intervals,
    },
    source: {
      tableId: 1,
      version: 1,
      rowCount,
      sorted: true,
      directory: "/t1",
      segments,
      dictionaries: ids.map((id) => dictionaries[id]),
    },
  };
}

const literal = (value: Value, type: string): Expr => ({ kind: "constant", value, type });
const call = (name: string, type: string, ...args: Expr[]): Expr => ({
  kind: "call",
  function: `${name}(${args.map((a) => a.type)})`,
  args,
  type,
  at: 0,
});
const aggregate = (name: string, type: string, ...args: Expr[]): AggregateCall => ({
  function: `${name}(${args.map((a) => a.type)})`,
  args,
  distinct: false,
  type,
  at: 0,
});
const D = "DOUBLE";

interface Question {
  name: string;
  columns: string[];
  predicate?: (c: (name: string) => Expr) => Expr;
  keys?: string[];
  aggregates: (c: (name: string) => Expr) => AggregateCall[];
  sample?: string;
  /** Wraps the aggregation in further nodes. */
  top?: (plan: Plan) => Plan;
}

const QUESTIONS: Question[] = [
  {
    name: "sums, min, max",
    columns: ["price", "amount"],
    aggregates: (
      c,
    ) => [
      aggregate("sum", D, c("price")),
      aggregate("sum", D, c("amount")),
      aggregate("min", D, c("price")),
      aggregate("max", D, c("price")),
    ],
  },
  {
    name: "filter two doubles, sum",
    columns: ["price", "amount"],
    predicate: (c) =>
      call(
        "and",
        "BOOLEAN",
        call(">", "BOOLEAN", c("price"), literal(200, D)),
        call("<", "BOOLEAN", c("amount"), literal(50, D)),
      ),
    aggregates: (c) => [aggregate("sum", D, call("*", D, c("price"), c("amount"))), aggregate("count", "LONG")],
  },
  {
    name: "weighted average of a symbol",
    columns: ["symbol", "price", "amount"],
    predicate: (c) => call("=", "BOOLEAN", c("symbol"), literal("SYM003-USD", "STRING")),
    aggregates: (c) => [aggregate("sum", D, call("*", D, c("price"), c("amount"))), aggregate("sum", D, c("amount"))],
  },
  {
    name: "group by symbol",
    columns: ["symbol", "price", "amount"],
    keys: ["symbol"],
    aggregates: (c) => [aggregate("count", "LONG"), aggregate("avg", D, c("price")), aggregate("sum", D, c("amount"))],
  },
  {
    name: "group by symbol and side",
    columns: ["symbol", "side", "price", "amount"],
    keys: ["symbol", "side"],
    aggregates: (c) => [aggregate("count", "LONG"), aggregate("sum", D, call("*", D, c("price"), c("amount")))],
  },
  {
    name: "top 10 traders of 1M",
    columns: ["trader", "amount"],
    keys: ["trader"],
    aggregates: (c) => [aggregate("sum", D, c("amount")), aggregate("count", "LONG")],
    top: (plan) => ({
      node: "sort",
      input: plan,
      keys: [{ expression: { kind: "column", index: 1, type: D }, descending: true }, {
        expression: { kind: "column", index: 0, type: "LONG" },
        descending: false,
      }],
      limit: 10,
      columns: plan.columns,
      timestamp: -1,
      order: "none",
    }),
  },
  {
    name: "sample by 1h",
    columns: ["timestamp", "price", "amount"],
    sample: "1h",
    aggregates: (c) => [aggregate("avg", D, c("price")), aggregate("sum", D, c("amount"))],
  },
  {
    name: "one symbol's OHLC by 1m",
    columns: ["timestamp", "symbol", "price", "amount"],
    sample: "1m",
    predicate: (c) => call("=", "BOOLEAN", c("symbol"), literal("SYM003-USD", "STRING")),
    aggregates: (
      c,
    ) => [
      aggregate("first", D, c("price")),
      aggregate("max", D, c("price")),
      aggregate("min", D, c("price")),
      aggregate("last", D, c("price")),
      aggregate("sum", D, c("amount")),
    ],
  },
  {
    name: "sample by 1h by symbol",
    columns: ["timestamp", "symbol", "price"],
    keys: ["symbol"],
    sample: "1h",
    aggregates: (c) => [aggregate("avg", D, c("price")), aggregate("count", "LONG")],
  },
  {
    name: "count distinct traders",
    columns: ["trader"],
    aggregates: (c) => [aggregate("count_distinct", "LONG", c("trader"))],
  },
];

function planOf(question: Question): { plan: Plan; source: ScanSource } {
  const { node, source } = scan(question.columns);
  const c = (name: string): Expr => {
    const index = question.columns.indexOf(name);
    return { kind: "column", index, type: node.columns[index].type };
  };
  if (question.predicate) node.predicate = question.predicate(c);
  const keys = (question.keys ?? []).map(c), aggregates = question.aggregates(c);
  const columns = [
    ...(question.sample ? [{ name: "timestamp", type: "TIMESTAMP" }] : []),
    ...[...keys, ...aggregates].map((part, k) => ({ name: `c${k}`, type: part.type })),
  ];
  let plan: Plan = question.sample
    ? {
      node: "sample",
      input: node,
      time: c("timestamp"),
      sampling: { count: 1, unit: question.sample.at(-1)!, align: "calendar", timeZone: "", offset: 0n },
      keys,
      aggregates,
      fills: [],
      columns,
      timestamp: 0,
      order: "asc",
    }
    : { node: "aggregate", input: node, keys, aggregates, columns, timestamp: -1, order: "none" };
  if (question.top) plan = question.top(plan);
  return { plan, source };
}

/** Runs the operators on this thread, without workers. */
function runHere(plan: Plan, source: ScanSource): string {
  const memory = createQueryMemory(heap, 0);
  const context = {
    heap,
    memory,
    pool: createPool(heap).lease(),
    functions,
    sources: [source],
    nowMicros: 0n,
    random: () => 0,
    user: "bench",
    poll: () => {},
    cancelWord,
  };
  const operator = createOperator(plan, context);
  const first = operator.next();
  const text = first === undefined ? "" : first.columns.map((column) => String(valueAt(heap, column, 0))).join(",");
  while (operator.next() !== undefined) { /* to the end */ }
  operator.close();
  memory.release();
  return text;
}

async function runOnWorkers(scheduler: Scheduler, plan: Plan, source: ScanSource): Promise<string> {
  const running = scheduler.run({
    plan,
    sources: [source],
    nowMicros: 0n,
    timeoutMs: 60_000,
    memoryLimitBytes: 2 ** 31,
    user: "bench",
  }, { kind: "rows", encoding: { name: "csv", delimiter: "," } });
  let text = "";
  for await (const { bytes } of running.chunks) text += new TextDecoder().decode(bytes);
  return text;
}

const functions = createRegistry();
const cancelWord = heap.allocate(4_096, "other");
heap.i32[cancelWord / 4] = 0;
const scheduler = workerCount === 0 ? undefined : await createScheduler({
  heap,
  workerCount,
  workerUrl: new URL("../src/workers/exec.ts", import.meta.url),
  log: (level, message) => console.error(level, message),
});
for (const question of QUESTIONS) {
  if (only && !question.name.includes(only)) continue;
  const { plan, source } = planOf(question);
  const times: number[] = [], cpu: number[] = [];
  let text = "";
  for (let round = 0; round < 8; round++) {
    const start = performance.now(), before = process.cpuUsage();
    text = scheduler === undefined ? runHere(plan, source) : await runOnWorkers(scheduler, plan, source);
    times.push(performance.now() - start);
    const used = process.cpuUsage(before);
    cpu.push((used.user + used.system) / 1000);
  }
  const warm = times.slice(1).sort((a, b) => a - b);
  console.log(
    `${question.name.padEnd(32)} cold ${times[0].toFixed(1).padStart(7)}   median ${
      warm[3].toFixed(1).padStart(7)
    }   best ${warm[0].toFixed(1).padStart(7)} ms   least CPU ${Math.min(...cpu).toFixed(1).padStart(7)} ms   ${
      text.slice(0, 60).replaceAll(/\r?\n/g, " | ")
    }`,
  );
}
await scheduler?.close();
