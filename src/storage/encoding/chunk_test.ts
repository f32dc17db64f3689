import fc from "../../properties.ts";
import { deepEqual, equal, ok } from "node:assert/strict";
import { ARRAY_CONSTRUCTOR, type Layout, LAYOUT_WIDTH, nullTest, typeOf } from "../../types/mod.ts";
import { type PassingIntegers, type RowCondition, SUMMARY, SUMMARY_WORDS } from "../contract.ts";
import { createHeap } from "../heap.ts";
import { VECTOR_ROWS } from "./bits.ts";
import { ChunkCodec, type PlainIntegers } from "./chunk.ts";
import { CODEC_BYTES } from "./chunk-scratch.ts";
import { areIntact, summariesBytes } from "./summaries.ts";

const TYPES: Partial<Record<Layout, string>> = {
  i8: "BYTE",
  i16: "SHORT",
  i32: "INT",
  i64: "LONG",
  symbol: "SYMBOL",
  f32: "FLOAT",
  f64: "DOUBLE",
};

const heap = createHeap(16 << 20);
const codec = new ChunkCodec(heap, heap.allocate(CODEC_BYTES, "other"));
const SOURCE = heap.allocate(1 << 20, "other"), TARGET = heap.allocate(1 << 20, "other");
const ROW_LIST = heap.allocate(4 << 16, "other"), STORED = heap.allocate(1 << 20, "other");

/** Encodes and decodes the bytes. Returns the encoded size, or undefined if they were not encoded. */
function roundTrip(layout: Layout, values: Uint8Array): number | undefined {
  heap.u8.set(values, SOURCE);
  const encoded = codec.encode(layout, typeOf(TYPES[layout]!).nullWords, SOURCE, values.length)?.bytes.slice();
  if (encoded === undefined) return undefined;
  checkSummaries(layout, encoded, values);
  heap.u8.set(encoded, SOURCE);
  for (const stored of [encoded, heap.u8.subarray(SOURCE, SOURCE + encoded.length)]) {
    checkDecoded(layout, stored, values);
  }
  checkSelected(layout, heap.u8.subarray(SOURCE, SOURCE + encoded.length), values);
  checkOffsets(layout, heap.u8.subarray(SOURCE, SOURCE + encoded.length), values);
  return encoded.length;
}

/** Selects by bounds that are values of the column, or next to them, and gathers the rows. `stored` is in the shared memory. */
function checkSelected(layout: Layout, stored: Uint8Array, values: Uint8Array): void {
  const width = LAYOUT_WIDTH[layout], rowCount = values.length / width, isNull = nullTestOf(layout, values);
  const all = new ARRAY_CONSTRUCTOR[layout](values.buffer as ArrayBuffer, values.byteOffset, rowCount);
  let seed = rowCount;
  const random = (below: number) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % below;
  const boundOf = () => {
    const value = all[random(rowCount)];
    if (typeof value === "bigint" || Number.isNaN(value)) return typeof value === "bigint" ? value : undefined;
    return [value, value + 0.001, value - 0.001, undefined][random(4)];
  };
  for (let attempt = 0; attempt < 4; attempt++) {
    const low = boundOf(), high = boundOf(), from = random(rowCount), to = from + 1 + random(rowCount - from);
    const isWithin = (row: number) =>
      !isNull(row) && (low === undefined || all[row] >= low) && (high === undefined || all[row] <= high);
    const bounds = [{ column: 0, low, high }, { column: 1 }];
    const count = codec.selectRows(bounds, { from, to }, (_, select) => select(stored), ROW_LIST, 65_536);
    const rows = heap.i32.slice(ROW_LIST / 4, ROW_LIST / 4 + count), selected = new Set(rows);
    equal(selected.size, count);
    ok(rows.every((row, k) => row >= from && row < to && (k === 0 || rows[k - 1] < row)), "rows ascend");
    for (let row = from; row < to; row++) {
      ok(!isWithin(row) || selected.has(row), `${layout}: row ${row} is missing`);
    }
    const isFloat = layout === "f32" || layout === "f64";
    const between = isFloat ? conditionBetween(layout, low, high) : conditionAmong(layout, all, random);
    const others = isFloat ? between : conditionAmong(layout, all, random);
    const passes = (row: number) =>
      between instanceof Among && others instanceof Among
        ? between.passes(all[row]!) && others.passes(all[row]!)
        : isWithin(row);
    const check = (chunk: Uint8Array | PlainIntegers, title: string) => {
      const marked = codec.maskRows([between, others], { from, to }, (_, use) => use(chunk), ROW_LIST);
      if (marked === undefined) return;
      for (let row = from; row < to; row++) {
        const isMarked = (heap.u8[ROW_LIST + (row >> 3)] >> (row & 7) & 1) === 1;
        equal(isMarked, passes(row), `${layout}, ${title}: row ${row} is ${isMarked ? "" : "not "}marked`);
      }
      equal(marked, Array.from({ length: to - from }, (_, k) => from + k).filter(passes).length);
      markedCount++;
      const { withExceptions } = codec.vectorCounts();
      markedExceptions[layout] = (markedExceptions[layout] ?? 0) + withExceptions;
    };
    check(stored, "encoded");
    if (!isFloat) {
      heap.u8.set(values, STORED);
      check({ address: STORED, rowCount }, "plain");
    }
    checkGathered(layout, stored, values, rows);
  }
}

