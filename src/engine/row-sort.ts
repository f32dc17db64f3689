/**
 * Sorts row numbers by the keys of `wasm/sort.ts`: up to three keys are stored with a row, as memory allows; later ones are looked up
 * where all previous ones are equal. Many rows are distributed to buckets of the first key's range, chunk by chunk, and the buckets
 * are sorted separately, by all workers.
 */
import type { SharedHeap } from "../storage/heap.ts";
import { typeOf } from "../types/mod.ts";
import { Workspace } from "./columns.ts";
import type { ParallelRunner, QueryMemory, Vector } from "./contract.ts";
import { isOutOfMemory } from "./memory.ts";
import { registerTask } from "./parallel.ts";
import { rowBytes, rowFunctions } from "./wasm/rows.ts";
import {
  BUCKET_BITS_MAX,
  countsBytes,
  elementBytes,
  KEYS_MAX,
  type KeySource,
  sortFunctions,
  SOURCE_BYTES,
  wordSource,
} from "./wasm/sort.ts";

/** Rows sorted between two checks of the cancel word. */
const ALONE_ROWS = 1 << 18;
const CHUNK_ROWS = 1 << 17;
const CHUNKS_MAX = 64;
const BUCKETS = 1 << BUCKET_BITS_MAX;

interface SortTask {
  step: "keys" | "count" | "spread" | "order";
  operator: string;
  /** Row numbers, which are replaced by the sorted ones. */
  order: number;
  rowCount: number;
  elements: number;
  scratch: number;
  /** Number of keys in an element. */
  keys: number;
  /** The sources of the keys, first for the elements and then for each further level. */
  levels: KeySource[][];
  chunkRows: number;
  /** Range of the first keys. */
  least: bigint;
  shift: bigint;
  /** BUCKETS words for each chunk: first counts, then the next target address. */
  counts: number;
  /** Neighbouring buckets by their first elements, and the end; `parts` are indices into that list. */
  starts: number[];
  parts: number[];
  /** Columns that are rearranged with the rows. */
  payload?: { columns: number[]; widths: number[]; block: number };
}

/**
 * Columns that are needed in the rows' new order. Rows are stored in row format, grouped by bucket, so that rows that
 * are needed together are close together.
 */
export class Payload {
  private block = 0;

  constructor(private readonly columns: readonly Vector[], private readonly space: Workspace) {}

  private get widths(): number[] {
    return this.columns.map(({ type }) => typeOf(type).width);
  }

  /** Undefined if there is not enough memory; the original columns are used then. */
  reserve(rowCount: number): SortTask["payload"] {
    const { columns, widths } = this;
    try {
      this.block = this.space.allocate(rowCount * rowBytes(widths));
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
      return undefined;
    }
    return { columns: columns.map(({ address }) => address), widths, block: this.block };
  }

  /** True if it was rearranged. The sorted row numbers then refer to it. */
  get isPlaced(): boolean {
    return this.block !== 0;
  }

  /** Writes rows of the rearranged payload to columns. */
  take(rows: Int32Array, rowCount: number, out: readonly Vector[]): void {
    const { space: { heap }, columns, block } = this;
    const targets = this.targets ??= this.space.words(columns.length);
    out.forEach((vector, c) => {
      targets[c] = vector.address;
      vector.dictionary = columns[c].dictionary;
    });
    rowFunctions(heap.memory, this.widths).unpack(block, rows.byteOffset, rowCount, targets.byteOffset);
  }
  private targets?: Int32Array;
}

/** Least and greatest key, as text. */
type Range = [least: string, most: string];

/** Sorts the row numbers in `order[0 … n-1]` by keys, most significant first; stable. */
export function sortRows(
  order: Int32Array,
  sources: readonly KeySource[],
  n: number,
  space: Workspace,
  poll: () => void,
  parallel?: ParallelRunner,
  payload?: Payload,
): void {
  const own = new Workspace(space.heap, space.memory, space.operator);
  try {
    const { keys, elements, scratch } = elementsFor(n, sources.length, own);
    const levels: KeySource[][] = [];
    for (let from = 0; from === 0 || from < sources.length; from += keys) {
      levels.push(Array.from({ length: keys }, (_, k) => sources[from + k] ?? wordSource(0, 0)));
    }
    const task: SortTask = {
      step: "keys",
      operator: space.operator,
      order: order.byteOffset,
      rowCount: n,
      elements,
      scratch,
      keys,
      levels,
      chunkRows: Math.max(CHUNK_ROWS, Math.ceil(n / CHUNKS_MAX)),
      least: 0n,
      shift: 0n,
      counts: 0,
      starts: [0, n],
      parts: [0, 1],
    };
    if (n <= ALONE_ROWS) return sortAlone(task, space.heap, space.memory, poll);
    // Further keys are looked up by the rows' old numbers.
    if (levels.length === 1) task.payload = payload?.reserve(n);
    const run = (step: SortTask["step"], count: number): unknown[] => {
      task.step = step;
      if (parallel !== undefined && count > 1) return parallel.run(TASK, task, count);
      const sorter = new Sorter(task, space.heap, space.memory, poll);
      try {
        for (let k = 0; k < count; k++) sorter.run(k);
        return [sorter.finish()];
      } finally {
        sorter.close();
      }
    };
    sortInBuckets(task, own, run);
  } finally {
    own.release();
  }
}

