/** Evaluates window functions over partitioned and ordered rows, with their frames. */
import { assert } from "../../assert.ts";
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { Expr, WindowCall } from "../../sql/plan.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { fillConstant, gather, isNullAt, markNotNull, POLL_ROWS, TextArena, type Workspace } from "../columns.ts";
import type { QueryContext, Vector } from "../contract.ts";
import { freeOrderWords, type OrderWords, orderWords, sameWords } from "../order.ts";
import type { KeptCall } from "../physical/plan.ts";
import { seesAhead } from "../physical/window.ts";
import { aggregateFrames } from "./window-aggregates.ts";
import { byPosition, type Frame, type OrderedRows } from "./window-frames.ts";

interface Evaluation {
  call: WindowCall;
  /** By input row; undefined for constants. */
  args: (Vector | undefined)[];
  ordered: OrderedRows;
  frame?: Frame;
  space: Workspace;
  poll: () => void;
}

/** The result column of a call, by input row. */
export function evaluateCall(
  call: WindowCall,
  { mergesStates }: KeptCall,
  args: (Vector | undefined)[],
  ordered: OrderedRows,
  frame: Frame | undefined,
  space: Workspace,
  context: QueryContext,
): Vector {
  const name = call.function.slice(0, call.function.indexOf("("));
  const evaluate = mergesStates ? undefined : FUNCTIONS[name];
  if (evaluate === undefined) return aggregateFrames(call, args, ordered, frame!, space, context);
  return evaluate({ call, args, ordered, frame, space, poll: () => context.poll() });
}

/** The functions with an evaluation of their own. */
const FUNCTIONS: Record<string, (evaluation: Evaluation) => Vector> = {
  row_number: (e) =>
    longs(e, (first, end, put) => {
      for (let i = first; i < end; i++) put(i, i - first + 1);
    }),
  rank: (e) => longs(e, (first, end, put) => eachRank(e, first, end, (i, rank) => put(i, rank))),
  dense_rank: (e) => longs(e, (first, end, put) => eachRank(e, first, end, (i, _, dense) => put(i, dense))),
  percent_rank: (e) =>
    doubles(e, (first, end, put) => {
      eachRank(e, first, end, (i, rank) => put(i, end - first > 1 ? (rank - 1) / (end - first - 1) : 0));
    }),
  cume_dist: (e) =>
    doubles(e, (first, end, put) => {
      let from = first;
      const close = (to: number) => {
        for (; from < to; from++) put(from, (to - first) / (end - first));
      };
      eachRank(e, first, end, (i, rank) => close(first + rank - 1 === i ? i : from));
      close(end);
    }),
  ntile: (e) => {
    const count = constantNumber(e, 0) ?? 1;
    return longs(e, (first, end, put) => {
      const size = Math.floor((end - first) / count), larger = (end - first) % count;
      // This many rows are in parts with one row more.
      const inLarger = larger * (size + 1);
      for (let i = first; i < end; i++) {
        const at = i - first;
        const part = at < inLarger ? Math.floor(at / (size + 1)) : larger + Math.floor((at - inLarger) / size);
        put(i, part + 1);
      }
    });
  },
  nth_value: nthValue,
  lag: (e) => shifted(e, -1),
  lead: (e) => shifted(e, 1),
  first_value: (e) => endOfFrame(e, true),
  last_value: (e) => endOfFrame(e, false),
  first: (e) => endOfFrame(e, true),
  last: (e) => endOfFrame(e, false),
  min: (e) => extreme(e, -1),
  max: (e) => extreme(e, 1),
  count,
  sum: (e) => sums(e, false),
  ksum: (e) => sums(e, false),
  nsum: (e) => sums(e, false),
  avg: (e) => e.call.args.length > 1 ? exponentialAverage(e) : sums(e, true),
};

type Put = (place: number, value: number) => void;

function result(e: Evaluation, type: string): Vector {
  return { type, address: e.space.allocate(Math.max(1, e.ordered.rowCount) * typeOf(type).width) };
}

function eachPartition(e: Evaluation, work: (first: number, end: number) => void): void {
  const { starts, partitionCount } = e.ordered;
  for (let p = 0, since = 0; p < partitionCount; p++) {
    since += starts[p + 1] - starts[p];
    if (since >= POLL_ROWS) {
      e.poll();
      since = 0;
    }
    work(starts[p], starts[p + 1]);
  }
}