function checkGathered(layout: Layout, stored: Uint8Array, values: Uint8Array, rows: Int32Array): void {
  const width = LAYOUT_WIDTH[layout], count = rows.length;
  heap.i32.set(rows, ROW_LIST / 4);
  codec.gatherRows(stored, ROW_LIST, count, TARGET);
  const gathered = heap.u8.slice(TARGET, TARGET + count * width);
  const expected = new Uint8Array(count * width);
  rows.forEach((row, k) => expected.set(values.subarray(row * width, (row + 1) * width), k * width));
  for (let k = 0; k < gathered.length; k++) {
    if (gathered[k] !== expected[k]) {
      throw new Error(`${layout}: row ${rows[Math.floor(k / width)]} is gathered wrong`);
    }
  }
}

/** How often rows were marked, and how often among rows with exceptions. */
let markedCount = 0;
const markedExceptions: Partial<Record<Layout, number>> = {};

/** Some ranges of integers, between values of the column, or all others. */
class Among implements RowCondition {
  readonly column = 0;
  share = 1;

  constructor(
    readonly integerBytes: number,
    private readonly ranges: PassingIntegers["ranges"],
    private readonly areOthers: boolean,
  ) {}

  passes(value: number | bigint): boolean {
    return this.ranges.some(({ low, high }) => value >= low && value <= high) !== this.areOthers;
  }

  passingOf(): PassingIntegers {
    return { ranges: this.ranges, areOthers: this.areOthers };
  }

  test(address: number, count: number, mask: number): void {
    const array = this.integerBytes === 8 ? heap.i64 : this.integerBytes === 4 ? heap.i32 : undefined;
    ok(array !== undefined, "only these have slopes");
    heap.u8.fill(0, mask, mask + Math.ceil(count / 8));
    for (let k = 0; k < count; k++) {
      if (this.passes(array[address / this.integerBytes + k]!)) heap.u8[mask + (k >> 3)]! |= 1 << (k & 7);
    }
  }
}

function conditionAmong(
  layout: Layout,
  values: ArrayLike<number | bigint>,
  random: (below: number) => number,
): Among {
  const width = LAYOUT_WIDTH[layout], ranges: { low: bigint; high: bigint }[] = [];
  const least = layout === "symbol" ? 0n : -(2n ** BigInt(8 * width - 1)) + (width < 4 ? 0n : 1n);
  for (let k = random(4); k > 0; k--) {
    const first = BigInt(values[random(values.length)]!), last = BigInt(values[random(values.length)]!);
    const low = first < least ? least : first, high = random(2) === 0 ? low : last;
    if (low <= high && (width >= 4 || low > 0n || high < 0n)) ranges.push({ low, high });
  }
  return new Among(width, ranges, random(2) === 0);
}

