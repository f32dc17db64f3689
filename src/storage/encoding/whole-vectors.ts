/**
 * Kernels that decode vectors of 1,024 codes to values in one pass, one for each number of bits: codes stay in registers. Other vectors are
 * decoded in two passes (`vectors.ts`).
 *
 * A decimal is `integer / 10^places`, rounded once. Divisions would take as long as all other instructions, so the quotient is made of two
 * products where that gives the same bits: `integer * high + integer * low`. `high + low` is 1 / 10^places with more bits than a double has, and
 * `high` has so few that the first product is exact. If the integer has w bits, `high` has 53 - w. Then the sum, before it is rounded, differs from
 * the quotient by less than 2^(w - 105) of it. A quotient is never in the middle between two doubles, as its numerator would need 54 bits, so it is
 * at least 2^-54 / 10^places of itself away from there. So both are rounded to the same double if w + log2(10^places) < 51. Floats of 4 bytes are
 * these doubles, rounded.
 */
import type { Code, Module } from "../../wasm/assembler.ts";
import { FIRST_PAIRS, lanesOf, LAST_PAIRS } from "../../wasm/shuffles.ts";
import { CODE_BITS_MAX, eachCode, VECTOR_ROWS } from "./bits.ts";
import { AT, DECIMAL, type DecodeWhole, forCodeBits, storeExceptions } from "./vectors.ts";

/** A code behind this half of a double is 2^52 + code. */
const HIGH_HALF = 0x43300000n, TWO_52 = 2 ** 52;
/** Bits of integers, and the most places, for which products give the bits of quotients. 10^places has not more bits than the integers. */
const QUOTIENTS = [{ integerBits: 26, placesMax: 7 }, { integerBits: 33, placesMax: 5 }] as const;
/** The first two lanes of each of two registers. */
const FIRST_HALVES = lanesOf(4, [0, 1, 4, 5]);

/** Instructions that kernels of all numbers of bits share, by the step of the loop. */
type Known = Map<number, Uint8Array>;

/**
 * Adds the kernels, and returns what calls them: for integers and floats of 4 and 8 bytes, and
 * for offsets (`offsets.ts`), whose base is the fifth parameter.
 */
export function addWholeVectors(module: Module): {
  integers: Record<number, DecodeWhole>;
  floats: Record<number, DecodeWhole>;
  offsets: DecodeWhole;
} {
  const narrow: number[] = [], wide: number[] = [], singles: number[] = [], doubles: number[] = [];
  const known: Record<"narrow" | "wide" | "singles" | "doubles", Known> = {
    narrow: new Map(),
    wide: new Map(),
    singles: new Map(),
    doubles: new Map(),
  };
  for (let codeBits = 1; codeBits <= CODE_BITS_MAX; codeBits++) {
    const narrowValues = module.function(["i32", "i32", "i32"], []);
    decodeNarrow(narrowValues.code, codeBits, known.narrow);
    narrow[codeBits] = narrowValues.index;
    const wideValues = module.function(["i32", "i32", "i64", "i64"], []);
    decodeWide(wideValues.code, codeBits, known.wide);
    wide[codeBits] = wideValues.index;
    for (const [list, width, steps] of [[singles, 4, known.singles], [doubles, 8, known.doubles]] as const) {
      const decimals = module.function(["i32", "i32", "f64", "f64", "f64"], []);
      decodeDecimals(decimals.code, codeBits, width, steps);
      list[codeBits] = decimals.index;
    }
  }
  const [header, data, values] = [0, 1, 2];
  const integers = (code: Code, callees: readonly number[], pushBase: () => void) =>
    ifWhole(code, (codeBits) => {
      isReserved(code);
      code.op("i32.eqz").if(() => {
        forCodeBits(code, codeBits, (bits) => {
          code.get(data).get(values);
          pushBase();
          code.call(callees[bits]!);
        });
        code.return();
      });
    });
  return {
    integers: {
      4: (code) => integers(code, narrow, () => code.get(header).memory("i32.load", AT.base)),
      8: (code) =>
        integers(code, wide, () => {
          code.get(header).memory("i64.load", AT.base).get(header).memory("i64.load", AT.slope);
        }),
    },
    floats: {
      4: (code) => ifWhole(code, (codeBits) => callDecimals(code, codeBits, 4, singles)),
      8: (code) => ifWhole(code, (codeBits) => callDecimals(code, codeBits, 8, doubles)),
    },
    offsets: (code) => integers(code, narrow, () => code.get(4)),
  };
}

