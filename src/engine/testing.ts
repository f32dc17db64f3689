/** For unit tests of operators: a query with its own heap, inputs made of plain rows, and the output rows. */
import assert from "node:assert/strict";
import { functionId } from "../sql/functions/mod.ts";
import type { AggregateCall, Column, Expr, Plan, ScanNode, ValuesNode } from "../sql/plan.ts";
import type { ColumnChunk, ColumnStats, ScanSource, SegmentSource } from "../storage/contract.ts";
import { createHeap, type SharedHeap } from "../storage/heap.ts";
import { layoutOf, typeOf, type Value } from "../types/mod.ts";
import { fillNull, setValue, TextArena, valueAt, Workspace } from "./columns.ts";
import type { Batch, Operator, QueryContext, QueryMemory, Spill, SpilledBlock, Vector } from "./contract.ts";
import { createQueryMemory } from "./memory.ts";
import { createOperator } from "./operators/mod.ts";
import { openTask } from "./parallel.ts";
import type { PlanFacts } from "./physical/mod.ts";

/** Counts the memory in use, so that tests detect leaks. The limit is not enforced. */
class TestMemory implements QueryMemory {
  usedBytes = 0;
  limitBytes = 0;
  peakBytes = 0;
  constructor(private readonly heap: QueryContext["heap"], private readonly tag: "query" | "other" = "query") {}
  allocate(sizeBytes: number): number {
    this.usedBytes += sizeBytes;
    this.peakBytes = Math.max(this.peakBytes, this.usedBytes);
    return this.heap.allocate(sizeBytes, this.tag);
  }
  free(address: number, sizeBytes: number): void {
    this.usedBytes -= sizeBytes;
    this.heap.free(address, sizeBytes, this.tag);
  }
  account(sizeBytes: number): void {
    this.usedBytes += sizeBytes;
  }
  need(): void {}
  share(): void {}
  onRelease(): () => void {
    return () => {};
  }
  mark(): ReadonlySet<number> {
    return new Set();
  }
  freeSince(): void {}
  release(): void {}
}

/** A heap whose addresses are above 2 GiB: as signed integers they are negative. */
export function upperHeap(sizeBytes: number): SharedHeap {
  const heap = createHeap(2 ** 31 + sizeBytes);
  heap.allocate(2 ** 31, "other");
  return heap;
}

export function testContext(
  heapBytes = 1 << 28,
  more: Partial<QueryContext> = {},
): QueryContext & { memory: TestMemory } {
  const heap = upperHeap(heapBytes);
  const cancelWord = heap.allocate(4096, "other");
  heap.i32[cancelWord >>> 2] = 0; // blocks have undefined contents
  return {
    heap,
    memory: new TestMemory(heap),
    pool: {
      pin: () => {
        throw new Error("this test has no stored tables");
      },
      unpin: () => {},
      gather: () => false,
      summaries: () => false,
      selectRows: () => undefined,
      maskRows: () => undefined,
      readOffsets: () => undefined,
      gatherRows: () => false,
      isIndexed: () => false,
      present: () => undefined,
      find: () => undefined,
    },
    functions: {
      resolve: () => {
        throw new Error("this test has no functions");
      },
    },
    sources: [],
    nowMicros: 0n,
    random: () => 0,
    user: "test",
    poll: () => {},
    cancelWord,
    ...more,
  } as QueryContext & { memory: TestMemory };
}

/** Rows on disk, as blocks in JavaScript's memory. */
export function spillOf(heap: QueryContext["heap"]): Spill {
  const blocks: Uint8Array[] = [];
  return {
    write(pieces): SpilledBlock {
      const parts = pieces.map(([address, sizeBytes]) => heap.u8.slice(address, address + sizeBytes));
      const sizeBytes = parts.reduce((sum, { length }) => sum + length, 0), block = new Uint8Array(sizeBytes);
      let at = 0;
      for (const part of parts) {
        block.set(part, at);
        at += part.length;
      }
      return { file: 0, offset: blocks.push(block) - 1, sizeBytes };
    },
    read({ offset }, address) {
      heap.u8.set(blocks[offset], address);
    },
    flush() {},
    countPart() {},
  };
}

/** Expressions and aggregate calls of plans, without positions. */
export const col = (index: number, type: string): Expr => ({ kind: "column", index, type });
export const lit = (value: Value, type: string): Expr => ({ kind: "constant", value, type });
export const fn = (name: string, type: string, ...args: Expr[]): Expr => ({
  kind: "call",
  function: functionId(name, args.map((a) => a.type)),
  args,
  type,
  at: 0,
});
export const agg = (name: string, type: string, ...args: Expr[]): AggregateCall => ({
  function: functionId(name, args.map((a) => a.type)),
  args,
  distinct: false,
  type,
  at: 0,
});