/** As conditions of queries: integers that pass are found by trying them. */
function conditionBetween(
  layout: Layout,
  low: number | bigint | undefined,
  high: number | bigint | undefined,
): RowCondition {
  const isHighEnough = (value: number | bigint) => low === undefined || value >= low;
  const isLowEnough = (value: number | bigint) => high === undefined || value <= high;
  /** The least integer for which `holds` is true, as it is for all greater ones. */
  const leastOf = (holds: (integer: number) => boolean) => {
    let below = -(2 ** 53), found = 2 ** 53;
    while (found - below > 1) {
      const middle = Math.floor((below + found) / 2);
      if (holds(middle)) found = middle;
      else below = middle;
    }
    return found;
  };
  return {
    column: 0,
    share: 1,
    passingOf: ({ scale, power }) => {
      const round = layout === "f32" ? Math.fround : (value: number) => value;
      const valueOf = (integer: number) =>
        round(scale === "quotient" ? integer / power : scale === "product" ? integer * power : integer);
      const from = leastOf((integer) => isHighEnough(valueOf(integer)));
      const to = leastOf((integer) => !isLowEnough(valueOf(integer))) - 1;
      return { ranges: from <= to ? [{ low: BigInt(from), high: BigInt(to) }] : [], areOthers: false };
    },
    test: (address, count, mask) => {
      const values = new ARRAY_CONSTRUCTOR[layout](heap.u8.buffer as ArrayBuffer, address, count);
      const isNullHere = nullTestOf(layout, new Uint8Array(values.buffer, address, values.byteLength));
      heap.u8.fill(0, mask, mask + Math.ceil(count / 8));
      for (let k = 0; k < count; k++) {
        const passes = !isNullHere(k) && isHighEnough(values[k]) && isLowEnough(values[k]);
        if (passes) heap.u8[mask + (k >> 3)] |= 1 << (k & 7);
      }
    },
  };
}

/** Chunks with offsets, by scale. */
const offsetCounts = { integer: 0, quotient: 0, product: 0, none: 0, withNulls: 0 };

/** `stored` is in the shared memory. */
function checkOffsets(layout: Layout, stored: Uint8Array, values: Uint8Array): void {
  const width = LAYOUT_WIDTH[layout], rowCount = values.length / width;
  if (layout === "symbol") return; // codes are no numbers
  const all = new ARRAY_CONSTRUCTOR[layout](values.buffer as ArrayBuffer, values.byteOffset, rowCount);
  const isNull = nullTestOf(layout, values), from = rowCount >> 2, to = rowCount - (rowCount >> 3);
  const found = codec.readOffsets(stored, { from, to }, TARGET);
  offsetCounts[found === undefined ? "none" : found.scale]++;
  if (found === undefined) return;
  const { scale, power, least, greatest, hasNulls } = found;
  if (hasNulls) offsetCounts.withNulls++;
  for (let row = from; row < to; row++) {
    const offset = heap.i32[TARGET / 4 + row];
    if (isNull(row)) {
      ok(hasNulls && offset === -1, `${layout}: row ${row} is NULL, not ${offset}`);
      continue;
    }
    ok(offset >= 0 && offset <= greatest);
    const integer = least + offset;
    const value = scale === "quotient" ? integer / power : scale === "product" ? integer * power : integer;
    const expected = all[row];
    ok(
      typeof expected === "bigint"
        ? expected === BigInt(value)
        : Object.is(layout === "f32" ? Math.fround(value) : value, expected),
      `${layout}: row ${row} is ${value} instead of ${expected}`,
    );
  }
}

function checkDecoded(layout: Layout, encoded: Uint8Array, values: Uint8Array): void {
  const width = LAYOUT_WIDTH[layout], rowCount = values.length / width;
  const decoded = heap.u8.subarray(TARGET, TARGET + values.length);
  const checkAll = (from: number, to: number) => {
    for (let k = from; k < to; k++) {
      if (decoded[k] !== values[k]) throw new Error(`${layout}: byte ${k} is ${decoded[k]} instead of ${values[k]}`);
    }
  };
  heap.u8.fill(0xaa, TARGET, TARGET + values.length + 1);
  codec.decode(encoded, TARGET, values.length);
  checkAll(0, values.length);
  equal(heap.u8[TARGET + values.length], 0xaa, "nothing behind the values is written");
  const from = rowCount >> 1,
    to = Math.min(rowCount, from + 700),
    before = Math.floor(from / VECTOR_ROWS) * VECTOR_ROWS * width;
  heap.u8.fill(0xaa, TARGET, TARGET + values.length);
  codec.decode(encoded, TARGET, values.length, { from, to });
  checkAll(from * width, to * width);
  if (before > 0) equal(heap.u8[TARGET + before - 1], 0xaa, "vectors before are not decoded");
  const rows = Int32Array.from({ length: 50 }, (_, k) => (k * 7919 + (k >> 2)) % rowCount).sort();
  heap.u8.set(encoded, STORED);
  codec.gatherListed(heap.u8.subarray(STORED, STORED + encoded.length), rows, rows.length, TARGET);
  rows.forEach((row, k) =>
    equal(
      heap.u8.subarray(TARGET + k * width, TARGET + (k + 1) * width).join(),
      values.subarray(row * width, (row + 1) * width).join(),
      `${layout}: row ${row}`,
    )
  );
}

