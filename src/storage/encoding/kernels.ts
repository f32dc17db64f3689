/**
 * The kernels that encode and decode vectors, in one module. They read and write the shared memory. All take the address of the values
 * and their number first; `found` is the address of their results.
 */
import { type Code, Module, sharedMemory, type ValueType } from "../../wasm/assembler.ts";
import { SHARED_WORD, type SharedHeap } from "../heap.ts";
import { shareBytes, sharedBytes } from "../shared-bytes.ts";
import { addBitKernels } from "./bits.ts";
import { addGatherRows, addSelectionKernels, type GatherRows, type SelectionKernels } from "./selection.ts";
import { addDecodeOffsets, type DecodeOffsets } from "./offsets.ts";
import { addPrefetch, type Prefetch } from "./prefetch.ts";
import { addSummaryKernels, type Summarise } from "./summaries.ts";
import { addDecodeVector, type DecodeVector } from "./vectors.ts";
import { addWholeVectors } from "./whole-vectors.ts";

/** Offsets of the results of `range…` and `decimals…` in `found`. */
export const FOUND = {
  min: 0,
  max: 8,
  nulls: 16,
  exceptions: 20,
  /** Sums over the values that are not NULL, for the line through them: of the indexes, of their squares, of … */
  indexes: 24,
  squares: 32,
  /** … the differences from the first value, and of their products with the indexes. */
  differences: 40,
  products: 48,
} as const;
export const FOUND_BYTES = 64;

/** Addresses and counts are i32. The widths are bytes a value. */
export interface Kernels extends SelectionKernels {
  /** Finds the least and the greatest value, as i64, and the number of NULLs. */
  range(width: number): (values: number, count: number, nullValue: number, found: number) => void;
  rangeWide(values: number, count: number, nullValue: bigint, found: number): void;
  /** Finds the least and the greatest of `value - slope * index`. */
  residualsWide(values: number, count: number, nullValue: bigint, slope: bigint, found: number): void;
  /** Makes the codes `value - base`, and 0 for NULL. */
  codes(width: number): (values: number, count: number, nullValue: number, base: number, codes: number) => void;
  codesWide(values: number, count: number, nullValue: bigint, base: bigint, slope: bigint, codes: number): void;
  /**
   * Writes `value * power`, rounded, to `integers` (f64) for each value that `integer / back` (`products`: `integer * back`) gives back
   * with all its bits, and NaN for others.
   * Finds the least and greatest (f64), the number of NULLs, and the positions (u16) of values that are neither. Ends with
   * 0 if there are more than `exceptionsMax`, otherwise with 1.
   */
  decimals(width: number): FindDecimals;
  products(width: number): FindDecimals;
  /** Makes the codes `integer - base`, and 0 for NaN. */
  codesOfDecimals(integers: number, count: number, base: number, codes: number): void;
  pack(codeBits: number): (codes: number, bits: number) => void;
  /** By width. */
  decodeIntegers: Record<number, DecodeVector>;
  decodeFloats: Record<number, DecodeVector>;
  summariseIntegers: Record<number, Summarise>;
  summariseFloats: Record<number, Summarise>;
  gatherIntegers: Record<number, GatherRows>;
  gatherFloats: Record<number, GatherRows>;
  decodeOffsets: DecodeOffsets;
  prefetch: Prefetch;
}

type FindDecimals = (
  values: number,
  count: number,
  nullBits: bigint,
  power: number,
  back: number,
  exceptionsMax: number,
  integers: number,
  positions: number,
  found: number,
) => number;
type Kernel = (...parameters: (number | bigint)[]) => number;

const known = new WeakMap<WebAssembly.Memory, Kernels>();

/**
 * Makes the module for all threads of the process, for its life. Assembling it takes 20 ms, and compiling it 1, as V8 keeps the machine code of
 * equal modules.
 */
export function shareKernels(heap: SharedHeap): void {
  shareBytes(heap, SHARED_WORD.codecModule, assemble(heap.memory));
}

/** Compiles the module once in each thread. */
export function kernelsOf(memory: WebAssembly.Memory): Kernels {
  let kernels = known.get(memory);
  if (kernels === undefined) known.set(memory, kernels = instantiate(memory));
  return kernels;
}

