/**
 * Kernels that work on the codes of a stored chunk: they select the rows whose values are in a range, and gather the values of single
 * rows. Selected rows are bits of masks: row `r` is bit `r & 7` of byte `r >> 3`.
 *
 * A selection of floats may have rows outside of the range: those of vectors that are not stored as codes, exceptions, and decimals next to the bounds. So
 * conditions are tested again on the rows that are left. One of integers has those of vectors with a slope.
 */
import type { Code, Module, ValueType } from "../../wasm/assembler.ts";
import { lanesOf } from "../../wasm/shuffles.ts";
import { CODE_BITS_MAX, eachCode, packedBytes, VECTOR_ROWS } from "./bits.ts";
import { prefetchAhead } from "./prefetch.ts";
import { AT, CHUNK_AT, CONSTANT, forCodeBits, FRAME, PRODUCT, pushHeader, RAW } from "./vectors.ts";

/** Bytes of a mask of a vector. */
export const MASK_BYTES = VECTOR_ROWS / 8;

/**
 * How the rows of a vector are selected: none or all of them by its header, by a test of each code, the same with exceptions, or all of them
 * because its values are not codes that can be compared.
 */
export const OUTCOME = { skipped: 0, whole: 1, tested: 2, withExceptions: 3, withoutCodes: 4 } as const;
/**
 * Vectors are prefetched before values are gathered if one row in this many is wanted. With more rows the processor prefetches by itself. With
 * fewer, only the words of the rows are, because most of a vector would not be read.
 */
const PREFETCHED_ROWS = { from: 32, to: 128 } as const;
/** Rows whose words are prefetched together. */
const ROWS_AHEAD = 64;
/** Bytes of integers, and the lower halves of the lanes of 64 bits of two registers. */
const RAW_WIDTHS = [1, 2, 4, 8] as const, EVEN_WORDS = lanesOf(4, [0, 2, 4, 6]);
export const OUTCOMES = Object.keys(OUTCOME).length;

/**
 * Selects exactly the rows of vectors `from` … `to`-1 with integers in ranges (their ends as i64), or with others and NULL, and all rows of vectors with a
 * slope. Of vectors without rows in the masks `within`, unless that is 0, it selects none. Adds the outcomes to `counts` (i32). `spare`: memory for a mask.
 */
export type SelectIntegers = (
  chunk: number,
  from: number,
  to: number,
  ranges: number,
  rangesEnd: number,
  areOthers: number,
  within: number,
  masks: number,
  counts: number,
  spare: number,
) => void;
export type SelectDecimals = (
  chunk: number,
  from: number,
  to: number,
  low: number,
  high: number,
  masks: number,
  counts: number,
  powers: number,
) => void;

/**
 * Writes values `rows[0 … count-1]`, which ascend, to `values`. `decoded`, `codes`: memory for the values and codes of a vector.
 */
export type GatherRows = (
  chunk: number,
  rows: number,
  count: number,
  values: number,
  decoded: number,
  codes: number,
  powers: number,
) => void;

export interface SelectionKernels {
  selectIntegers: SelectIntegers;
  selectDecimals: SelectDecimals;
  /** Keeps in `masks` the bits that are also in `others`. */
  intersect(masks: number, others: number, vectors: number): void;
  /**
   * Copies the exceptions of vectors of floats of `width` bytes to `values`, and the numbers of their rows (i32) to `rows`. Returns how many they
   * are.
   */
  listExceptions(chunk: number, from: number, to: number, width: number, values: number, rows: number): number;
  /** Selects rows `rows[k]` (i32) of which bit `k & 7` of byte `k >> 3` of `bits` is set. */
  selectListed(masks: number, rows: number, bits: number, count: number): void;
  /** The number of selected rows among rows `from` … `to`-1. */
  countRows(masks: number, from: number, to: number): number;
  /** Writes the selected ones of rows `from` … `to`-1 in ascending order, at most `rowsMax` of them, and returns their number. */
  listRows(masks: number, from: number, to: number, rows: number, rowsMax: number): number;
}

export function addSelectionKernels(module: Module): void {
  const selects: number[] = [];
  for (let codeBits = 1; codeBits <= CODE_BITS_MAX; codeBits++) {
    const { code, index } = module.function(["i32", "i32", "i32", "i32"], []);
    selectCodes(code, codeBits);
    selects[codeBits] = index;
  }
  const raws = RAW_WIDTHS.map((width) => {
    const { code, index } = module.function(["i32", "i32", "i64", "i64", "i32"], []);
    selectRaw(code, width);
    return index;
  });
  const addresses: ValueType[] = ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32"];
  selectIntegers(module.function(addresses, [], "selectIntegers").code, selects, raws);
  const decimals: ValueType[] = ["i32", "i32", "i32", "f64", "f64", "i32", "i32", "i32"];
  selectDecimals(module.function(decimals, [], "selectDecimals").code, selects);
  intersect(module.function(["i32", "i32", "i32"], [], "intersect").code);
  listExceptions(module.function(["i32", "i32", "i32", "i32", "i32", "i32"], ["i32"], "listExceptions").code);
  selectListed(module.function(["i32", "i32", "i32", "i32"], [], "selectListed").code);
  countRows(module.function(["i32", "i32", "i32"], ["i32"], "countRows").code);
  listRows(module.function(["i32", "i32", "i32", "i32", "i32"], ["i32"], "listRows").code);
}