/** The least and greatest of floats tell -0 from 0. */
function checkSummaries(layout: Layout, encoded: Uint8Array, values: Uint8Array): void {
  const isFloat = layout === "f32" || layout === "f64";
  if (!isFloat && layout !== "i32" && layout !== "i64") return;
  const width = LAYOUT_WIDTH[layout], rowCount = values.length / width, isNull = nullTestOf(layout, values);
  const bytes = encoded.slice(encoded.length - summariesBytes(rowCount));
  ok(areIntact(bytes));
  const all = new ARRAY_CONSTRUCTOR[layout](values.buffer as ArrayBuffer, values.byteOffset, rowCount);
  const f64 = new Float64Array(bytes.buffer, 0, bytes.length >> 3), i64 = new BigInt64Array(f64.buffer, 0, f64.length);
  for (let vector = 0; vector * VECTOR_ROWS < rowCount; vector++) {
    const known: (number | bigint)[] = [];
    for (let k = vector * VECTOR_ROWS; k < Math.min(rowCount, (vector + 1) * VECTOR_ROWS); k++) {
      if (!isNull(k)) known.push(all[k]);
    }
    const at = vector * SUMMARY_WORDS;
    const rows = Math.min(VECTOR_ROWS, rowCount - vector * VECTOR_ROWS);
    equal(i64[at + SUMMARY.counts], (BigInt(rows) << 32n) + BigInt(known.length));
    if (known.length === 0) continue;
    if (isFloat) {
      const floats = known as number[], size = floats.reduce((sum, value) => sum + Math.abs(value), 0);
      const sum = floats.reduce((sum, value) => sum + value), summarised = f64[at + SUMMARY.sum];
      const isClose = Math.abs(sum - summarised) <= known.length * Number.EPSILON * size;
      ok(isClose || size === Infinity || Object.is(sum, summarised), `${layout}: ${summarised}, not ${sum}`);
      ok(
        Object.is(f64[at + SUMMARY.min], Math.min(...floats)) && Object.is(f64[at + SUMMARY.max], Math.max(...floats)),
      );
    } else {
      const sorted = known.map(BigInt).sort((a, b) => a < b ? -1 : 1);
      equal(i64[at + SUMMARY.sum], BigInt.asIntN(64, sorted.reduce((sum, value) => sum + value)));
      equal(i64[at + SUMMARY.min], sorted[0]);
      equal(i64[at + SUMMARY.max], sorted.at(-1));
    }
  }
  bytes[bytes.length - 20] ^= 4;
  ok(!areIntact(bytes), "a changed summary is noticed");
}

function nullTestOf(layout: Layout, values: Uint8Array): (row: number) => boolean {
  heap.u8.set(values, TARGET);
  const isNull = nullTest(heap, TYPES[layout]!, TARGET);
  const nulls = Array.from({ length: values.length / LAYOUT_WIDTH[layout] }, (_, row) => isNull(row));
  return (row) => nulls[row];
}

function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** Values of a layout as bits, from a generator of whole numbers and of what else may stand in a column. */
function valuesOf(layout: Layout): fc.Arbitrary<Uint8Array> {
  const width = LAYOUT_WIDTH[layout], array = ARRAY_CONSTRUCTOR[layout];
  const nulls = new Int32Array([...typeOf(TYPES[layout]!).nullWords, 0]);
  const isFloat = layout === "f32" || layout === "f64", isWide = layout === "i64";
  const odd = isFloat
    ? [NaN, -NaN, Infinity, -Infinity, -0, 0, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 2 ** 53 + 2]
    : isWide
    ? [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), -(2n ** 63n) + 1n, 2n ** 32n, -(2n ** 32n) - 1n]
    : [0, -1, 127, -128, 32767, -32768, 2147483647, -2147483648, -2147483647];
  return fc.record({
    rows: fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1000, max: 3100 })),
    seed: fc.nat(),
    start: fc.integer({ min: -(2 ** 31), max: 2 ** 31 }),
    range: fc.constantFrom(0, 1, 2, 200, 70_000, 2 ** 31, 2 ** 32, 2 ** 40),
    slope: fc.constantFrom(0, 1, -7, 1000, 2 ** 33),
    places: fc.constantFrom(1, 10, 100, 1e5, 1e12, 0.1, 0.01, 1e-5),
    oddShare: fc.constantFrom(0, 0.001, 0.01, 0.2, 1),
    nullShare: fc.constantFrom(0, 0.01, 0.5, 1),
  }).map(({ rows, seed, start, range, slope, places, oddShare, nullShare }) => {
    const bytes = new Uint8Array(rows * width), out = new array(bytes.buffer as ArrayBuffer);
    const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
    for (let row = 0; row < rows; row++) {
      const whole = start + slope * row + Math.floor(random() * range);
      const isOdd = random() < oddShare;
      const plain = isFloat ? (places < 1 ? whole * places : whole / places) : isWide ? BigInt(whole) : whole;
      out[row] = isOdd ? odd[Math.floor(random() * odd.length)] : plain;
      if (random() < nullShare) bytes.set(bytesOf(nulls).subarray(0, width), row * width);
    }
    return bytes;
  });
}