/** A LONG column of counts and ranks: not negative, below 2^53. */
function longs(e: Evaluation, work: (first: number, end: number, put: Put) => void): Vector {
  assert(layoutOf(e.call.type) === "i64", "ranks and counts are LONG");
  const out = result(e, e.call.type), { i32 } = e.space.heap, base = out.address >>> 2, { rows } = e.ordered;
  const put: Put = (place, value) => {
    const at = base + rows[place] * 2;
    i32[at] = value;
    i32[at + 1] = value / 4294967296;
  };
  eachPartition(e, (first, end) => work(first, end, put));
  return out;
}

function doubles(e: Evaluation, work: (first: number, end: number, put: Put) => void): Vector {
  if (layoutOf(e.call.type) !== "f64") throw notSupported(`A window result of type ${e.call.type}`, e.call.at);
  const out = result(e, e.call.type), { f64 } = e.space.heap, base = out.address >>> 3, { rows } = e.ordered;
  const put: Put = (place, value) => {
    f64[base + rows[place]] = value;
  };
  eachPartition(e, (first, end) => work(first, end, put));
  return out;
}

/** Without ORDER BY all rows are peers. */
function eachRank(
  e: Evaluation,
  first: number,
  end: number,
  each: (place: number, rank: number, dense: number) => void,
): void {
  const { rows, words } = e.ordered;
  let rank = 1, dense = 1;
  for (let i = first; i < end; i++) {
    if (i % POLL_ROWS === 0) e.poll();
    if (i > first && !sameWords(words, rows[i - 1], rows[i])) {
      rank = i - first + 1;
      dense++;
    }
    each(i, rank, dense);
  }
}

function constantNumber(e: Evaluation, index: number): number | undefined {
  const expression: Expr | undefined = e.call.args[index];
  if (expression === undefined) return undefined;
  if (expression.kind !== "constant") throw new SqlError("Must be a constant", e.call.at, SQLSTATE.invalidParameter);
  return expression.value === null ? undefined : Number(expression.value);
}

/** Marks the rows with a value, if the call ignores nulls. */
function valued(e: Evaluation, vector: Vector | undefined): Uint8Array | undefined {
  if (vector === undefined) return undefined;
  const marks = e.space.bytes(Math.max(1, e.ordered.rowCount));
  markNotNull(e.space.heap, vector, e.ordered.rowCount, marks);
  return marks;
}

/** The argument's values in rows `picks` (by input row; -1 null), in the call's type. */
function picked(e: Evaluation, source: Vector, picks: Int32Array): Vector {
  const { space, ordered } = e;
  const out = result(e, source.type);
  out.dictionary = source.dictionary;
  gather(space.heap, source.type, source.address, picks, ordered.rowCount, out.address, true);
  return converted(e, out);
}

const OUT_OF_PARTITION = -2;

function shifted(e: Evaluation, direction: -1 | 1): Vector {
  const { call, ordered, space } = e, { rows, rowCount } = ordered;
  const source = e.args[0] ?? constantColumn(e, 0);
  const offset = constantNumber(e, 1) ?? 1;
  const picks = space.words(rowCount + 1);
  const marks = call.ignoreNulls ? valued(e, source) : undefined;
  const withValue = marks === undefined ? undefined : space.words(rowCount + 1);
  eachPartition(e, (first, end) => {
    if (marks === undefined || withValue === undefined || offset === 0) {
      for (let i = first; i < end; i++) {
        const other = i + direction * offset;
        picks[rows[i]] = other >= first && other < end ? rows[other] : OUT_OF_PARTITION;
      }
    } else {
      let n = 0;
      for (let i = direction < 0 ? first : end - 1; i >= first && i < end; i -= direction) {
        picks[rows[i]] = n >= offset ? withValue[n - offset] : OUT_OF_PARTITION;
        if (marks[rows[i]] !== 0) withValue[n++] = rows[i];
      }
    }
  });
  const out = picked(e, source, picks);
  const hasDefault = call.args[2] !== undefined && !(call.args[2].kind === "constant" && call.args[2].value === null);
  if (hasDefault) {
    const otherwise = converted(e, e.args[2] ?? constantColumn(e, 2)),
      words = typeOf(call.type).width >>> 2,
      { i32 } = space.heap;
    if (words === 0 || out.dictionary !== undefined) throw notSupported(`A default of type ${call.type}`, call.at);
    for (let row = 0; row < rowCount; row++) {
      if (picks[row] !== OUT_OF_PARTITION) continue;
      for (let k = 0; k < words; k++) {
        i32[(out.address >>> 2) + row * words + k] = i32[(otherwise.address >>> 2) + row * words + k];
      }
    }
  }
  space.freeWords(picks);
  return out;
}

