/**
 * Summaries of the vectors of a stored chunk: they follow its encoded values in its extent, so that aggregates over whole vectors read
 * them alone, and programs without summaries read the values as before:
 *
 *     values      as `ChunkCodec.encode` makes them
 *     summaries   of each vector: the words of `SUMMARY`
 *     tail        magic u32, number of vectors u32, crc of the summaries and of the tail so far u32, 0 u32
 *
 * Infinities are NULL.
 */
import { assert } from "../../assert.ts";
import type { Code, Module, ValueType } from "../../wasm/assembler.ts";
import { crc32 } from "../bytes.ts";
import { SUMMARY, SUMMARY_ROWS, SUMMARY_WORDS } from "../contract.ts";
import { VECTOR_ROWS } from "./bits.ts";

const MAGIC = 0x534d5553; // "SUMS"
const TAIL_BYTES = 16;
export const SUMMARY_BYTES = 8 * SUMMARY_WORDS;

assert(SUMMARY_ROWS === VECTOR_ROWS, "a vector has a summary");

/** Bytes of the summaries of a chunk, with the tail. */
export function summariesBytes(rowCount: number): number {
  return Math.ceil(rowCount / VECTOR_ROWS) * SUMMARY_BYTES + TAIL_BYTES;
}

/** Writes the tail behind the summaries in `bytes`, which end where it begins. */
export function sealSummaries(bytes: Uint8Array): void {
  const at = bytes.length - TAIL_BYTES, view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  view.setUint32(at, MAGIC, true);
  view.setUint32(at + 4, at / SUMMARY_BYTES, true);
  view.setUint32(at + 8, crc32(bytes.subarray(0, at + 8)), true);
  view.setUint32(at + 12, 0, true);
}

/** False if the summaries of a chunk, with their tail, are damaged. */
export function areIntact(bytes: Uint8Array): boolean {
  const at = bytes.length - TAIL_BYTES, view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return view.getUint32(at, true) === MAGIC && view.getUint32(at + 4, true) === at / SUMMARY_BYTES &&
    view.getUint32(at + 8, true) === crc32(bytes.subarray(0, at + 8));
}

/** Makes the summary of `count` values at the address `summary`. */
export type Summarise = (values: number, count: number, nullBits: bigint, summary: number) => void;

/** Adds kernels for integers and floats of 4 and 8 bytes: `summariseIntegers4` and so on. */
export function addSummaryKernels(module: Module): void {
  const parameters: ValueType[] = ["i32", "i32", "i64", "i32"];
  for (const width of [4, 8]) {
    integers(module.function(parameters, [], `summariseIntegers${width}`).code, width);
    floats(module.function(parameters, [], `summariseFloats${width}`).code, width);
  }
}

function integers(code: Code, width: number): void {
  const [values, count, nullBits, summary] = [0, 1, 2, 3];
  const end = code.local("i32"), value = code.local("i64"), known = code.local("i32");
  const sum = code.local("i64"), min = code.local("i64"), max = code.local("i64");
  code.get(summary).get(count).memory("i32.store", 8 * SUMMARY.counts + 4);
  code.i64(2n ** 63n - 1n).set(min).i64(-(2n ** 63n)).set(max);
  eachValue(code, values, count, width, end, () => {
    code.get(values).memory(width === 8 ? "i64.load" : "i64.load32_s").tee(value).get(nullBits).op("i64.ne").if(() => {
      code.get(known).i32(1).op("i32.add").set(known);
      code.get(sum).get(value).op("i64.add").set(sum);
      code.get(value).get(min).get(value).get(min).op("i64.lt_s").op("select").set(min);
      code.get(value).get(max).get(value).get(max).op("i64.gt_s").op("select").set(max);
    });
  });
  code.get(summary).get(sum).memory("i64.store", 8 * SUMMARY.sum).get(summary).get(min).memory(
    "i64.store",
    8 * SUMMARY.min,
  );
  code.get(summary).get(max).memory("i64.store", 8 * SUMMARY.max);
  code.get(summary).get(known).memory("i32.store", 8 * SUMMARY.counts);
}