function instantiate(memory: WebAssembly.Memory): Kernels {
  const module = new WebAssembly.Module(sharedBytes(memory, SHARED_WORD.codecModule) ?? assemble(memory));
  const { exports } = new WebAssembly.Instance(module, { env: { memory } });
  const all = exports as Record<string, Kernel>;
  const byWidth = (name: string) => (width: number) => all[`${name}${width}`];
  return {
    range: byWidth("range"),
    rangeWide: all.range8,
    residualsWide: all.residuals8,
    codes: byWidth("codes"),
    codesWide: all.codes8,
    decimals: byWidth("decimals"),
    products: byWidth("products"),
    codesOfDecimals: all.codesOfDecimals,
    pack: byWidth("pack"),
    decodeIntegers: { 1: all.decodeIntegers1, 2: all.decodeIntegers2, 4: all.decodeIntegers4, 8: all.decodeIntegers8 },
    decodeFloats: { 4: all.decodeFloats4, 8: all.decodeFloats8 },
    summariseIntegers: { 4: all.summariseIntegers4, 8: all.summariseIntegers8 },
    summariseFloats: { 4: all.summariseFloats4, 8: all.summariseFloats8 },
    gatherIntegers: { 1: all.gatherIntegers1, 2: all.gatherIntegers2, 4: all.gatherIntegers4, 8: all.gatherIntegers8 },
    gatherFloats: { 4: all.gatherFloats4, 8: all.gatherFloats8 },
    selectIntegers: all.selectIntegers,
    selectDecimals: all.selectDecimals,
    decodeOffsets: all.decodeOffsets,
    prefetch: all.prefetch,
    intersect: all.intersect,
    listExceptions: all.listExceptions,
    selectListed: all.selectListed,
    countRows: all.countRows,
    listRows: all.listRows,
  } as Kernels;
}

const LOAD: Record<number, string> = { 1: "i32.load8_s", 2: "i32.load16_s", 4: "i32.load", 8: "i64.load" };
const STORE: Record<number, string> = { 1: "i32.store8", 2: "i32.store16", 4: "i32.store", 8: "i64.store" };
/** Integers up to this are exact as doubles, with their sums and products by small powers. */
const INTEGER_MAX = 2 ** 51;

function assemble(memory: WebAssembly.Memory): Uint8Array<ArrayBuffer> {
  const module = new Module([sharedMemory(memory)]);
  const unpack = addBitKernels(module), whole = addWholeVectors(module), prefetch = addPrefetch(module);
  for (const width of [1, 2, 4, 8]) {
    const type: ValueType = width === 8 ? "i64" : "i32";
    const slopes: ValueType[] = width === 8 ? ["i64"] : [];
    range(module.function(["i32", "i32", type, "i32"], [], `range${width}`).code, width);
    codes(module.function(["i32", "i32", type, type, ...slopes, "i32"], [], `codes${width}`).code, width);
    const frame = module.function(["i32", "i32", type, type, ...slopes, "i32"], []);
    decode(frame.code, width);
    if (width === 4) addDecodeOffsets(module, { unpack, frame: frame.index, whole: whole.offsets, prefetch });
    const decodeVector = addDecodeVector(module, `decodeIntegers${width}`, width, {
      unpack,
      frame: frame.index,
      whole: whole.integers[width],
    });
    addGatherRows(module, `gatherIntegers${width}`, width, false, decodeVector, prefetch);
  }
  residuals(module.function(["i32", "i32", "i64", "i64", "i32"], [], "residuals8").code);
  const found: ValueType[] = ["i32", "i32", "i64", "f64", "f64", "i32", "i32", "i32", "i32"];
  const decoded: ValueType[] = ["i32", "i32", "i64", "f64", "f64", "i32"];
  for (const width of [4, 8]) {
    decimals(module.function(found, ["i32"], `decimals${width}`).code, width, "f64.div");
    decimals(module.function(found, ["i32"], `products${width}`).code, width, "f64.mul");
    const quotients = module.function(decoded, []), multiples = module.function(decoded, []);
    decodeDecimals(quotients.code, width, "div");
    decodeDecimals(multiples.code, width, "mul");
    const decodeVector = addDecodeVector(module, `decodeFloats${width}`, width, {
      unpack,
      decimals: quotients.index,
      products: multiples.index,
      whole: whole.floats[width],
    });
    addGatherRows(module, `gatherFloats${width}`, width, true, decodeVector, prefetch);
  }
  codesOfDecimals(module.function(["i32", "i32", "f64", "i32"], [], "codesOfDecimals").code);
  addSummaryKernels(module);
  addSelectionKernels(module);
  return module.finish();
}