/** Selects codes from `low` to `low + extent`. */
function selectCodes(code: Code, codeBits: number): void {
  const [from, low, extent, mask] = [0, 1, 2, 3];
  const lows = code.local("v128"), extents = code.local("v128");
  code.get(low).op("i32x4.splat").set(lows).get(extent).op("i32x4.splat").set(extents);
  // A register has four neighbours, so sixteen rows are four of them, narrowed to bytes.
  eachCode(code, codeBits, from, mask, MASK_BYTES / 8, (step, push) => {
    if (step % 4 === 0) code.get(mask);
    push();
    code.get(lows).op("i32x4.sub").get(extents).op("i32x4.le_u");
    if (step % 2 === 1) code.op("i16x8.narrow_i32x4_s");
    if (step % 4 === 3) code.op("i8x16.narrow_i16x8_s").op("i8x16.bitmask").memory("i32.store16", step >> 2 << 1);
  });
}

/** Selects `count` integers as they are in memory, with values from `low` to `high`. */
function selectRaw(code: Code, width: number): void {
  const [values, count, low, high, mask] = [0, 1, 2, 3, 4];
  const lanes = 16 / width, shape = `i${8 * width}x${lanes}`;
  const row = code.local("i32"), end = code.local("i32"), bits = code.local("i32"), value = code.local("i64");
  const lows = code.local("v128"), extents = code.local("v128");
  const load = width === 8 ? "i64.load" : `i64.load${8 * width}_s`;
  if (width === 8) {
    // There is no comparison of unsigned lanes of 64 bits, so all values have their sign bit flipped.
    code.get(low).i64(-(2n ** 63n)).op("i64.add").op("i64x2.splat").set(lows);
    code.get(high).get(low).op("i64.sub").i64(-(2n ** 63n)).op("i64.add").op("i64x2.splat").set(extents);
  } else {
    // The ends of the range that the type has.
    const least = -(2n ** BigInt(8 * width - 1)), greatest = -least - 1n;
    for (const [bound, limit, outside] of [[low, least, "i64.lt_s"], [high, greatest, "i64.gt_s"]] as const) {
      code.i64(limit).get(bound).get(bound).i64(limit).op(outside).op("select").set(bound);
    }
    const splat = () => {
      if (width < 8) code.op("i32.wrap_i64");
      code.op(`${shape}.splat`);
    };
    code.get(low);
    splat();
    code.set(lows).get(high).get(low).op("i64.sub");
    splat();
    code.set(extents);
    code.get(low).get(high).op("i64.gt_s").if(() => {
      fillMask(code, mask, 0n);
      code.return();
    });
  }
  const test = (k: number) => {
    code.get(values).memory("v128.load", 16 * k).get(lows).op(`${shape}.sub`).get(extents);
    code.op(width === 8 ? "i64x2.le_s" : `${shape}.le_u`);
  };
  const tested = Array.from({ length: width }, () => code.local("v128"));
  /** Pushes one register for two with lanes of half the size. */
  const narrow = (size: number, push: readonly (() => void)[]): void => {
    if (size === 1) return push[0]!();
    const pairs = Array.from({ length: push.length / 2 }, (_, k) => () => {
      push[2 * k]!();
      push[2 * k + 1]!();
      if (size === 8) code.shuffle(EVEN_WORDS);
      else code.op(size === 4 ? "i16x8.narrow_i32x4_s" : "i8x16.narrow_i16x8_s");
    });
    narrow(size / 2, pairs);
  };
  code.get(count).i32(-16).op("i32.and").set(end);
  code.block((done) =>
    code.loop((next) => {
      code.get(row).get(end).op("i32.ge_u").brIf(done);
      tested.forEach((local, k) => {
        test(k);
        code.set(local);
      });
      code.i32(0).set(bits);
      // Few rows pass most conditions on values that are not packed.
      tested.forEach((local, k) => {
        code.get(local);
        if (k > 0) code.op("v128.or");
      });
      code.op("v128.any_true").if(() => {
        narrow(width, tested.map((local) => () => code.get(local)));
        code.op("i8x16.bitmask").set(bits);
      });
      code.get(mask).get(row).i32(3).op("i32.shr_u").op("i32.add").get(bits).memory("i32.store16");
      code.get(values).i32(16 * width).op("i32.add").set(values).get(row).i32(16).op("i32.add").set(row).br(next);
    })
  );
  code.get(row).get(count).op("i32.lt_u").if(() => {
    code.get(mask).get(row).i32(3).op("i32.shr_u").op("i32.add").set(mask).i32(0).set(bits).i32(0).set(end);
    code.loop((next) => {
      code.get(values).memory(load).tee(value).get(low).op("i64.ge_s").get(value).get(high).op("i64.le_s");
      code.op("i32.and").get(end).op("i32.shl").get(bits).op("i32.or").set(bits);
      code.get(values).i32(width).op("i32.add").set(values).get(end).i32(1).op("i32.add").set(end);
      code.get(row).i32(1).op("i32.add").tee(row).get(count).op("i32.lt_u").brIf(next);
    });
    code.get(mask).get(bits).memory("i32.store16");
  });
}