/** Two values at a time in two pairs of lanes, and the last ones alone. */
function floats(code: Code, width: number): void {
  const [values, count, , summary] = [0, 1, 2, 3];
  const start = code.local("i32"), rowCount = code.local("i32");
  code.get(values).set(start).get(count).set(rowCount);
  const end = code.local("i32"),
    groupsEnd = code.local("i32"),
    value = code.local("v128"),
    isValue = code.local("v128");
  const halves = [0, 1].map(() => ({
    sum: code.local("v128"),
    min: code.local("v128"),
    max: code.local("v128"),
    known: code.local("v128"),
  }));
  code.get(summary).get(count).memory("i32.store", 8 * SUMMARY.counts + 4);
  for (const { min, max } of halves) code.splatF64(Infinity).set(min).splatF64(-Infinity).set(max);
  const add = ({ sum, min, max, known }: typeof halves[number]) => {
    code.get(value).get(value).op("f64x2.sub").splatF64(0).op("f64x2.eq").set(isValue); // neither NaN nor infinite
    code.get(sum).get(value).get(isValue).op("v128.and").op("f64x2.add").set(sum);
    code.get(known).get(isValue).op("i64x2.sub").set(known);
    // Others become NaN, which `pmin` and `pmax` leave out. They do not tell -0 from 0.
    code.get(value).get(isValue).op("v128.not").op("v128.or").set(value);
    code.get(min).get(value).op("f64x2.pmin").set(min).get(max).get(value).op("f64x2.pmax").set(max);
  };
  code.get(values).get(count).i32(-4).op("i32.and").i32(width).op("i32.mul").op("i32.add").set(groupsEnd);
  code.block((done) =>
    code.loop((again) => {
      code.get(values).get(groupsEnd).op("i32.ge_u").brIf(done);
      halves.forEach((half, k) => {
        code.get(values);
        if (width === 8) code.memory("v128.load", 16 * k);
        else code.memory("v128.load64_zero", 8 * k).op("f64x2.promote_low_f32x4");
        code.set(value);
        add(half);
      });
      code.get(values).i32(4 * width).op("i32.add").set(values).br(again);
    })
  );
  // The second lane has no value.
  code.get(count).i32(3).op("i32.and").set(count);
  eachValue(code, values, count, width, end, () => {
    code.splatF64(NaN).get(values);
    if (width === 8) code.memory("f64.load");
    else code.memory("f32.load").op("f64.promote_f32");
    code.lane("f64x2.replace_lane", 0).set(value);
    add(halves[0]);
  });
  const merge = (name: keyof typeof halves[number], type: "f64" | "i64", op: string) => {
    code.get(summary).get(halves[0][name]).get(halves[1][name]).op(`${type}x2.${op}`).tee(value);
    code.lane(`${type}x2.extract_lane`, 0).get(value).lane(`${type}x2.extract_lane`, 1).op(`${type}.${op}`);
  };
  merge("sum", "f64", "add");
  code.memory("f64.store", 8 * SUMMARY.sum);
  merge("min", "f64", "min");
  code.memory("f64.store", 8 * SUMMARY.min);
  merge("max", "f64", "max");
  code.memory("f64.store", 8 * SUMMARY.max);
  signZeros(code, summary, start, rowCount, width);
  merge("known", "i64", "add");
  code.op("i32.wrap_i64").memory("i32.store", 8 * SUMMARY.counts);
}

/** The least of -0 and 0 is -0, the greatest 0. */
function signZeros(code: Code, summary: number, values: number, count: number, width: number): void {
  const end = code.local("i32"), negative = code.local("i32"), positive = code.local("i32"), bits = code.local("i64");
  const isZero = (word: number) => code.get(summary).memory("f64.load", 8 * word).f64(0).op("f64.eq");
  isZero(SUMMARY.min);
  isZero(SUMMARY.max).op("i32.or").if(() => {
    eachValue(code, values, count, width, end, () => {
      code.get(values).memory(width === 8 ? "i64.load" : "i64.load32_u").tee(bits).op("i64.eqz").if(() => {
        code.i32(1).set(positive);
      });
      code.get(bits).i64(width === 8 ? -(2n ** 63n) : 2n ** 31n).op("i64.eq").if(() => {
        code.i32(1).set(negative);
      });
    });
    const store = (word: number, otherwise: number, choice: number, chosen: number) => {
      isZero(word).if(() => {
        code.get(summary).f64(chosen).f64(otherwise).get(choice).op("select").memory("f64.store", 8 * word);
      });
    };
    store(SUMMARY.min, 0, negative, -0);
    store(SUMMARY.max, -0, positive, 0);
  });
}

function eachValue(code: Code, values: number, count: number, width: number, end: number, body: () => void): void {
  code.get(values).get(count).i32(width).op("i32.mul").op("i32.add").set(end);
  code.block((done) =>
    code.loop((again) => {
      code.get(values).get(end).op("i32.ge_u").brIf(done);
      body();
      code.get(values).i32(width).op("i32.add").set(values).br(again);
    })
  );
}