/** Runs `body` for indexes from `index` (0 at first) to count-1. `steps`: locals that grow by this many bytes a round. */
function each(
  code: Code,
  count: number,
  index: number,
  steps: [local: number, bytes: number][],
  body: () => void,
): void {
  eachGroup(code, count, index, 1, steps, body);
}

/** The same for groups of `rows` indexes, as long as whole ones are left. */
function eachGroup(
  code: Code,
  count: number,
  index: number,
  rows: number,
  steps: [local: number, bytes: number][],
  body: () => void,
): void {
  code.block((done) =>
    code.loop((again) => {
      code.get(index);
      if (rows > 1) code.i32(rows).op("i32.add");
      code.get(count).op(rows > 1 ? "i32.gt_u" : "i32.ge_u").brIf(done);
      body();
      for (const [local, bytes] of steps) code.get(local).i32(rows * bytes).op("i32.add").set(local);
      code.get(index).i32(rows).op("i32.add").set(index).br(again);
    })
  );
}

/** Sets `target` to the top of the stack if that is less (or greater). */
function keep(code: Code, target: number, value: number, comparison: string): void {
  code.get(value).get(target).get(value).get(target).op(comparison).op("select").set(target);
}

function range(code: Code, width: number): void {
  const [values, count, nullValue, found] = [0, 1, 2, 3];
  const type = width === 8 ? "i64" : "i32";
  const index = code.local("i32"), nulls = code.local("i32"), value = code.local(type);
  const min = code.local("i64"), max = code.local("i64"), wide = code.local("i64"), first = code.local("i64");
  const sums = {
    indexes: code.local("f64"),
    squares: code.local("f64"),
    differences: code.local("f64"),
    products: code.local("f64"),
  };
  const position = code.local("f64"), difference = code.local("f64");
  const add = (sum: number, push: () => void) => {
    code.get(sum);
    push();
    code.op("f64.add").set(sum);
  };
  code.i64(2n ** 63n - 1n).set(min).i64(-(2n ** 63n)).set(max);
  each(code, count, index, [[values, width]], () => {
    code.get(values).memory(LOAD[width]).tee(value).get(nullValue).op(`${type}.eq`).if(
      () => code.get(nulls).i32(1).op("i32.add").set(nulls),
      () => {
        code.get(value);
        if (width < 8) code.op("i64.extend_i32_s");
        code.set(wide);
        keep(code, min, wide, "i64.lt_s");
        keep(code, max, wide, "i64.gt_s");
        if (width < 8) return;
        code.get(index).get(nulls).op("i32.eq").if(() => code.get(wide).set(first));
        code.get(index).op("f64.convert_i32_u").set(position);
        code.get(wide).get(first).op("i64.sub").op("f64.convert_i64_s").set(difference);
        add(sums.indexes, () => code.get(position));
        add(sums.squares, () => code.get(position).get(position).op("f64.mul"));
        add(sums.differences, () => code.get(difference));
        add(sums.products, () => code.get(position).get(difference).op("f64.mul"));
      },
    );
  });
  code.get(found).get(min).memory("i64.store", FOUND.min).get(found).get(max).memory("i64.store", FOUND.max);
  code.get(found).get(nulls).memory("i32.store", FOUND.nulls);
  for (const [name, local] of Object.entries(sums)) {
    code.get(found).get(local).memory("f64.store", FOUND[name as keyof typeof sums]);
  }
}

function residuals(code: Code): void {
  const [values, count, nullValue, slope, found] = [0, 1, 2, 3, 4];
  const index = code.local("i32"), value = code.local("i64"), min = code.local("i64"), max = code.local("i64");
  code.i64(2n ** 63n - 1n).set(min).i64(-(2n ** 63n)).set(max);
  each(code, count, index, [[values, 8]], () => {
    code.get(values).memory("i64.load").tee(value).get(nullValue).op("i64.ne").if(() => {
      code.get(value).get(slope).get(index).op("i64.extend_i32_u").op("i64.mul").op("i64.sub").set(value);
      keep(code, min, value, "i64.lt_s");
      keep(code, max, value, "i64.gt_s");
    });
  });
  code.get(found).get(min).memory("i64.store", FOUND.min).get(found).get(max).memory("i64.store", FOUND.max);
}