for (const layout of Object.keys(TYPES) as Layout[]) {
  Deno.test(`${layout}: any values come back with all their bits`, () => {
    let encoded = 0;
    fc.assert(
      fc.property(valuesOf(layout), (values) => {
        if (roundTrip(layout, values) !== undefined) encoded++;
      }),
      { numRuns: 400 },
    );
    ok(encoded > 40, `only ${encoded} of 400 chunks were encoded`);
  });
}

Deno.test("chunks of all scales, with and without NULLs, have offsets", () => {
  ok(markedCount > 0);
  for (const layout of ["f32", "f64"] as const) ok(markedExceptions[layout]! > 0, `exceptions of ${layout}`);
  for (const [kind, count] of Object.entries(offsetCounts)) ok(count > 0, `${kind}: ${count}`);
});

Deno.test("floats with other NaNs, negative zero and infinities among decimals keep their bits", () => {
  const values = Float64Array.from({ length: 65_536 }, (_, k) => k / 100);
  const bits = new Int32Array(values.buffer);
  for (let k = 0; k < values.length; k += 500) values[k] = [NaN, Infinity, -Infinity, -0, 1 / 3][(k / 500) % 5];
  const singles = Float32Array.from(values), singleBits = new Int32Array(singles.buffer);
  bits[2 * 501 + 1] = 0x7ff80000 | 1; // another NaN
  bits[2 * 502 + 1] = -0x80000; // a negative NaN
  ok(roundTrip("f64", bytesOf(values))! < 0.3 * values.byteLength);
  singleBits[501] = 0x7fc00001;
  singleBits[502] = -0x400000;
  ok(roundTrip("f32", bytesOf(singles))! < 0.6 * singles.byteLength);
});

Deno.test("few floats that are no decimals do not give others more places", () => {
  const values = Float32Array.from({ length: 65_536 }, (_, k) => k * 7919 % 1_001 / 10),
    tenths = bytesOf(values).length;
  values[0] = 1 / 3; // sampled
  for (let k = 0; k < VECTOR_ROWS; k++) values[5 * VECTOR_ROWS + k] = Math.sin(k);
  ok(roundTrip("f32", bytesOf(values))! < 0.4 * tenths);
});

Deno.test("a NULL among floats is known even if its code gives the value of the next one", () => {
  // Between floats of this size are 0.5, so several decimals of one place are the same float.
  const values = Float32Array.from(
    { length: 8 * VECTOR_ROWS },
    (_, k) => k % 7 === 3 ? NaN : 5_000_000.5 + k % 100 / 2,
  );
  ok(roundTrip("f32", bytesOf(values)) !== undefined);
  for (let k = 0; k < values.length; k += 100) values[k] = [NaN, 1 / 3, -0, Infinity][(k / 100) % 4];
  ok(roundTrip("f32", bytesOf(values)) !== undefined);
});

Deno.test("decimals that round() made are encoded, also with exceptions and NULLs among them", () => {
  const values = Float64Array.from({ length: 65_536 }, (_, k) => (k * 7919 % 100_003) * (1 / 100));
  ok(values.some((value) => Math.round(value * 100) / 100 !== value), "other values than those of division");
  ok(roundTrip("f64", bytesOf(values))! < 0.3 * values.byteLength);
  for (let k = 0; k < values.length; k += 100) values[k] = [NaN, 1 / 3, -0, Infinity][(k / 100) % 4];
  ok(roundTrip("f64", bytesOf(values))! < 0.35 * values.byteLength);
});