function fillMask(code: Code, mask: number, bits: bigint): void {
  for (let k = 0; k < MASK_BYTES; k += 16) code.get(mask).splat64(bits).memory("v128.store", k);
}

function selectIntegers(code: Code, selects: readonly number[], raws: readonly number[]): void {
  const [chunk, vector, to, ranges, rangesEnd, areOthers, within, masks, counts, spare] = [
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
  ];
  const header = code.local("i32"), mask = code.local("i32"), encoding = code.local("i32"), offset = code.local("i32");
  const outcome = code.local("i32"), count = code.local("i32"), range = code.local("i32"), into = code.local("i32");
  const first = code.local("i32"), last = code.local("i32"), span = code.local("i32"), reserved = code.local("i32");
  const base = code.local("i64"), low = code.local("i64"), high = code.local("i64"), rowCount = code.local("i32");
  const { skipped, whole, tested, withoutCodes } = OUTCOME;
  const eachWord = (use: (at: number) => void) => {
    for (let k = 0; k < MASK_BYTES; k += 16) use(k);
  };
  /** Sets the outcome of a range, whose rows are in `into` if they are tested. */
  const selectRange = () => {
    code.block((none) => {
      code.block((all) => {
        code.get(encoding).i32(CONSTANT).op("i32.eq").if(() => {
          code.get(header).memory("i32.load16_u", AT.nulls).brIf(none);
          code.get(base).get(low).op("i64.lt_s").brIf(none).get(base).get(high).op("i64.gt_s").brIf(none).br(all);
        });
        const pushData = () => code.get(chunk).get(header).memory("i32.load", AT.data).op("i32.add");
        code.get(encoding).i32(RAW).op("i32.eq").if(() => {
          code.get(chunk).memory("i32.load", CHUNK_AT.rowCount).get(vector).i32(VECTOR_ROWS).op("i32.mul");
          code.op("i32.sub").tee(rowCount).i32(VECTOR_ROWS).get(rowCount).i32(VECTOR_ROWS).op("i32.lt_u").op("select");
          code.set(rowCount);
          RAW_WIDTHS.forEach((width, k) => {
            code.get(chunk).memory("i32.load8_u", CHUNK_AT.width).i32(width).op("i32.eq").if(() => {
              pushData();
              code.get(rowCount).get(low).get(high).get(into).call(raws[k]!);
            });
          });
          code.i32(tested).set(outcome);
        }, () => {
          code.get(header).memory("i32.load16_u", AT.exceptions).get(header).memory("i32.load16_u", AT.nulls);
          code.op("i32.or").i32(0).op("i32.ne").set(reserved);
          code.get(high).get(base).op("i64.lt_s").brIf(none).i32(0).set(first);
          code.get(low).get(base).op("i64.gt_s").if(() => {
            code.get(low).get(base).op("i64.sub").i64(0xffff_ffffn).op("i64.gt_u").brIf(none);
            code.get(low).get(base).op("i64.sub").op("i32.wrap_i64").set(first);
          });
          code.get(high).get(base).op("i64.sub").op("i32.wrap_i64").get(span);
          code.get(high).get(base).op("i64.sub").get(span).op("i64.extend_i32_u").op("i64.lt_u").op("select").set(last);
          code.get(first).get(reserved).get(first).get(reserved).op("i32.gt_u").op("select").tee(first);
          code.get(last).op("i32.gt_u").brIf(none);
          code.get(reserved).get(first).op("i32.or").op("i32.eqz").get(last).get(span).op("i32.eq").op("i32.and");
          code.brIf(all).i32(tested).set(outcome);
          callForBits(code, header, selects, () => {
            pushData();
            code.get(first).get(last).get(first).op("i32.sub").get(into);
          });
        });
        // The rows of another range are in the mask.
        code.get(into).get(spare).op("i32.eq").if(() => {
          eachWord((at) => {
            code.get(mask).get(mask).memory("v128.load", at).get(spare).memory("v128.load", at).op("v128.or");
            code.memory("v128.store", at);
          });
        });
        code.get(spare).set(into).br(none);
      });
      code.i32(whole).set(outcome);
    });
  };
  code.block((done) =>
    code.loop((next) => {
      code.get(vector).get(to).op("i32.ge_u").brIf(done);
      pushHeader(code, chunk, vector);
      code.tee(header).memory("i32.load8_u", AT.encoding).set(encoding);
      code.get(vector).i32(MASK_BYTES).op("i32.mul").tee(offset).get(masks).op("i32.add").tee(mask).set(into);
      code.block((known) => {
        code.get(within).if(() => {
          code.get(within).get(offset).op("i32.add").set(count);
          eachWord((at) => {
            code.get(count).memory("v128.load", at);
            if (at > 0) code.op("v128.or");
          });
          code.op("v128.any_true").op("i32.eqz").if(() => {
            fillMask(code, mask, 0n);
            code.i32(skipped).set(outcome).br(known);
          });
        });
        code.get(encoding).i32(FRAME).op("i32.eq").get(header).memory("i64.load", AT.slope).i64(0n).op("i64.ne");
        code.op("i32.and").if(() => {
          fillMask(code, mask, -1n);
          code.i32(withoutCodes).set(outcome).br(known);
        });
        code.get(header).memory("i64.load", AT.base).set(base).get(header).memory("i32.load", AT.span).set(span);
        code.i32(skipped).set(outcome).get(ranges).set(range);
        code.block((all) =>
          code.loop((again) => {
            code.get(range).get(rangesEnd).op("i32.ge_u").brIf(all);
            code.get(range).memory("i64.load").set(low).get(range).memory("i64.load", 8).set(high);
            selectRange();
            code.get(outcome).i32(whole).op("i32.eq").brIf(all);
            code.get(range).i32(16).op("i32.add").set(range).br(again);
          })
        );
        code.get(outcome).i32(tested).op("i32.eq").if(() => {
          code.get(areOthers).if(() =>
            eachWord((at) => {
              code.get(mask).get(mask).memory("v128.load", at).op("v128.not").memory("v128.store", at);
            })
          );
          code.br(known);
        });
        code.get(outcome).i32(whole).op("i32.eq").get(areOthers).op("i32.xor").if(
          () => {
            fillMask(code, mask, -1n);
            code.i32(whole).set(outcome);
          },
          () => {
            fillMask(code, mask, 0n);
            code.i32(skipped).set(outcome);
          },
        );
      });
      countOutcome(code, counts, outcome, count);
      code.get(vector).i32(1).op("i32.add").set(vector).br(next);
    })
  );
}