/** A constant argument as a column. */
function constantColumn(e: Evaluation, index: number): Vector {
  const expression = e.call.args[index];
  assert(expression?.kind === "constant", "arguments without columns are constants");
  const { value } = expression, { space, ordered } = e;
  const own = value === null ? e.call.type : expression.type;
  const out = result(e, layoutOf(own) === "symbol" ? "STRING" : own);
  fillConstant(space.heap, out.type, out.address, ordered.rowCount, value, new TextArena(space));
  return out;
}

function endOfFrame(e: Evaluation, first: boolean): Vector {
  const { call, ordered, space } = e, { rows, rowCount } = ordered, { low, high } = e.frame!;
  const source = e.args[0] ?? constantColumn(e, 0);
  const picks = space.words(rowCount + 1);
  const marks = call.ignoreNulls ? valued(e, source) : undefined;
  const whole = first && seesAhead(call);
  // Ignoring nulls: the next (or last) position with a value, from each position.
  const nearest = marks === undefined ? undefined : space.words(rowCount + 1);
  eachPartition(e, (from, end) => {
    if (marks !== undefined && nearest !== undefined) {
      if (first) {
        for (let i = end - 1, place = end; i >= from; i--) {
          nearest[i] = place = marks[rows[i]] !== 0 ? i : place;
        }
      } else for (let i = from, place = from - 1; i < end; i++) nearest[i] = place = marks[rows[i]] !== 0 ? i : place;
    }
    for (let i = from; i < end; i++) {
      let place = -1;
      if (whole) {
        if (from < end && nearest![from] < end) place = nearest![from];
      } else if (high[i] >= low[i]) {
        place = first ? low[i] : high[i];
        if (nearest !== undefined) place = nearest[place];
        if (place < low[i] || place > high[i]) place = -1;
      }
      picks[rows[i]] = place < 0 ? -1 : rows[place];
    }
  });
  const out = picked(e, source, picks);
  space.freeWords(picks);
  return out;
}

function nthValue(e: Evaluation): Vector {
  const { ordered: { rows, rowCount }, space } = e, { low, high } = e.frame!, n = constantNumber(e, 1) ?? 1;
  const picks = space.words(rowCount + 1);
  eachPartition(e, (from, end) => {
    for (let i = from; i < end; i++) {
      const place = low[i] + n - 1;
      picks[rows[i]] = place <= high[i] ? rows[place] : -1;
    }
  });
  const out = picked(e, e.args[0] ?? constantColumn(e, 0), picks);
  space.freeWords(picks);
  return out;
}

/** Least or greatest value of each frame: a monotonic queue of positions, whose head is the answer. */
function extreme(e: Evaluation, sign: -1 | 1): Vector {
  const { ordered, space, poll } = e, { rows, rowCount } = ordered, { low, high } = e.frame!;
  const source = e.args[0] ?? constantColumn(e, 0), values = byPosition(ordered, source, space);
  const words = orderWords([values], [{ descending: false }], rowCount, space, poll);
  const marks = valued(e, values)!;
  const picks = space.words(rowCount + 1), queue = space.words(rowCount + 1);
  eachPartition(e, (from, end) => {
    let head = 0, tail = 0, next = from;
    for (let i = from; i < end; i++) {
      if (i % POLL_ROWS === 0) poll();
      for (; next <= high[i]; next++) {
        if (marks[next] === 0) continue;
        while (tail > head && compareWords(words, queue[tail - 1], next) * sign < 0) tail--;
        queue[tail++] = next;
      }
      while (head < tail && queue[head] < low[i]) head++;
      picks[rows[i]] = head < tail ? rows[queue[head]] : -1;
    }
  });
  freeOrderWords(words, space);
  if (values !== source) space.free(values.address);
  const out = picked(e, source, picks);
  space.freeWords(picks);
  space.freeWords(queue);
  space.freeWords(marks);
  return out;
}

function compareWords(words: OrderWords, a: number, b: number): number {
  for (let w = 0; w < words.length; w++) {
    const x = words[w][a] >>> 0, y = words[w][b] >>> 0;
    if (x !== y) return x < y ? -1 : 1;
  }
  return 0;
}