/** Integers of this many bits whose quotients by 10^places are as close as possible to the middle of two doubles. */
function hardIntegers(bits: number, places: number, count: number): number[] {
  const fives = 5n ** BigInt(places), half = (fives + 1n) / 2n, found: number[] = [];
  // 2^shift * integer = 5^places * (odd number of 54 bits) + rest
  for (let rest = 1n; rest <= 64n && found.length < count; rest++) {
    for (let shift = 0n; shift < 90n; shift++) {
      let integer = rest % fives;
      for (let k = 0n; k < shift; k++) integer = integer * half % fives;
      const least = 1n << BigInt(bits - 1);
      if (integer < least) integer += (least - integer + fives - 1n) / fives * fives;
      const middle = ((integer << shift) - rest) / fives;
      if (integer < 2n * least && middle % 2n === 1n && middle >> 53n === 1n) found.push(Number(integer));
    }
  }
  return found.slice(0, count);
}

Deno.test("decimals come back whether they are divided or multiplied", () => {
  const rows = 4 * VECTOR_ROWS, values = new Float64Array(rows);
  let seed = 17, hardCount = 0;
  const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  for (let places = 0; places < 12; places++) {
    for (const bits of [1, 17, 25, 26, 27, 32, 33, 34, 45]) {
      const hard = hardIntegers(bits, places, 400);
      hardCount += hard.length;
      for (const sign of [1, -1]) {
        // The greatest integers of the last two vectors are just below 2^bits, of the others 2^bits.
        for (let k = 0; k < rows; k++) {
          const below = Math.floor(random() * Math.min(2 ** bits, 2 ** 31)) + (k >= rows / 2 ? 1 : 0);
          const integer = k % 3 === 1 && hard.length > 0 ? hard[k % hard.length]! : 2 ** bits - below;
          values[k] = sign * integer / 10 ** places;
        }
        roundTrip("f64", bytesOf(values));
        const singles = Float32Array.from(values);
        roundTrip("f32", bytesOf(singles));
        for (let k = 0; k < rows; k += 99) singles[k] = NaN;
        roundTrip("f32", bytesOf(singles));
      }
    }
  }
  ok(hardCount > 2_000, `${hardCount} hard integers`);
});

Deno.test("columns of trades take the expected number of bits a value", () => {
  const rows = 65_536;
  const sizes = {
    prices: roundTrip("f64", bytesOf(Float64Array.from({ length: rows }, (_, k) => ((k * 7919) % 100_003) / 100))),
    symbols: roundTrip("symbol", bytesOf(Int32Array.from({ length: rows }, (_, k) => (k * 31) % 100))),
    times: roundTrip(
      "i64",
      bytesOf(
        BigInt64Array.from({ length: rows }, (_, k) => 1_704_067_200_000_000n + BigInt(k * 1000 + (k * 17) % 900)),
      ),
    ),
    constant: roundTrip("i32", bytesOf(new Int32Array(rows).fill(7))),
    booleans: roundTrip("i8", Uint8Array.from({ length: rows }, (_, k) => k * 31 % 7 < 3 ? 1 : 0)),
    gaps: roundTrip("i32", bytesOf(Int32Array.from({ length: rows }, (_, k) => k % 9 === 0 ? -(2 ** 31) : k % 2))),
  };
  const headers = 32 + 64 * 32 + 16, summaries = summariesBytes(rows);
  equal(sizes.prices, headers + rows * 17 / 8 + summaries);
  equal(sizes.symbols, headers + rows * 7 / 8);
  equal(sizes.times, headers + rows * 10 / 8 + summaries);
  equal(sizes.constant, headers + summaries);
  equal(sizes.booleans, headers + rows / 8);
  equal(sizes.gaps, headers + rows * 2 / 8 + summaries);
});