export type Row = Value[];

/**
 * Outputs rows in batches of `batchRows`. Each batch overwrites the memory of the previous one, as a scan may do, so
 * that operators that fail to copy are detected.
 */
export class RowsInput implements Operator {
  closed = 0;
  private position = 0;
  private readonly space: Workspace;
  private readonly dictionaries: { codes: Map<string, number>; entries: number }[] = [];
  private readonly addresses: number[];
  private arena: TextArena;
  constructor(
    readonly columns: Column[],
    private readonly rows: readonly Row[],
    private readonly context: QueryContext,
    private readonly batchRows = 1_000,
  ) {
    this.space = spaceOfRows(context.heap);
    this.arena = new TextArena(this.space);
    this.addresses = columns.map((column) => this.space.allocate(batchRows * typeOf(column.type).width));
    columns.forEach((column, c) => {
      if (layoutOf(column.type) !== "symbol") return;
      const codes = new Map<string, number>();
      for (const row of rows) if (row[c] !== null && !codes.has(String(row[c]))) codes.set(String(row[c]), codes.size);
      const entries = this.space.allocate(Math.max(8, codes.size * 8)), arena = new TextArena(this.space);
      for (const [text, code] of codes) setValue(context.heap, "STRING", entries, code, text, arena);
      this.dictionaries[c] = { codes, entries };
    });
  }

  next(): Batch | undefined {
    const rowCount = Math.min(this.batchRows, this.rows.length - this.position);
    if (rowCount <= 0) return undefined;
    const { context, rows, position } = this;
    this.arena.release();
    const columns = this.columns.map(({ type }, c) => {
      const address = this.addresses[c], dictionary = this.dictionaries[c];
      setColumn(context, type, address, rows, position, rowCount, c, this.arena, dictionary?.codes);
      if (dictionary === undefined) return { type, address };
      return {
        type,
        address,
        dictionary: {
          tableId: 1_000 + c,
          columnId: dictionary.entries,
          entries: dictionary.entries,
          count: dictionary.codes.size,
        },
      };
    });
    this.position += rowCount;
    return { rowCount, columns };
  }

  close(): void {
    this.closed++;
  }

  /** The same rows from the first one on. */
  again(): RowsInput {
    return new RowsInput(this.columns, this.rows, this.context, this.batchRows);
  }
}

/**
 * Writes a column of `rowCount` rows from row `first` on. Symbols have `codes`. Tests write and read millions of values: loops for the
 * frequent types take a fifth of the time of `setValue` and `valueAt`.
 */
function setColumn(
  { heap }: Pick<QueryContext, "heap">,
  type: string,
  address: number,
  rows: readonly Row[],
  first: number,
  rowCount: number,
  column: number,
  arena: TextArena,
  codes?: ReadonlyMap<string, number>,
): void {
  const { i64, i32, f64 } = heap, layout = layoutOf(type);
  for (let i = 0; i < rowCount; i++) {
    const value = rows[first + i][column];
    if (value === null) fillNull(heap, type, address, i, 1);
    else if (layout === "symbol") i32[(address >>> 2) + i] = codes!.get(String(value))!;
    else if (layout === "i64" && typeof value === "bigint") i64[(address >>> 3) + i] = value;
    else if (type === "INT" && typeof value === "number") i32[(address >>> 2) + i] = value;
    else if (type === "DOUBLE" && typeof value === "number" && Number.isFinite(value)) f64[(address >>> 3) + i] = value;
    else setValue(heap, type, address, i, value, arena);
  }
}

const NULL_INT = -(2 ** 31), NULL_LONG = -(2n ** 63n);

/** Puts the values of a vector into a column of `rows`, from row `first` on. */
function readColumn(
  { heap }: Pick<QueryContext, "heap">,
  vector: Vector,
  rowCount: number,
  rows: Row[],
  first: number,
  column: number,
): void {
  const { type, address } = vector, { i64, i32, f64 } = heap;
  if (type === "LONG" || type === "TIMESTAMP") {
    for (let i = 0, at = address >>> 3; i < rowCount; i++, at++) {
      rows[first + i][column] = i64[at] === NULL_LONG ? null : i64[at];
    }
  } else if (type === "INT") {
    for (let i = 0, at = address >>> 2; i < rowCount; i++, at++) {
      rows[first + i][column] = i32[at] === NULL_INT ? null : i32[at];
    }
  } else if (type === "DOUBLE") {
    for (let i = 0, at = address >>> 3; i < rowCount; i++, at++) {
      rows[first + i][column] = Number.isFinite(f64[at]) ? f64[at] : null;
    }
  } else if (layoutOf(type) === "symbol") {
    // Most codes occur in many rows.
    const texts = new Map<number, Value>();
    for (let i = 0, at = address >>> 2; i < rowCount; i++, at++) {
      const code = i32[at], text = texts.get(code) ?? valueAt(heap, vector, i);
      texts.set(code, text);
      rows[first + i][column] = text;
    }
  } else for (let i = 0; i < rowCount; i++) rows[first + i][column] = valueAt(heap, vector, i);
}