function countOutcome(code: Code, counts: number, outcome: number, count: number): void {
  code.get(counts).get(outcome).i32(2).op("i32.shl").op("i32.add").tee(count);
  code.get(count).memory("i32.load").i32(1).op("i32.add").memory("i32.store");
}

function selectDecimals(code: Code, selects: readonly number[]): void {
  const [chunk, vector, to, low, high, masks, counts, powers] = [0, 1, 2, 3, 4, 5, 6, 7];
  const header = code.local("i32"), mask = code.local("i32"), encoding = code.local("i32");
  const outcome = code.local("i32"), count = code.local("i32");
  const first = code.local("i32"), last = code.local("i32"), span = code.local("i32"), reserved = code.local("i32");
  const base = code.local("i64"), places = code.local("f64"), bound = code.local("f64");
  code.block((done) =>
    code.loop((next) => {
      code.get(vector).get(to).op("i32.ge_u").brIf(done);
      pushHeader(code, chunk, vector);
      code.tee(header).memory("i32.load8_u", AT.encoding).set(encoding);
      code.get(masks).get(vector).i32(MASK_BYTES).op("i32.mul").op("i32.add").set(mask);
      code.get(header).memory("i64.load", AT.base).set(base);
      code.get(header).memory("i32.load", AT.span).set(span);
      code.block((filled) => {
        code.block((none) => {
          code.block((all) => {
            code.i32(OUTCOME.withoutCodes).set(outcome);
            code.get(encoding).i32(RAW).op("i32.eq").brIf(all);
            // Floats are constant only if all are NULL.
            code.get(encoding).i32(CONSTANT).op("i32.eq").brIf(none);
            code.get(header).memory("i32.load16_u", AT.exceptions).get(header).memory("i32.load16_u", AT.nulls);
            code.op("i32.or").i32(0).op("i32.ne").set(reserved);
            code.get(powers).get(header).memory("i32.load8_u", AT.places).i32(3).op("i32.shl").op("i32.add");
            code.memory("f64.load").set(places);
            code.get(high).get(places).op("f64.mul").op("f64.ceil").f64(1).op("f64.add");
            code.get(base).op("f64.convert_i64_s").op("f64.sub").tee(bound).f64(0).op("f64.lt").brIf(none);
            code.get(bound).op("i32.trunc_sat_f64_u").tee(last).get(span).get(last).get(span).op("i32.lt_u");
            code.op("select").set(last);
            code.get(low).get(places).op("f64.mul").op("f64.floor").f64(1).op("f64.sub");
            code.get(base).op("f64.convert_i64_s").op("f64.sub").tee(bound).f64(2 ** 32).op("f64.ge").brIf(none);
            code.get(bound).op("i32.trunc_sat_f64_u").set(first);
            code.i32(OUTCOME.whole).set(outcome);
            code.get(first).get(reserved).get(first).get(reserved).op("i32.gt_u").op("select").tee(first);
            code.get(last).op("i32.gt_u").brIf(none);
            code.get(reserved).get(first).op("i32.or").op("i32.eqz").get(last).get(span).op("i32.eq").op("i32.and")
              .brIf(all);
            code.i32(OUTCOME.tested).set(outcome);
            callForBits(code, header, selects, () => {
              code.get(chunk).get(header).memory("i32.load", AT.data).op("i32.add");
              code.get(first).get(last).get(first).op("i32.sub").get(mask);
            });
            code.br(filled);
          });
          fillMask(code, mask, -1n);
          code.br(filled);
        });
        fillMask(code, mask, 0n);
        code.i32(OUTCOME.skipped).set(outcome);
      });
      selectExceptions(code, chunk, header, mask);
      code.i32(OUTCOME.withExceptions).get(outcome).get(header).memory("i32.load16_u", AT.exceptions).op("select");
      code.set(outcome);
      countOutcome(code, counts, outcome, count);
      code.get(vector).i32(1).op("i32.add").set(vector).br(next);
    })
  );
}