Deno.test("rows are selected by the codes of their values", () => {
  const rows = 65_536;
  const prices = Float64Array.from({ length: rows }, (_, k) => k % 500 === 3 ? NaN : ((k * 7919) % 100_003) / 100);
  const symbols = Int32Array.from({ length: rows }, (_, k) => k % 9 === 0 ? -1 : (k * 31) % 100);
  const selected = (layout: Layout, values: Float64Array | Int32Array, low: number, high: number, rowsMax = rows) => {
    heap.u8.set(bytesOf(values), SOURCE);
    const { bytes } = codec.encode(layout, typeOf(TYPES[layout]!).nullWords, SOURCE, values.byteLength)!;
    heap.u8.set(bytes, SOURCE);
    const stored = heap.u8.subarray(SOURCE, SOURCE + bytes.length), bounds = [{ column: 0, low, high }];
    return codec.selectRows(bounds, { from: 0, to: rows }, (_, select) => select(stored), ROW_LIST, rowsMax);
  };
  equal(selected("symbol", symbols, 7, 7), symbols.filter((symbol) => symbol === 7).length);
  equal(selected("symbol", symbols, 0, 98), symbols.filter((symbol) => symbol >= 0 && symbol < 99).length);
  equal(selected("symbol", symbols, 100, 200), 0);
  equal(selected("symbol", symbols, 0, 98, 1000), 1000, "at most so many");
  // Decimals next to the bounds may be selected too.
  const between = prices.filter((price) => price >= 100.5 && price <= 200.25).length;
  const count = selected("f64", prices, 100.5, 200.25);
  ok(count >= between && count <= between + 4, `${count} rows, ${between} within the bounds`);
  equal(selected("f64", prices, 1001, 1e300), 0);
  equal(selected("f64", prices, -1e300, 1e300), prices.filter((price) => !Number.isNaN(price)).length);
});

Deno.test("rows at any distance are gathered, whose words are loaded beforehand", () => {
  const rows = 65_536;
  // Vectors of different numbers of bits, many of them with NULLs, one constant, one raw, and one with exceptions.
  const values = Float64Array.from({ length: rows }, (_, k) => {
    const vector = k >> 10;
    if (vector === 5 || vector > 20 && k % 3 === 1) return NaN;
    return vector === 9 || vector === 13 && k % 64 === 0 ? Math.sin(k) : (k * 7919) % 10 ** (vector % 8) / 100;
  });
  heap.u8.set(bytesOf(values), SOURCE);
  const stored = codec.encode("f64", typeOf("DOUBLE").nullWords, SOURCE, values.byteLength)!.bytes.slice();
  heap.u8.set(stored, SOURCE);
  for (const spacing of [1, 40, 127, 129, 140, 300, 1000, 5000, 60_000]) {
    const list = Int32Array.from({ length: Math.ceil(rows / spacing) }, (_, k) => k * spacing);
    checkGathered("f64", heap.u8.subarray(SOURCE, SOURCE + stored.length), bytesOf(values), list);
  }
});

Deno.test("vectorCounts() tells how the vectors of the last selection were tested", () => {
  const vectors = 6, rows = vectors * VECTOR_ROWS;
  const countsOf = (layout: Layout, values: Float64Array | Int32Array | BigInt64Array, low: number, high: number) => {
    heap.u8.set(bytesOf(values), SOURCE);
    const { bytes } = codec.encode(layout, typeOf(TYPES[layout]!).nullWords, SOURCE, values.byteLength)!;
    heap.u8.set(bytes, SOURCE);
    const stored = heap.u8.subarray(SOURCE, SOURCE + bytes.length), bounds = [{ column: 0, low, high }];
    for (let k = 0; k < 2; k++) {
      codec.selectRows(bounds, { from: 0, to: rows }, (_, select) => select(stored), ROW_LIST, rows);
    }
    return codec.vectorCounts();
  };
  // Vector v has the values 1000 v … 1000 v + 96, in no order; the last vector is constant.
  const values = Array.from({ length: rows }, (_, k) => {
    const vector = Math.floor(k / VECTOR_ROWS);
    return vector === vectors - 1 ? 4_000 : 1_000 * vector + k * 7919 % 97;
  });
  const none = { skipped: 0, whole: 0, tested: 0, withExceptions: 0, withoutCodes: 0 };
  const integers = Int32Array.from(values);
  deepEqual(countsOf("i32", integers, 1_050, 3_050), { ...none, skipped: 3, whole: 1, tested: 2 });
  deepEqual(countsOf("i32", integers, 4_000, 4_000), { ...none, skipped: 4, whole: 1, tested: 1 });
  deepEqual(countsOf("i32", integers, 0, 5_000), { ...none, whole: 6 });
  const gaps = integers.slice();
  gaps[10] = -(2 ** 31);
  deepEqual(countsOf("i32", gaps, 0, 5_000), { ...none, whole: 5, tested: 1 }, "NULL passes no comparison");
  const times = BigInt64Array.from({ length: rows }, (_, k) => BigInt(1e12 + k * 1_000_000 + k % 3));
  deepEqual(countsOf("i64", times, 0, 1), { ...none, withoutCodes: 6 }, "codes with a slope are not compared");
  const doubles = Float64Array.from(values.slice(0, rows - VECTOR_ROWS), (value) => value / 100);
  const last = Float64Array.from({ length: VECTOR_ROWS }, (_, k) => Math.sin(k));
  const mixed = new Float64Array([...doubles, ...last]);
  mixed[5] = 1 / 3;
  deepEqual(countsOf("f64", mixed, 10.5, 20.5), {
    skipped: 2,
    whole: 0,
    tested: 2,
    withExceptions: 1,
    withoutCodes: 1,
  });
});