/** Memory for elements with as many keys as there is space for. */
function elementsFor(n: number, count: number, own: Workspace): { keys: number; elements: number; scratch: number } {
  for (let keys = Math.max(1, Math.min(KEYS_MAX, count));; keys--) {
    try {
      const size = elementBytes(keys) * n;
      return { keys, elements: own.allocate(size), scratch: own.allocate(size) };
    } catch (error) {
      if (keys === 1 || !isOutOfMemory(error)) throw error;
      own.release();
    }
  }
}

function sortAlone(task: SortTask, heap: SharedHeap, memory: QueryMemory, poll: () => void): void {
  const sorter = new Sorter(task, heap, memory, poll);
  try {
    sorter.sortAll();
  } finally {
    sorter.close();
  }
}

function sortInBuckets(
  task: SortTask,
  own: Workspace,
  run: (step: SortTask["step"], count: number) => unknown[],
): void {
  const { rowCount, chunkRows } = task, { i32 } = own.heap;
  const chunkCount = Math.ceil(rowCount / chunkRows);
  const ranges = (run("keys", chunkCount) as (Range | null)[]).flatMap((range) => range === null ? [] : [range]);
  const least = ranges.map(([low]) => BigInt(low)).reduce((a, b) => (b < a ? b : a));
  const most = ranges.map(([, high]) => BigInt(high)).reduce((a, b) => (b > a ? b : a));
  task.least = least;
  task.shift = shiftOf(most - least);
  const counts = own.words(chunkCount * BUCKETS);
  task.counts = counts.byteOffset;
  run("count", chunkCount);
  const base = counts.byteOffset >>> 2, starts: number[] = [];
  let sum = 0;
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    starts.push(sum);
    for (let chunk = 0; chunk < chunkCount; chunk++) {
      const at = base + chunk * BUCKETS + bucket, count = i32[at];
      i32[at] = task.scratch + sum * elementBytes(task.keys);
      sum += count;
    }
  }
  run("spread", chunkCount);
  task.starts = [...starts, sum];
  task.parts = [0];
  for (let bucket = 1; bucket < BUCKETS; bucket++) {
    if (task.starts[bucket] - task.starts[task.parts.at(-1)!] >= chunkRows / 4) task.parts.push(bucket);
  }
  task.parts.push(BUCKETS);
  run("order", task.parts.length - 1);
}

/** The shift for keys with this span, so that the number of buckets suffices. */
function shiftOf(span: bigint): bigint {
  return BigInt(Math.max(0, span.toString(2).length - BUCKET_BITS_MAX));
}

class Sorter {
  private readonly space: Workspace;
  private readonly functions;
  private readonly depthCounts: number;
  private readonly table: number;
  private readonly width: number;
  private least = (1n << 64n) - 1n;
  private most = 0n;

  constructor(
    private readonly task: SortTask,
    private readonly heap: SharedHeap,
    memory: QueryMemory,
    private readonly poll: () => void,
  ) {
    this.space = new Workspace(heap, memory, task.operator);
    this.functions = sortFunctions(heap.memory, task.keys);
    this.width = elementBytes(task.keys);
    this.depthCounts = this.space.allocate(countsBytes(task.keys, Math.min(task.rowCount, ALONE_ROWS)));
    this.table = this.space.allocate(task.levels.length * SOURCE_BYTES * task.keys);
    heap.i32.set(task.levels.flat(2), this.table >>> 2);
  }

  /** Address of the sources of a level's keys. */
  private sourcesOf(level: number): number {
    return this.table + level * SOURCE_BYTES * this.task.keys;
  }