/** Operators that replace leaves of plans. */
const leaves = new WeakMap<Plan, Operator>();

/** A leaf of a plan with the rows of `input`. */
export function leaf(input: Operator | Plan, of: Partial<Plan> = {}): Plan {
  if ("node" in input) return input;
  const columns = [...input.columns];
  const node = { node: "values", rows: [], columns, timestamp: -1, order: "none", ...of } as ValuesNode;
  leaves.set(node, input);
  return node;
}

/** A node over plans or operators; `node` contains the fields that matter for the test. */
// deno-lint-ignore no-explicit-any
export function over(node: any, ...inputs: (Operator | Plan)[]): Plan {
  const [first, second] = inputs.map((input) => leaf(input));
  const below = second === undefined ? { input: first } : { left: first, right: second };
  return { timestamp: -1, order: "none", ...node, ...below } as unknown as Plan;
}

export function operatorOf(plan: Plan, context: QueryContext & PlanFacts): Operator {
  return createOperator(plan, context, {
    get: (node) => {
      const input = leaves.get(node);
      return input instanceof RowsInput && input.closed > 0 ? input.again() : input;
    },
  });
}

/** All rows of a plan, or of an operator, which is then closed. */
export function rowsOf(source: Operator | Plan, context: QueryContext & PlanFacts): Row[] {
  const operator = "node" in source ? operatorOf(source, context) : source;
  const rows: Row[] = [];
  try {
    for (let batch = operator.next(); batch !== undefined; batch = operator.next()) {
      const { rowCount, columns } = batch, first = rows.length;
      for (let row = 0; row < rowCount; row++) rows.push(columns.map(() => null));
      columns.forEach((vector, c) => readColumn(context, vector, rowCount, rows, first, c));
    }
  } finally {
    operator.close();
  }
  return rows;
}

/** The same as `deepEqual`, which would take minutes for the difference of two long lists, and many times as long for equal ones. */
export function assertRows(
  rows: readonly (readonly Value[])[],
  expected: readonly (readonly Value[])[],
  title = "",
): void {
  assert.equal(rows.length, expected.length, title);
  for (const [k, row] of rows.entries()) {
    const other = expected[k];
    let isSame = row.length === other.length;
    for (let c = 0; c < row.length && isSame; c++) isSame = Object.is(row[c], other[c]);
    if (!isSame) assert.deepEqual(row, other, `${title}, row ${k}`);
  }
}

/** Columns for tests of joins: the given ones, and at 2 to 6 those of `keyValues`; the last one is for the row's number. */
export function joinColumns(first: string, second: string, seventh: string): Column[] {
  const types = [first, second, "INT", "LONG", "DOUBLE", "VARCHAR", "UUID", seventh, "LONG"];
  return types.map((type, k) => ({ name: `c${k}`, type }));
}

/** Keys of each form for the number `n`: the first has a small range, the second a wide one. `maybe` may replace a value by null. */
export function keyValues(n: number, random: () => number, maybe: (value: Value) => Value): Value[] {
  return [
    maybe(n - 20),
    maybe(BigInt(n) * 1_000_000_000_003n),
    maybe(n === 0 ? (random() % 2 === 0 ? 0 : -0) : n / 8),
    maybe(`text ${"x".repeat(n % 11)}${n}`),
    maybe(BigInt(n) << 64n | 5n),
  ];
}

/** Reproducible numbers in [0, 2^32) (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
}

/**
 * A stored table with these rows: segments of `segmentRows`, columns in shared memory. With `statistics`, integer
 * columns have them.
 */
