/**
 * approx_percentile() and approx_median(): percentiles from counts of values in buckets, as in high-dynamic-range
 * histograms. With precision p, values up to 2 · 10^p are exact, and greater values have p correct digits: each power
 * of two is divided into `half` buckets, where half is the least power of two that is at least 10^p.
 *
 * Source: Tene, "HdrHistogram: A High Dynamic Range Histogram", 2012 to 2016.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { NULL_I64, type Value } from "../../types/mod.ts";
import type { BatchAggregateState, BatchColumn, BatchOut, FunctionEntry } from "./entry.ts";

const PRECISION_DEFAULT = 1;
const PRECISION_MAX = 5;

interface Counts {
  /** Number of values in the bucket that begins at the key. */
  byStart: Map<number, number>;
  total: number;
  /** The smallest value above zero; its power of two determines the smallest buckets. */
  least: number;
}

/** Number of exponents of a DOUBLE, and of bits of its fraction in the high word. */
const EXPONENTS = 2048, FRACTION_BITS = 20;
/** High words of the least normal number, and of infinity. */
const NORMAL = 0x00100000, INFINITE = 0x7ff00000;
/** With more bits of precision, an array of all buckets would be too large. */
const SCRATCH_BITS_MAX = 8;
/** For fewer rows, the array takes longer than they do. */
const SCRATCH_ROWS_MIN = 256;

const noCounts = (): Counts => ({ byStart: new Map(), total: 0, least: Infinity });

/** The greatest power of two that is not above `value`. */
function powerOf(value: number): number {
  const power = 2 ** Math.floor(Math.log2(value));
  return power > value ? power / 2 : power * 2 <= value ? power * 2 : power;
}

type Values = Float64Array | BigInt64Array;

/** The rows ordered by group, if these have many rows each and are not in order, as those of SAMPLE BY are. */
function inGroupOrder(groups: Int32Array, values: Values, rowCount: number): { groups: Int32Array; values: Values } {
  let changes = 0, last = 0;
  for (let row = 0; row < rowCount; row++) {
    if (row > 0 && groups[row] !== groups[row - 1]) changes++;
    if (groups[row] > last) last = groups[row];
  }
  const most = rowCount / SCRATCH_ROWS_MIN;
  if (changes < most || last >= most) return { groups, values };
  const ends = new Int32Array(last + 1), ordered = new Int32Array(rowCount);
  const moved = values instanceof Float64Array ? new Float64Array(rowCount) : new BigInt64Array(rowCount);
  for (let row = 0; row < rowCount; row++) ends[groups[row]]++;
  for (let group = 1; group <= last; group++) ends[group] += ends[group - 1];
  for (let row = rowCount - 1; row >= 0; row--) {
    const at = --ends[groups[row]];
    ordered[at] = groups[row];
    moved[at] = values[row];
  }
  return { groups: ordered, values: moved };
}

class HistogramState implements BatchAggregateState {
  private readonly groups: Counts[] = [];
  private readonly half: number;
  /** `half` is a power of two. */
  private readonly halfBits: number;
  /** Counts of the current batch by the upper bits of values. All are 0 between batches. */
  private scratch?: Uint32Array;

  constructor(private readonly isWhole: boolean, private readonly fraction: number, precision: number) {
    this.halfBits = Math.ceil(Math.log2(2 * 10 ** precision)) - 1;
    this.half = 2 ** this.halfBits;
  }

  private add(group: number, value: number, count = 1): void {
    const counts = this.groups[group] ??= noCounts();
    const start = this.startOf(value);
    counts.byStart.set(start, (counts.byStart.get(start) ?? 0) + count);
    counts.total += count;
    if (value > 0 && value < counts.least) counts.least = value;
  }

  /** Buckets of integers are at least 1 wide. */
  private width(value: number): number {
    const width = powerOf(value) / this.half;
    return this.isWhole ? Math.max(1, width) : width;
  }

  private startOf(value: number): number {
    if (value === 0) return 0;
    const width = this.width(value);
    return Math.floor(value / width) * width;
  }

  update(given: Int32Array | undefined, [column]: BatchColumn[], rowCount: number): void {
    const usesScratch = this.halfBits <= SCRATCH_BITS_MAX;
    const { groups, values } = given !== undefined && usesScratch
      ? inGroupOrder(given, column.values, rowCount)
      : { groups: given, values: column.values };
    for (let row = 0, end = 0; row < rowCount; row = end) {
      const group = groups === undefined ? 0 : groups[row];
      if (groups === undefined) end = rowCount;
      else while (end < rowCount && groups[end] === group) end++;
      if (usesScratch && end - row >= SCRATCH_ROWS_MIN) this.addAll(group, values, row, end);
      else for (let k = row; k < end; k++) this.take(group, values[k]);
    }
  }

  private take(group: number, given: number | bigint): void {
    if (this.isWhole ? given === NULL_I64 : Number.isNaN(given)) return;
    const value = Number(given);
    if (value < 0) {
      throw new SqlError("approx_percentile does not accept negative values", 0, SQLSTATE.invalidParameter);
    }
    this.add(group, value);
  }