function ifWhole(code: Code, use: (codeBits: number) => void): void {
  const [header, count] = [0, 3];
  const codeBits = code.local("i32");
  code.get(header).memory("i32.load8_u", AT.codeBits).tee(codeBits).i32(0).op("i32.ne");
  code.get(count).i32(VECTOR_ROWS).op("i32.eq").op("i32.and").if(() => use(codeBits));
}

/** Pushes 0 if code 0 is a value like others. */
function isReserved(code: Code): void {
  code.get(0).memory("i32.load16_u", AT.exceptions).get(0).memory("i32.load16_u", AT.nulls).op("i32.or");
}

function callDecimals(code: Code, codeBits: number, width: 4 | 8, callees: readonly number[]): void {
  const [header, data, values, , nullAt, , powers] = [0, 1, 2, 3, 4, 5, 6];
  const base = code.local("f64"), power = code.local("f64"), high = code.local("f64"), low = code.local("f64");
  const greatest = code.local("f64"), places = code.local("i32");
  code.get(header).memory("i64.load", AT.base).op("f64.convert_i64_s").set(base);
  code.get(header).memory("i32.load8_u", AT.places).tee(places).i32(3).op("i32.shl").get(powers).op("i32.add");
  code.memory("f64.load").set(power).f64(1).get(power).op("f64.div").set(high);
  code.block((unknown) => {
    code.get(header).memory("i32.load8_u", AT.encoding).i32(DECIMAL).op("i32.eq").if(() => {
      code.get(base).op("f64.abs").get(base).i64(1n).get(codeBits).op("i64.extend_i32_u").op("i64.shl");
      code.op("f64.convert_i64_s").op("f64.add").op("f64.abs").op("f64.max").set(greatest);
      code.block((known) => {
        for (const { integerBits, placesMax } of QUOTIENTS) {
          code.get(greatest).f64(2 ** integerBits).op("f64.le").get(places).i32(placesMax).op("i32.le_u");
          code.op("i32.and").if(() => {
            code.get(high).op("i64.reinterpret_f64").i64(-(2n ** BigInt(integerBits))).op("i64.and");
            code.op("f64.reinterpret_i64").set(high);
            // Both operations are exact.
            code.f64(1).get(power).get(high).op("f64.mul").op("f64.sub").get(power).op("f64.div").set(low);
            code.br(known);
          });
        }
        code.br(unknown);
      });
    });
    const valueOfCode = (added: number) => {
      const integer = code.local("f64");
      code.get(base).f64(added).op("f64.add").tee(integer).get(high).op("f64.mul");
      code.get(integer).get(low).op("f64.mul").op("f64.add");
      if (width === 4) code.op("f32.demote_f64");
    };
    if (width === 4) {
      // Several integers may be the same float. Then code 0 would not be known by its value.
      isReserved(code);
      code.if(() => {
        valueOfCode(0);
        valueOfCode(1);
        code.op("f32.eq").brIf(unknown);
      });
    }
    forCodeBits(code, codeBits, (bits) => {
      code.get(data).get(values).get(base).f64(TWO_52).op("f64.sub").get(high).get(low).call(callees[bits]!);
    });
    isReserved(code);
    code.if(() => {
      // What code 0 gives is the value of no other code.
      code.get(values);
      valueOfCode(0);
      code.get(nullAt).memory(width === 8 ? "i64.load" : "i32.load");
      replaceValues(code, width);
      storeExceptions(code, width);
    });
    code.return();
  });
}