function count(e: Evaluation): Vector {
  const { low, high } = e.frame!, { ordered, space } = e, [arg] = e.args;
  const constant = e.call.args[0]?.kind === "constant" ? e.call.args[0] : undefined;
  const values = arg && byPosition(ordered, arg, space), marks = valued(e, values);
  if (values !== arg) space.free(values!.address);
  if (marks === undefined) {
    const weight = constant !== undefined && constant.value === null ? 0 : 1;
    return longs(e, (first, end, put) => {
      for (let i = first; i < end; i++) put(i, weight * Math.max(0, high[i] - low[i] + 1));
    });
  }
  const out = longs(e, (first, end, put) => {
    let n = 0, from = first, next = first;
    for (let i = first; i < end; i++) {
      for (; next <= high[i]; next++) n += marks[next];
      for (; from < low[i] && from < next; from++) n -= marks[from];
      put(i, high[i] < low[i] ? 0 : n);
    }
  });
  space.freeWords(marks);
  return out;
}

/** The argument as doubles by position; NaN for null. */
function doubleValues(e: Evaluation, index: number): { values: Float64Array; free(): void } {
  const { space, ordered } = e, { f64 } = space.heap;
  const source = asDoubles(e, e.args[index] ?? constantColumn(e, index)),
    { address } = byPosition(ordered, source, space);
  return {
    values: f64.subarray(address >>> 3, (address >>> 3) + ordered.rowCount),
    free: () => {
      if (address !== source.address) space.free(address);
    },
  };
}

/**
 * Sum or mean of each frame. Values are added at one end and subtracted at the other in double-double arithmetic, so
 * that a large value leaves no rounding error behind.
 * Source: Knuth, The Art of Computer Programming, vol. 2, 4.2.2 (the error of a sum, exactly).
 */
function sums(e: Evaluation, mean: boolean): Vector {
  const { rows } = e.ordered, { low, high } = e.frame!;
  const { values, free } = doubleValues(e, 0);
  if (layoutOf(e.call.type) !== "f64") throw notSupported(`A window result of type ${e.call.type}`, e.call.at);
  const out = result(e, e.call.type), { f64 } = e.space.heap, base = out.address >>> 3;
  eachPartition(e, (first, end) => {
    let sum = 0, rest = 0, n = 0, from = first, next = first;
    for (let i = first; i < end; i++) {
      if (i % POLL_ROWS === 0) e.poll();
      for (const last = high[i]; next <= last; next++) {
        const value = values[next];
        if (value !== value) continue;
        const s = sum + value, t = s - sum;
        rest += (sum - (s - t)) + (value - t);
        sum = s;
        n++;
      }
      for (const start = low[i]; from < start && from < next; from++) {
        const value = -values[from];
        if (value !== value) continue;
        const s = sum + value, t = s - sum;
        rest += (sum - (s - t)) + (value - t);
        sum = s;
        n--;
      }
      if (n === 0) sum = rest = 0;
      f64[base + rows[i]] = n === 0 || high[i] < low[i] ? NaN : mean ? (sum + rest) / n : sum + rest;
    }
  });
  free();
  return out;
}

/** A unit in microseconds. */
const UNIT_MICROS: Record<string, number> = {
  nanosecond: 0.001,
  microsecond: 1,
  millisecond: 1_000,
  second: 1_000_000,
  minute: 60_000_000,
  hour: 3_600_000_000,
  day: 86_400_000_000,
  week: 604_800_000_000,
};

/** Ticks of a time type in a microsecond. */
const TICKS_PER_MICRO: Record<string, number> = { DATE: 0.001, TIMESTAMP: 1, TIMESTAMP_NS: 1_000 };

/**
 * avg(value, kind, n [, volume]): each value moves the mean towards itself by a weight: `n` itself for 'alpha', 2 / (n
 * + 1) for 'period', and for a time unit 1 - exp(-dt / n units), where dt is the time since the previous row. With a
 * volume, value times volume and volume are both averaged this way.
 */