export function storedRows(
  columns: readonly Column[],
  rows: readonly Row[],
  context: QueryContext,
  segmentRows: number,
  statistics = false,
): { node: ScanNode; source: ScanSource } {
  const { heap } = context;
  const space = spaceOfRows(heap), arena = new TextArena(space);
  const codes = columns.map((column, k) => {
    const map = new Map<string, number>();
    if (column.type === "SYMBOL") {
      for (const row of rows) if (row[k] !== null && !map.has(String(row[k]))) map.set(String(row[k]), map.size);
    }
    return map;
  });
  const dictionaries = columns.map((column, k) => {
    if (column.type !== "SYMBOL") return undefined;
    const entries = space.allocate(Math.max(8, codes[k].size * 8));
    for (const [text, code] of codes[k]) setValue(heap, "STRING", entries, code, text, arena);
    return { tableId: 1, columnId: k, entries, count: codes[k].size };
  });
  const segments = [];
  for (let first = 0, ordinal = 0; first < rows.length; first += segmentRows, ordinal++) {
    const part = rows.slice(first, first + segmentRows);
    const chunks = columns.map((column, k) => {
      const address = space.allocate(part.length * typeOf(column.type).width);
      setColumn(context, column.type, address, part, 0, part.length, k, arena, codes[k]);
      const stats = statistics ? statisticsOf(column.type, part.map((row) => row[k])) : { nullCount: -1 };
      return chunkAt(address, stats);
    });
    segments.push(segmentOf(ordinal, part.length, chunks));
  }
  const source = sourceOf(segments, { dictionaries });
  return { node: scanOf(columns, { id: context.sources.push(source) - 1 }), source };
}

/** A scan of all columns of a table without a designated timestamp. */
export function scanOf(columns: readonly Column[], more: Partial<ScanNode> = {}): ScanNode {
  return {
    node: "scan",
    id: 0,
    tableId: 1,
    tableName: "t",
    columnIds: columns.map((_, k) => k),
    columns: [...columns],
    timestamp: -1,
    order: "none",
    reverse: false,
    rowId: false,
    ...more,
  };
}

export function sourceOf(segments: SegmentSource[], more: Partial<ScanSource> = {}): ScanSource {
  const rowCount = segments.reduce((sum, segment) => sum + segment.rowCount, 0);
  return { tableId: 1, version: 1, rowCount, sorted: true, directory: "/t1", segments, dictionaries: [], ...more };
}

export function segmentOf(
  ordinal: number,
  rowCount: number,
  chunks: SegmentSource["chunks"],
  [timestampMin, timestampMax] = [0n, 0n],
): SegmentSource {
  return { rowCount, timestampMin, timestampMax, uid: ordinal, partition: 0n, chunks };
}

/** A chunk of fresh rows. */
export function chunkAt(address: number, stats: ColumnStats): ColumnChunk {
  return { address, file: 0, offset: 0, sizeBytes: 0, crc: 0, valueBytes: 0, stats };
}

/** Memory of rows that a test provides, which does not count as memory of its query. */
export function spaceOfRows(heap: QueryContext["heap"]): Workspace {
  return new Workspace(heap, new TestMemory(heap, "other"), "test");
}

function statisticsOf(type: string, values: Value[]): ColumnStats {
  const known = values.filter((value) => value !== null) as bigint[];
  const nullCount = values.length - known.length;
  if ((type !== "INT" && type !== "LONG") || known.length === 0) return { nullCount };
  return {
    nullCount,
    min: known.reduce((a, b) => (b < a ? b : a)),
    max: known.reduce((a, b) => (b > a ? b : a)),
  };
}

/** Three participants take morsels in turn, beginning with the last: answers must not depend on the assignment. */
export function threeParticipants(context: QueryContext): QueryContext["parallel"] {
  return {
    workerCount: 3,
    run(task, data, count) {
      const participants = [0, 1, 2].map(() => openTask(task, structuredClone(data), context));
      for (let morsel = count - 1; morsel >= 0; morsel--) participants[(morsel * 7) % 3].run(morsel);
      return participants.map((participant) => {
        const result = participant.finish();
        participant.close?.();
        return JSON.parse(JSON.stringify(result));
      });
    },
  };
}

/** The same query on one thread, or shared by three participants. */
export function onThreads<Context extends QueryContext>(context: Context, isParallel: boolean): Context {
  return { ...context, parallel: isParallel ? threeParticipants(context) : undefined };
}

/** The same query with so much memory. It continues on disk; `partCount` gives the parts written there since its last call. */
export function withLittleMemory<Context extends QueryContext>(alone: Context, limitBytes: number) {
  let count = 0;
  const memory = createQueryMemory(alone.heap, limitBytes);
  const spill: Spill = { ...spillOf(alone.heap), countPart: () => count++ };
  const partCount = () => {
    const parts = count;
    count = 0;
    return parts;
  };
  return { context: { ...alone, memory, spill }, memory, partCount };
}

/** All memory of the query is free again. */
export function endsClean({ memory }: QueryContext): void {
  assert.equal((memory as { usedBytes: number }).usedBytes, 0);
}