  /** Sorts few rows in one step. */
  sortAll(): void {
    const { functions, task: { elements, scratch, order, rowCount } } = this;
    functions.start(elements, order, rowCount, this.table);
    this.sort(elements, scratch, rowCount, 0, 0);
    functions.rows(elements, rowCount, order);
  }

  run(k: number): void {
    const { task, functions } = this;
    this.poll();
    if (task.step === "order") {
      for (let bucket = task.parts[k]; bucket < task.parts[k + 1]; bucket++) {
        const from = task.starts[bucket], n = task.starts[bucket + 1] - from, at = from * this.width;
        if (n === 0) continue;
        this.sort(task.scratch + at, task.elements + at, n, 0, 0);
        functions.rows(task.scratch + at, n, task.order + from * 4);
      }
      return;
    }
    const from = k * task.chunkRows, n = Math.min(task.chunkRows, task.rowCount - from);
    const elements = task.elements + from * this.width;
    if (task.step === "keys") {
      functions.start(elements, task.order + from * 4, n, this.table);
      const [least, most] = this.range(0, elements, n);
      if (least < this.least) this.least = least;
      if (most > this.most) this.most = most;
      return;
    }
    const counts = task.counts + k * BUCKETS * 4;
    if (task.step === "count") {
      this.heap.i32.fill(0, counts >>> 2, (counts >>> 2) + BUCKETS);
      functions.count(0, elements, n, task.least, task.shift, counts);
    } else if (task.payload === undefined) functions.scatter(0, elements, n, task.least, task.shift, counts);
    else this.place(task.payload, elements, from, n, counts);
  }

  private place(
    payload: SortTask["payload"] & object,
    elements: number,
    from: number,
    n: number,
    cursors: number,
  ): void {
    const { task, space, heap, functions } = this;
    const places = this.places ??= space.words(task.chunkRows), { columns, widths, block } = payload;
    const addresses = this.addresses ??= space.words(columns.length);
    addresses.set(columns);
    functions.place(elements, n, task.least, task.shift, cursors, task.scratch, places.byteOffset);
    rowFunctions(heap.memory, widths).pack(addresses.byteOffset, from, from + n, places.byteOffset, block);
  }
  private places?: Int32Array;
  private addresses?: Int32Array;

  private range(key: number, elements: number, n: number): [least: bigint, most: bigint] {
    this.functions.range(key, elements, n, this.depthCounts);
    const at = this.depthCounts >>> 3;
    return [this.heap.u64[at], this.heap.u64[at + 1]];
  }

  /** Sorts elements that contain their keys of `level` and are equal in those before `key`. */
  private sort(elements: number, scratch: number, n: number, level: number, key: number): void {
    const { functions, heap, depthCounts, width, task: { levels, keys } } = this;
    this.poll();
    if (n <= ALONE_ROWS) {
      functions.order(elements, scratch, n, depthCounts, this.sourcesOf(level + 1), levels.length - 1 - level);
      return;
    }
    const [least, most] = this.range(key, elements, n);
    if (least === most) {
      if (key + 1 < keys) return this.sort(elements, scratch, n, level, key + 1);
      if (level + 1 >= levels.length) return;
      functions.load(elements, n, this.sourcesOf(level + 1));
      return this.sort(elements, scratch, n, level + 1, 0);
    }
    const shift = shiftOf(most - least);
    const counts = this.space.words(BUCKETS).fill(0);
    const inChunks = (step: (at: number, n: number) => void) => {
      for (let from = 0; from < n; from += ALONE_ROWS) {
        this.poll();
        step(elements + from * width, Math.min(ALONE_ROWS, n - from));
      }
    };
    inChunks((at, n) => functions.count(key, at, n, least, shift, counts.byteOffset));
    const starts: number[] = [];
    let sum = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      starts.push(sum);
      const count = counts[bucket];
      counts[bucket] = scratch + sum * width;
      sum += count;
    }
    starts.push(n);
    inChunks((at, n) => functions.scatter(key, at, n, least, shift, counts.byteOffset));
    this.space.freeWords(counts);
    heap.u8.copyWithin(elements, scratch, scratch + n * width);
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const from = starts[bucket] * width, size = starts[bucket + 1] - starts[bucket];
      if (size > 1) this.sort(elements + from, scratch + from, size, level, key);
    }
  }

  finish(): Range | null {
    return this.task.step === "keys" && this.most >= this.least ? [String(this.least), String(this.most)] : null;
  }

  close(): void {
    this.space.release();
  }
}

const TASK = "sort";
registerTask(TASK, (data, context) => new Sorter(data as SortTask, context.heap, context.memory, () => context.poll()));