/** Calls the kernel for the bits of a vector's codes, which are not 0. */
function callForBits(code: Code, header: number, callees: readonly number[], push: () => void): void {
  const codeBits = code.local("i32");
  code.get(header).memory("i32.load8_u", AT.codeBits).set(codeBits);
  push();
  const parameters = [code.local("i32"), code.local("i32"), code.local("i32"), code.local("i32")];
  for (const local of parameters.toReversed()) code.set(local);
  forCodeBits(code, codeBits, (bits) => {
    for (const local of parameters) code.get(local);
    code.call(callees[bits]!);
  });
}

function listExceptions(code: Code): void {
  const [chunk, vector, to, width, values, rows] = [0, 1, 2, 3, 4, 5];
  const first = code.local("i32"), header = code.local("i32"), left = code.local("i32");
  const position = code.local("i32"), value = code.local("i32");
  code.get(rows).set(first);
  code.block((done) =>
    code.loop((next) => {
      code.get(vector).get(to).op("i32.ge_u").brIf(done);
      pushHeader(code, chunk, vector);
      code.tee(header).memory("i32.load16_u", AT.exceptions).tee(left).if(() => {
        code.get(chunk).get(header).memory("i32.load", AT.data).op("i32.add");
        code.get(header).memory("i32.load8_u", AT.codeBits).i32(packedBytes(1)).op("i32.mul").op("i32.add");
        code.tee(position).get(left).i32(1).op("i32.shl").i32(7).op("i32.add").i32(-8).op("i32.and").op("i32.add");
        code.set(value);
        code.loop((again) => {
          code.get(values).get(value).get(width).memoryCopy();
          code.get(rows).get(vector).i32(VECTOR_ROWS).op("i32.mul").get(position).memory("i32.load16_u").op("i32.add");
          code.memory("i32.store");
          code.get(values).get(width).op("i32.add").set(values).get(rows).i32(4).op("i32.add").set(rows);
          code.get(position).i32(2).op("i32.add").set(position).get(value).get(width).op("i32.add").set(value);
          code.get(left).i32(1).op("i32.sub").tee(left).brIf(again);
        });
      });
      code.get(vector).i32(1).op("i32.add").set(vector).br(next);
    })
  );
  code.get(rows).get(first).op("i32.sub").i32(2).op("i32.shr_u");
}

function selectListed(code: Code): void {
  const [masks, rows, bits, count] = [0, 1, 2, 3];
  const k = code.local("i32"), row = code.local("i32"), byte = code.local("i32");
  code.block((done) =>
    code.loop((next) => {
      code.get(k).get(count).op("i32.ge_u").brIf(done);
      code.get(bits).get(k).i32(3).op("i32.shr_u").op("i32.add").memory("i32.load8_u");
      code.get(k).i32(7).op("i32.and").op("i32.shr_u").i32(1).op("i32.and").if(() => {
        code.get(rows).get(k).i32(2).op("i32.shl").op("i32.add").memory("i32.load").set(row);
        code.get(masks).get(row).i32(3).op("i32.shr_u").op("i32.add").tee(byte);
        code.get(byte).memory("i32.load8_u").i32(1).get(row).i32(7).op("i32.and").op("i32.shl").op("i32.or");
        code.memory("i32.store8");
      });
      code.get(k).i32(1).op("i32.add").set(k).br(next);
    })
  );
}