function codes(code: Code, width: number): void {
  const isWide = width === 8, type = isWide ? "i64" : "i32";
  const [values, count, nullValue, base, slope, target] = isWide ? [0, 1, 2, 3, 4, 5] : [0, 1, 2, 3, -1, 4];
  const index = code.local("i32"), value = code.local(type);
  each(code, count, index, [[values, width], [target, 4]], () => {
    code.get(target);
    code.i32(0).get(values).memory(LOAD[width]).tee(value).get(base).op(`${type}.sub`);
    if (isWide) code.get(slope).get(index).op("i64.extend_i32_u").op("i64.mul").op("i64.sub").op("i32.wrap_i64");
    code.get(value).get(nullValue).op(`${type}.eq`).op("select").memory("i32.store");
  });
}

function decode(code: Code, width: number): void {
  const isWide = width === 8;
  const [values, count, nullValue, base, slope, source] = isWide ? [0, 1, 2, 3, 4, 5] : [0, 1, 2, 3, -1, 4];
  const index = code.local("i32"), known = code.local("i32");
  if (isWide) decodeWideGroups(code, index);
  else if (width === 4) decodeGroups(code, index);
  each(code, count, index, [[values, width], [source, 4]], () => {
    code.get(values);
    code.get(base).get(source).memory("i32.load").tee(known);
    if (isWide) {
      code.op("i64.extend_i32_u").op("i64.add");
      code.get(slope).get(index).op("i64.extend_i32_u").op("i64.mul").op("i64.add");
    } else code.op("i32.add");
    code.get(nullValue).get(known).op("select").memory(STORE[width]);
  });
}

/** Four values of 32 bits at a time. */
function decodeGroups(code: Code, index: number): void {
  const [values, count, nullValue, base, source] = [0, 1, 2, 3, 4];
  const bases = code.local("v128"), nulls = code.local("v128"), known = code.local("v128");
  code.get(base).op("i32x4.splat").set(bases).get(nullValue).op("i32x4.splat").set(nulls);
  eachGroup(code, count, index, 4, [[values, 4], [source, 4]], () => {
    code.get(values).get(source).memory("v128.load").tee(known).get(bases).op("i32x4.add").get(nulls);
    code.get(known).splat64(0n).op("i32x4.ne").op("v128.bitselect").memory("v128.store");
  });
}

/** Two values of 64 bits at a time, twice a round. */
function decodeWideGroups(code: Code, index: number): void {
  const [values, count, nullValue, base, slope, source] = [0, 1, 2, 3, 4, 5];
  const bases = code.local("v128"), nulls = code.local("v128"), slopes = code.local("v128"), known = code.local("v128");
  // The bases of two neighbours: base, and base + slope.
  code.get(base).op("i64x2.splat").get(base).get(slope).op("i64.add").lane("i64x2.replace_lane", 1).set(bases);
  code.get(slope).get(slope).op("i64.add").op("i64x2.splat").set(slopes);
  code.get(nullValue).op("i64x2.splat").set(nulls);
  eachGroup(code, count, index, 4, [[values, 8], [source, 4]], () => {
    for (const half of [0, 1]) {
      code.get(values).get(source).memory("v128.load64_splat", 8 * half).op("i64x2.extend_low_i32x4_u").tee(known);
      code.get(bases).op("i64x2.add").get(nulls).get(known).splat64(0n).op("i64x2.ne").op("v128.bitselect");
      code.memory("v128.store", 16 * half).get(bases).get(slopes).op("i64x2.add").set(bases);
    }
  });
}