/** Replaces a float in all values by bits: an address, the float and the bits are on the stack. */
function replaceValues(code: Code, width: 4 | 8): void {
  const at = code.local("i32"), end = code.local("i32");
  const from = code.local("v128"), to = code.local("v128"), pair = code.local("v128");
  const [floats, integers] = width === 8 ? ["f64x2", "i64x2"] : ["f32x4", "i32x4"];
  code.op(`${integers}.splat`).set(to).op(`${floats}.splat`).set(from);
  code.tee(at).i32(width * VECTOR_ROWS).op("i32.add").set(end);
  code.loop((again) => {
    for (const offset of [0, 16]) {
      code.get(at).get(to).get(at).memory("v128.load", offset).tee(pair).get(pair).get(from).op(`${floats}.eq`);
      code.op("v128.bitselect").memory("v128.store", offset);
    }
    code.get(at).i32(32).op("i32.add").tee(at).get(end).op("i32.lt_u").brIf(again);
  });
}

/**
 * Emits the loop over a vector. `use` emits what is done with each four codes, which are in a local: it has to store `4 * width` bytes at `offset`.
 * `known` has what it has emitted for other numbers of bits.
 */
function eachFour(
  code: Code,
  codeBits: number,
  width: number,
  known: Known,
  use: (codes: number, offset: number) => void,
): void {
  const [from, to] = [0, 1];
  const codes = code.local("v128");
  eachCode(code, codeBits, from, to, 128 * width, (step, push) => {
    push();
    code.set(codes).repeated(known, step, () => use(codes, 4 * width * step));
  });
}

function decodeNarrow(code: Code, codeBits: number, known: Known): void {
  const [, to, base] = [0, 1, 2];
  const bases = code.local("v128");
  code.get(base).op("i32x4.splat").set(bases);
  eachFour(code, codeBits, 4, known, (codes, offset) => {
    code.get(to).get(codes).get(bases).op("i32x4.add").memory("v128.store", offset);
  });
}

function decodeWide(code: Code, codeBits: number, known: Known): void {
  const [, to, base, slope] = [0, 1, 2, 3];
  const bases = code.local("v128"), slopes = code.local("v128");
  // The bases of two neighbours.
  code.get(base).op("i64x2.splat").get(base).get(slope).op("i64.add").lane("i64x2.replace_lane", 1).set(bases);
  code.get(slope).get(slope).op("i64.add").op("i64x2.splat").set(slopes);
  eachFour(code, codeBits, 8, known, (codes, offset) => {
    for (const [k, half] of ["low", "high"].entries()) {
      code.get(to).get(codes).op(`i64x2.extend_${half}_i32x4_u`).get(bases).op("i64x2.add");
      code.memory("v128.store", offset + 16 * k).get(bases).get(slopes).op("i64x2.add").set(bases);
    }
  });
}

function decodeDecimals(code: Code, codeBits: number, width: 4 | 8, known: Known): void {
  const [, to, addend, high, low] = [0, 1, 2, 3, 4];
  const addends = code.local("v128"), highs = code.local("v128"), lows = code.local("v128");
  const halves = code.local("v128"), integers = code.local("v128");
  code.get(addend).op("f64x2.splat").set(addends).get(high).op("f64x2.splat").set(highs);
  code.get(low).op("f64x2.splat").set(lows).splat64(HIGH_HALF << 32n | HIGH_HALF).set(halves);
  const push = (codes: number, lanes: readonly number[]) => {
    code.get(codes).get(halves).shuffle(lanes).get(addends).op("f64x2.add").set(integers);
    code.get(integers).get(highs).op("f64x2.mul").get(integers).get(lows).op("f64x2.mul").op("f64x2.add");
  };
  eachFour(code, codeBits, width, known, (codes, offset) => {
    code.get(to);
    if (width === 8) {
      push(codes, FIRST_PAIRS);
      code.memory("v128.store", offset).get(to);
      push(codes, LAST_PAIRS);
      code.memory("v128.store", offset + 16);
      return;
    }
    for (const lanes of [FIRST_PAIRS, LAST_PAIRS]) {
      push(codes, lanes);
      code.op("f32x4.demote_f64x2_zero");
    }
    code.shuffle(FIRST_HALVES).memory("v128.store", offset);
  });
}