function selectExceptions(code: Code, chunk: number, header: number, mask: number): void {
  const left = code.local("i32"), at = code.local("i32"), position = code.local("i32"), byte = code.local("i32");
  code.get(header).memory("i32.load16_u", AT.exceptions).tee(left).if(() => {
    code.get(chunk).get(header).memory("i32.load", AT.data).op("i32.add");
    code.get(header).memory("i32.load8_u", AT.codeBits).i32(packedBytes(1)).op("i32.mul").op("i32.add").set(at);
    code.loop((again) => {
      code.get(mask).get(at).memory("i32.load16_u").tee(position).i32(3).op("i32.shr_u").op("i32.add").tee(byte);
      code.get(byte).memory("i32.load8_u").i32(1).get(position).i32(7).op("i32.and").op("i32.shl").op("i32.or");
      code.memory("i32.store8");
      code.get(at).i32(2).op("i32.add").set(at).get(left).i32(1).op("i32.sub").tee(left).brIf(again);
    });
  });
}

function intersect(code: Code): void {
  const [masks, others, vectors] = [0, 1, 2];
  const end = code.local("i32");
  code.get(masks).get(vectors).i32(MASK_BYTES).op("i32.mul").op("i32.add").set(end);
  code.loop((again) => {
    code.get(masks).get(masks).memory("v128.load").get(others).memory("v128.load").op("v128.and").memory("v128.store");
    code.get(others).i32(16).op("i32.add").set(others);
    code.get(masks).i32(16).op("i32.add").tee(masks).get(end).op("i32.lt_u").brIf(again);
  });
}

function countRows(code: Code): void {
  const [masks, from, to] = [0, 1, 2];
  const word = code.local("i32"), last = code.local("i32"), bits = code.local("i64"), count = code.local("i64");
  code.get(from).i32(6).op("i32.shr_u").set(word).get(to).i32(1).op("i32.sub").i32(6).op("i32.shr_u").set(last);
  code.loop((next) => {
    code.get(masks).get(word).i32(3).op("i32.shl").op("i32.add").memory("i64.load").set(bits);
    code.get(word).get(from).i32(6).op("i32.shr_u").op("i32.eq").if(() => {
      code.get(bits).i64(-1n).get(from).op("i64.extend_i32_u").op("i64.shl").op("i64.and").set(bits);
    });
    code.get(word).get(last).op("i32.eq").if(() => {
      code.get(bits).i64(-1n).i32(0).get(to).op("i32.sub").op("i64.extend_i32_u").op("i64.shr_u").op("i64.and").set(
        bits,
      );
    });
    code.get(count).get(bits).op("i64.popcnt").op("i64.add").set(count);
    code.get(word).i32(1).op("i32.add").tee(word).get(last).op("i32.le_u").brIf(next);
  });
  code.get(count).op("i32.wrap_i64");
}

function listRows(code: Code): void {
  const [masks, from, to, rows, rowsMax] = [0, 1, 2, 3, 4];
  const end = code.local("i32");
  const word = code.local("i32"), out = code.local("i32"), bits = code.local("i64"), last = code.local("i32");
  code.get(rows).get(rowsMax).i32(2).op("i32.shl").op("i32.add").set(end);
  code.get(rows).set(out).get(from).i32(6).op("i32.shr_u").set(word);
  code.get(to).i32(1).op("i32.sub").tee(last).i32(6).op("i32.shr_u").set(to);
  code.get(masks).get(word).i32(3).op("i32.shl").op("i32.add").memory("i64.load");
  code.i64(-1n).get(from).op("i64.extend_i32_u").op("i64.shl").op("i64.and").set(bits);
  code.block((done) =>
    code.loop((next) => {
      code.get(word).get(to).op("i32.eq").if(() => {
        code.get(bits).i64(-1n).i64(63n).get(last).op("i64.extend_i32_u").op("i64.sub").op("i64.shr_u").op("i64.and");
        code.set(bits);
      });
      code.block((empty) =>
        code.loop((again) => {
          code.get(bits).op("i64.eqz").brIf(empty);
          code.get(out).get(end).op("i32.eq").brIf(done);
          code.get(out).get(word).i32(6).op("i32.shl").get(bits).op("i64.ctz").op("i32.wrap_i64").op("i32.or");
          code.memory("i32.store").get(out).i32(4).op("i32.add").set(out);
          code.get(bits).get(bits).i64(1n).op("i64.sub").op("i64.and").set(bits).br(again);
        })
      );
      code.get(word).i32(1).op("i32.add").tee(word).get(to).op("i32.gt_u").brIf(done);
      code.get(masks).get(word).i32(3).op("i32.shl").op("i32.add").memory("i64.load").set(bits).br(next);
    })
  );
  code.get(out).get(rows).op("i32.sub").i32(2).op("i32.shr_u");
}