/** Two values of 64 bits at a time, twice a round. */
function decodeDecimalGroups(code: Code, index: number, giveBack: "div" | "mul"): void {
  const [values, count, nullBits, base, back, source] = [0, 1, 2, 3, 4, 5];
  const bases = code.local("v128"), nulls = code.local("v128"), backs = code.local("v128"), known = code.local("v128");
  code.get(base).op("f64x2.splat").set(bases).get(back).op("f64x2.splat").set(backs);
  code.get(nullBits).op("i64x2.splat").set(nulls);
  eachGroup(code, count, index, 4, [[values, 8], [source, 4]], () => {
    for (const half of [0, 1]) {
      code.get(values).get(source).memory("v128.load64_splat", 8 * half).tee(known).op("f64x2.convert_low_i32x4_u");
      code.get(bases).op("f64x2.add").get(backs).op(`f64x2.${giveBack}`).get(nulls);
      code.get(known).op("i64x2.extend_low_i32x4_u").splat64(0n).op("i64x2.ne").op("v128.bitselect");
      code.memory("v128.store", 16 * half);
    }
  });
}

function decimals(code: Code, width: number, giveBack: "f64.div" | "f64.mul"): void {
  const [values, count, nullBits, power, back, exceptionsMax, integers, positions, found] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  const index = code.local("i32"), bits = code.local("i64"), integer = code.local("f64");
  const min = code.local("f64"), max = code.local("f64"), nulls = code.local("i32"), exceptions = code.local("i32");
  const negativeZero = width === 8 ? -(2n ** 63n) : 2n ** 31n;
  code.f64(Infinity).set(min).f64(-Infinity).set(max);
  each(code, count, index, [[values, width], [integers, 8]], () => {
    code.get(values).memory(width === 8 ? "i64.load" : "i64.load32_u").tee(bits);
    if (width === 8) code.op("f64.reinterpret_i64");
    else code.op("i32.wrap_i64").op("f32.reinterpret_i32").op("f64.promote_f32");
    code.get(power).op("f64.mul").op("f64.nearest").tee(integer).get(back).op(giveBack);
    if (width === 8) code.op("i64.reinterpret_f64");
    else code.op("f32.demote_f64").op("i32.reinterpret_f32").op("i64.extend_i32_u");
    code.get(bits).op("i64.eq");
    code.get(integer).op("f64.abs").f64(INTEGER_MAX).op("f64.le").op("i32.and");
    code.get(bits).i64(negativeZero).op("i64.ne").op("i32.and").if(() => {
      keep(code, min, integer, "f64.lt");
      keep(code, max, integer, "f64.gt");
    }, () => {
      code.f64(NaN).set(integer);
      code.get(bits).get(nullBits).op("i64.eq").if(() => code.get(nulls).i32(1).op("i32.add").set(nulls), () => {
        code.get(exceptions).get(exceptionsMax).op("i32.ge_u").if(() => code.i32(0).return());
        code.get(positions).get(index).memory("i32.store16").get(positions).i32(2).op("i32.add").set(positions);
        code.get(exceptions).i32(1).op("i32.add").set(exceptions);
      });
    });
    code.get(integers).get(integer).memory("f64.store");
  });
  code.get(found).get(min).memory("f64.store", FOUND.min).get(found).get(max).memory("f64.store", FOUND.max);
  code.get(found).get(nulls).memory("i32.store", FOUND.nulls);
  code.get(found).get(exceptions).memory("i32.store", FOUND.exceptions);
  code.i32(1);
}

function codesOfDecimals(code: Code): void {
  const [integers, count, base, target] = [0, 1, 2, 3];
  const index = code.local("i32");
  each(code, count, index, [[integers, 8], [target, 4]], () => {
    // NaN becomes 0.
    code.get(target).get(integers).memory("f64.load").get(base).op("f64.sub").op("i32.trunc_sat_f64_u").memory(
      "i32.store",
    );
  });
}

function decodeDecimals(code: Code, width: number, giveBack: "div" | "mul"): void {
  const [values, count, nullBits, base, back, source] = [0, 1, 2, 3, 4, 5];
  const index = code.local("i32"), known = code.local("i32");
  if (width === 8) decodeDecimalGroups(code, index, giveBack);
  each(code, count, index, [[values, width], [source, 4]], () => {
    code.get(values);
    code.get(source).memory("i32.load").tee(known).op("f64.convert_i32_u").get(base).op("f64.add").get(back).op(
      `f64.${giveBack}`,
    );
    if (width === 8) code.op("i64.reinterpret_f64").get(nullBits).get(known).op("select").memory("i64.store");
    else {
      code.op("f32.demote_f64").op("i32.reinterpret_f32").get(nullBits).op("i32.wrap_i64").get(known).op("select");
      code.memory("i32.store");
    }
  });
}