function exponentialAverage(e: Evaluation): Vector {
  const { call, ordered } = e, { rows, orderKey } = ordered, { i32 } = e.space.heap;
  const kindArg = call.args[1], n = constantNumber(e, 2);
  const kind = kindArg?.kind === "constant" ? String(kindArg.value).toLowerCase() : "";
  if (n === undefined) throw new SqlError("An exponential average needs a number", call.at, SQLSTATE.invalidParameter);
  let weight: number | undefined, tau = 0;
  if (kind === "alpha") weight = n;
  else if (kind === "period") weight = 2 / (n + 1);
  else {
    const unit = UNIT_MICROS[kind] ?? UNIT_MICROS[kind.replace(/s$/, "")],
      ticks = orderKey && TICKS_PER_MICRO[orderKey.type];
    if (unit === undefined) {
      throw new SqlError(`Unknown exponential average '${kind}'`, call.at, SQLSTATE.invalidParameter);
    }
    if (ticks === undefined) {
      throw new SqlError("An exponential average by time needs an order by time", call.at, SQLSTATE.invalidParameter);
    }
    tau = n * unit * ticks;
  }
  const { values, free } = doubleValues(e, 0), volumes = call.args.length > 3 ? doubleValues(e, 3) : undefined;
  const keys = orderKey === undefined ? 0 : orderKey.address >>> 2;
  const out = doubles(e, (first, end, put) => {
    let value = NaN, volume = NaN;
    for (let i = first; i < end; i++) {
      if (i % POLL_ROWS === 0) e.poll();
      const x = values[i], v = volumes === undefined ? 1 : volumes.values[i];
      if (x === x && v === v && v !== 0) {
        let w = weight;
        if (w === undefined) {
          if (i === first) w = 1;
          else {
            const p = keys + rows[i - 1] * 2, q = keys + rows[i] * 2;
            const dt = (i32[q + 1] - i32[p + 1]) * 4294967296 + ((i32[q] >>> 0) - (i32[p] >>> 0));
            w = dt <= 0 ? 1 : 1 - Math.exp(-dt / tau);
          }
        }
        if (value !== value) {
          value = x * v;
          volume = v;
        } else {
          value = w * x * v + (1 - w) * value;
          volume = w * v + (1 - w) * volume;
        }
      }
      put(i, volumes === undefined ? value : value / volume);
    }
  });
  free();
  volumes?.free();
  return out;
}

function asDoubles(e: Evaluation, vector: Vector): Vector {
  return layoutOf(vector.type) === "f64" ? vector : convert(e, vector, "DOUBLE");
}

/** `vector` converted to the call's type. */
function converted(e: Evaluation, vector: Vector): Vector {
  if (vector.type === e.call.type) return vector;
  const layout = layoutOf(e.call.type);
  if (layoutOf(vector.type) === layout && layout !== "symbol") return { type: e.call.type, address: vector.address };
  return convert(e, vector, e.call.type);
}

/** Widens numbers; symbols become their texts. Nulls stay null. */
function convert(e: Evaluation, vector: Vector, type: string): Vector {
  const { space, ordered } = e, { rowCount } = ordered, { heap } = space;
  const from = layoutOf(vector.type), to = layoutOf(type);
  const out = result(e, type);
  if (from === "symbol" && to === "text") {
    const { i32 } = heap, entries = vector.dictionary!.entries >>> 2;
    for (let row = 0, at = out.address >>> 2; row < rowCount; row++, at += 2) {
      const code = i32[(vector.address >>> 2) + row];
      i32[at] = code < 0 ? 0 : i32[entries + code * 2];
      i32[at + 1] = code < 0 ? -1 : i32[entries + code * 2 + 1];
    }
    return out;
  }
  const view = { i8: heap.i8, i16: heap.i16, i32: heap.i32, f32: heap.f32, f64: heap.f64, i64: heap.i64 }[from as "i8"];
  if (view === undefined || (to !== "i64" && to !== "f64")) {
    throw notSupported(`${e.call.function} as ${type} of ${vector.type}`, e.call.at);
  }
  const values: Int8Array | BigInt64Array = view, base = vector.address / view.BYTES_PER_ELEMENT;
  for (let row = 0; row < rowCount; row++) {
    if (row % POLL_ROWS === 0) e.poll();
    const isNull = isNullAt(heap, vector.type, vector.address, row), value = values[base + row];
    if (to === "f64") heap.f64[(out.address >>> 3) + row] = isNull ? NaN : Number(value);
    else {heap.i64[(out.address >>> 3) + row] = isNull
        ? -0x8000000000000000n
        : BigInt(typeof value === "number" ? Math.trunc(value) : value);}
  }
  return out;
}