/** Adds a kernel for values of `width` bytes. `decode`: decodes a vector (`vectors.ts`). `prefetch`: see `prefetch.ts`. */
export function addGatherRows(
  module: Module,
  name: string,
  width: number,
  isFloat: boolean,
  decode: number,
  prefetch: number,
): void {
  const { code } = module.function(["i32", "i32", "i32", "i32", "i32", "i32", "i32"], ["i32"], name);
  const [chunk, rows, count, values, decoded, codes, powers] = [0, 1, 2, 3, 4, 5, 6];
  const end = code.local("i32"), row = code.local("i32"), vector = code.local("i32"), at = code.local("i32");
  const header = code.local("i32"), data = code.local("i32"), codeBits = code.local("i32"), bit = code.local("i32");
  const to = code.local("i32"),
    prefetched = code.local("i32"),
    sum = code.local("i32"),
    isPrefetched = code.local("i32"),
    isSparse = code.local("i32"),
    span = code.local("i32");
  const opened = code.local("i32"), isDecoded = code.local("i32"), reserved = code.local("i32");
  const found = code.local("i64"), bits = code.local("i64");
  const base = code.local("i64"), slope = code.local("i64"), whole = code.local("f64"), power = code.local("f64");
  const inverse = code.local("f64"), isProduct = code.local("i32"), value = code.local("i64");
  const store = width === 8 ? "i64.store" : `i64.store${8 * width}`,
    load = width === 8 ? "i64.load" : `i64.load${8 * width}_u`;
  code.i32(-1).set(opened).get(rows).get(count).i32(2).op("i32.shl").op("i32.add").set(end);
  const openCodes = () => {
    pushHeader(code, chunk, vector);
    code.tee(header).memory("i32.load8_u", AT.codeBits).set(codeBits);
    code.get(header).memory("i32.load", AT.data).get(chunk).op("i32.add").set(data);
  };
  const openVector = () => {
    openCodes();
    code.get(header).memory("i32.load8_u", AT.encoding).i32(FRAME).op("i32.lt_u");
    code.get(header).memory("i32.load16_u", AT.exceptions).op("i32.or").get(codeBits).op("i32.eqz").op("i32.or");
    code.tee(isDecoded).if(() => {
      code.get(header).get(data).get(decoded);
      code.get(chunk).memory("i32.load", CHUNK_AT.rowCount).get(vector).i32(VECTOR_ROWS).op("i32.mul").op("i32.sub")
        .tee(at);
      code.i32(VECTOR_ROWS).get(at).i32(VECTOR_ROWS).op("i32.lt_u").op("select");
      code.get(chunk).i32(CHUNK_AT.nullValue).op("i32.add").get(codes).get(powers).call(decode);
    });
    code.get(header).memory("i32.load16_u", AT.nulls).set(reserved);
    code.i64(1n).get(codeBits).op("i64.extend_i32_u").op("i64.shl").i64(1n).op("i64.sub").set(bits);
    code.get(header).memory("i64.load", AT.base).set(base).get(header).memory("i64.load", AT.slope).set(slope);
    if (!isFloat) return;
    code.get(base).op("f64.convert_i64_s").set(whole);
    code.get(header).memory("i32.load8_u", AT.encoding).i32(PRODUCT).op("i32.eq").set(isProduct);
    code.get(powers).get(header).memory("i32.load8_u", AT.places).i32(3).op("i32.shl").op("i32.add").memory("f64.load");
    code.set(power).f64(1).get(power).op("f64.div").set(inverse);
  };
  /** Pushes the address of the word in which the code of `row` begins. Sets `bit` to its place in the lane. */
  const pushWord = () => {
    // A lane has the code of every fourth row, one after the other in words of 32 bits (`bits.ts`).
    code.get(row).i32(VECTOR_ROWS - 1).op("i32.and").i32(2).op("i32.shr_u").get(codeBits).op("i32.mul").tee(bit);
    code.i32(1).op("i32.shr_u").i32(-16).op("i32.and").get(data).op("i32.add");
    code.get(row).i32(3).op("i32.and").i32(2).op("i32.shl").op("i32.add");
  };
  /** Loads the words of the next rows, so that the processor waits for all of them at once. */
  const prefetchRows = () => {
    const ahead = code.local("i32"), words = code.local("i32");
    code.get(rows).tee(ahead).i32(4 * ROWS_AHEAD).op("i32.add").tee(prefetched).get(end).get(prefetched).get(end);
    code.op("i32.lt_u").op("select").set(prefetched).get(codes).set(words);
    // Loops of few instructions have more loads under way, so the addresses come first.
    code.loop((again) => {
      code.get(ahead).memory("i32.load").tee(row).i32(Math.log2(VECTOR_ROWS)).op("i32.shr_u").set(vector);
      openCodes();
      code.get(words);
      pushWord();
      code.memory("i32.store").get(words).i32(4).op("i32.add").set(words);
      code.get(ahead).i32(4).op("i32.add").tee(ahead).get(prefetched).op("i32.lt_u").brIf(again);
    });
    code.get(codes).set(ahead);
    code.loop((again) => {
      code.get(ahead).memory("i32.load").tee(at).memory("i32.load").get(at).memory("i32.load", 16).op("i32.add");
      code.get(sum).op("i32.add").set(sum);
      code.get(ahead).i32(4).op("i32.add").tee(ahead).get(words).op("i32.lt_u").brIf(again);
    });
    code.i32(-1).set(opened);
  };
  /** Sets `found` to the code of `row`, whose vector is open. */
  const find = () => {
    pushWord();
    code.tee(at).memory("i64.load32_u").get(at).memory("i64.load32_u", 16).i64(32n).op("i64.shl").op("i64.or");
    code.get(bit).i32(31).op("i32.and").op("i64.extend_i32_u").op("i64.shr_u").get(bits).op("i64.and").set(found);
  };
  /** Pushes the value of code `found`. */
  const push = () => {
    if (isFloat) {
      const real = code.local("f64");
      code.get(whole).get(found).op("f64.convert_i64_u").op("f64.add").set(real);
      code.get(isProduct).if(
        () => code.get(real).get(inverse).op("f64.mul"),
        () => code.get(real).get(power).op("f64.div"),
        "f64",
      );
      if (width === 8) code.op("i64.reinterpret_f64");
      else code.op("f32.demote_f64").op("i32.reinterpret_f32").op("i64.extend_i32_u");
      return;
    }
    code.get(base).get(found).op("i64.add");
    if (width < 8) return; // has no slopes
    code.get(slope).get(row).i32(VECTOR_ROWS - 1).op("i32.and").op("i64.extend_i32_u").op("i64.mul").op("i64.add");
  };
  const step = () => {
    code.get(values).i32(width).op("i32.add").set(values).get(rows).i32(4).op("i32.add").tee(rows);
  };
  code.block((done) => {
    code.get(rows).get(end).op("i32.ge_u").brIf(done);
    code.get(end).i32(4).op("i32.sub").memory("i32.load").set(to);
    code.get(to).get(rows).memory("i32.load").op("i32.sub").tee(span).i32(PREFETCHED_ROWS.to).op("i32.div_u");
    code.get(count).op("i32.ge_u").tee(isSparse).op("i32.eqz");
    code.get(span).i32(PREFETCHED_ROWS.from).op("i32.div_u").get(count).op("i32.gt_u").op("i32.and").set(isPrefetched);
    code.get(to).i32(Math.log2(VECTOR_ROWS)).op("i32.shr_u").i32(1).op("i32.add").set(to);
    code.loop((next) => {
      code.get(isSparse).get(rows).get(prefetched).op("i32.ge_u").op("i32.and").if(prefetchRows);
      code.get(rows).memory("i32.load").tee(row).i32(Math.log2(VECTOR_ROWS)).op("i32.shr_u").tee(vector);
      code.get(opened).op("i32.ne").if(() => {
        code.get(vector).set(opened);
        code.get(isPrefetched).if(() => prefetchAhead(code, prefetch, { chunk, vector, to, prefetched, sum }));
        openVector();
      });
      code.get(isDecoded).get(reserved).op("i32.or").if(() => {
        code.get(isDecoded).if(() => {
          code.get(decoded).get(row).i32(VECTOR_ROWS - 1).op("i32.and").i32(width).op("i32.mul").op("i32.add");
          code.memory(load).set(value);
        }, () => {
          find();
          push();
          code.get(chunk).memory("i64.load", CHUNK_AT.nullValue).get(found).op("i64.eqz").op("i32.eqz").op("select");
          code.set(value);
        });
        code.get(values).get(value).memory(store);
        step();
        code.get(end).op("i32.lt_u").brIf(next).br(done);
      });
      // The rows of a vector whose codes are all values.
      code.loop((again) => {
        code.get(values);
        find();
        push();
        code.memory(store);
        step();
        code.get(end).op("i32.ge_u").brIf(done);
        code.get(rows).memory("i32.load").tee(row).i32(Math.log2(VECTOR_ROWS)).op("i32.shr_u").get(vector);
        code.op("i32.eq").brIf(again).br(next);
      });
    });
  });
  code.get(sum);
}