  /**
   * Adds rows from … to-1, all of one group. The start of a bucket is the value without the lower bits of its fraction, also of integers, because those
   * in buckets of width 1 do not have such bits.
   */
  private addAll(group: number, values: Values, from: number, to: number): void {
    const shift = FRACTION_BITS - this.halfBits, cell = new Float64Array(1), words = new Int32Array(cell.buffer);
    const scratch = this.scratch ??= new Uint32Array(EXPONENTS << this.halfBits);
    let first = scratch.length, last = -1;
    for (let row = from; row < to; row++) {
      cell[0] = Number(values[row]);
      const high = words[1];
      if (high < NORMAL || high >= INFINITE) {
        this.take(group, values[row]);
        continue;
      }
      const bucket = high >> shift;
      scratch[bucket]++;
      if (bucket < first) first = bucket;
      if (bucket > last) last = bucket;
    }
    words[0] = 0;
    for (let bucket = first; bucket <= last; bucket++) {
      if (scratch[bucket] === 0) continue;
      words[1] = bucket << shift;
      this.add(group, cell[0], scratch[bucket]);
      scratch[bucket] = 0;
    }
  }

  merge(later: HistogramState, mapping: Int32Array): void {
    later.groups.forEach((from, group) => {
      const to = this.groups[mapping[group]] ??= noCounts();
      for (const [start, count] of from.byStart) to.byStart.set(start, (to.byStart.get(start) ?? 0) + count);
      to.total += from.total;
      to.least = Math.min(to.least, from.least);
    });
  }

  finish(out: BatchOut, groupCount: number): void {
    for (let group = 0; group < groupCount; group++) {
      const counts = this.groups[group];
      out.values[group] = counts === undefined || counts.total === 0 ? NaN : this.percentile(counts);
    }
  }

  /** The last value of the bucket that contains the fraction; for fraction 0 the bucket's first value. */
  private percentile({ byStart, total, least }: Counts): number {
    const wanted = Math.max(1, Math.ceil(this.fraction * total));
    let seen = 0;
    for (const start of [...byStart.keys()].sort((a, b) => a - b)) {
      seen += byStart.get(start)!;
      if (seen < wanted) continue;
      if (start === 0 || this.fraction === 0) return start;
      const smallest = this.isWhole ? 1 : powerOf(least) / this.half;
      return start + this.width(start) - smallest;
    }
    return NaN;
  }

  sizeBytes(): number {
    const counted = this.groups.reduce((sum, counts) => sum + 64 + (counts?.byStart.size ?? 0) * 48, 0);
    return counted + (this.scratch?.byteLength ?? 0);
  }
}

function check(constants: readonly (Value | undefined)[], fractionAt: number | undefined, precisionAt: number) {
  const fraction = fractionAt === undefined ? undefined : constants[fractionAt];
  const precision = constants[precisionAt];
  if (fraction === null || (fraction !== undefined && !(Number(fraction) >= 0 && Number(fraction) <= 1))) {
    return { message: "expected a fraction from 0 to 1" };
  }
  if (
    precision === null || (precision !== undefined && !(Number(precision) >= 0 && Number(precision) <= PRECISION_MAX))
  ) {
    return { argument: precisionAt, message: `expected a precision from 0 to ${PRECISION_MAX}` };
  }
  return undefined;
}

function entry(type: string, isMedian: boolean, withPrecision: boolean): FunctionEntry {
  const args: FunctionEntry["args"] = [{ name: "value", type }];
  if (!isMedian) args.push({ name: "fraction", type: "DOUBLE", constant: true });
  const precisionAt = args.length;
  if (withPrecision) args.push({ name: "precision", type: "INT", constant: true });
  return {
    name: isMedian ? "approx_median" : "approx_percentile",
    args,
    returns: "DOUBLE",
    nulls: "custom",
    volatility: "immutable",
    summary: isMedian
      ? "The approximate median, to `precision` digits (default 1)."
      : "The approximate percentile: the least value that at least this fraction of the values does not exceed, to `precision` digits (default 1).",
    examples: isMedian
      ? [{ sql: "SELECT approx_median(x, 3) FROM long_sequence(5)", gives: 3 }]
      : [{ sql: "SELECT approx_percentile(x, 0.9) FROM long_sequence(1000)", gives: 927 }],
    check: (constants) => check(constants, isMedian ? undefined : 1, precisionAt),
    aggregate: {
      kind: "batch",
      create: (_, constants) =>
        new HistogramState(
          type === "LONG",
          isMedian ? 0.5 : Number(constants[1]),
          withPrecision ? Number(constants[precisionAt]) : PRECISION_DEFAULT,
        ),
    },
  };
}

export const approximateFunctions: FunctionEntry[] = ["LONG", "DOUBLE"].flatMap((type) =>
  [false, true].flatMap((isMedian) => [false, true].map((withPrecision) => entry(type, isMedian, withPrecision)))
);