Deno.test("maskRows() tests the condition first of which the fewest rows passed, and of the others only vectors that have rows left", () => {
  const rows = 3 * VECTOR_ROWS, values = Int32Array.from({ length: rows }, (_, k) => k % 1000 + (k >> 10));
  heap.i32.set(values, SOURCE / 4);
  const among = (low: number, high: number) => new Among(4, [{ low: BigInt(low), high: BigInt(high) }], false);
  const all = among(0, 2000), many = among(0, 1000), few = among(1001, 1001), order: RowCondition[] = [];
  const mask = () =>
    codec.maskRows([all, many, few], { from: 0, to: rows }, (condition, use) => {
      order.push(condition);
      use({ address: SOURCE, rowCount: rows });
    }, ROW_LIST);
  const count = values.filter((value) => value === 1001).length;
  ok(count > 0 && values.subarray(0, 2 * VECTOR_ROWS).every((value) => value !== 1001));
  equal(mask(), 0, "none is at most 1,000, too");
  deepEqual([all, many, few].map(({ share }) => share), [1, 1 - count / rows, 0]);
  order.length = 0;
  equal(mask(), 0);
  ok(order.length === 2 && order[0] === few && order[1] === many, "then no row is left");
  equal(
    codec.maskRows([few, all], { from: 0, to: rows }, (_, use) => use({ address: SOURCE, rowCount: rows }), ROW_LIST),
    count,
  );
  deepEqual(codec.vectorCounts(), { skipped: 2, whole: 0, tested: 4, withExceptions: 0, withoutCodes: 0 });
});

Deno.test("values that do not become smaller are not encoded, nor are texts and wide values", () => {
  const random = crypto.getRandomValues(new Uint8Array(65_536));
  for (const layout of ["i8", "i16", "i32", "i64", "f32", "f64"] as const) equal(roundTrip(layout, random), undefined);
  equal(codec.encode("text", [0, -1], SOURCE, 65_536), undefined);
  equal(codec.encode("i128", [0, 0], SOURCE, 65_536), undefined);
});

Deno.test("firstAt() finds the first row that is not below a value in ascending times of every encoding", () => {
  fc.assert(fc.property(
    fc.array(fc.tuple(fc.constantFrom(1, 50, 1_024, 3_000), fc.constantFrom(0n, 1n, 1_000n, -1n)), {
      minLength: 1,
      maxLength: 6,
    }),
    fc.bigInt(-1_000n, 1_000n),
    (runs, start) => {
      const times: bigint[] = [];
      let time = start, seed = runs.length;
      for (const [count, gap] of runs) {
        for (let k = 0; k < count; k++) {
          seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
          times.push(time += gap >= 0n ? gap : BigInt(seed) << 16n); // too far from each other to be packed
        }
      }
      const values = BigInt64Array.from(times), { nullWords } = typeOf("LONG");
      heap.i64.set(values, SOURCE / 8);
      const stored = codec.encode("i64", nullWords, SOURCE, 8 * values.length, true)!.bytes.slice();
      heap.u8.set(stored, SOURCE);
      const bytes = heap.u8.subarray(SOURCE, SOURCE + stored.length);
      for (let k = 0; k < 40; k++) {
        const at = times[(k * 7919) % times.length]!, value = at + BigInt(k % 3) - 1n;
        const expected = times.findIndex((time) => time >= value);
        equal(codec.firstAt(bytes, value), expected < 0 ? times.length : expected);
      }
    },
  ));
});
