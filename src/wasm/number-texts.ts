/**
 * Functions of kernels that write numbers as text, to the first memory of their module. They return the end of the text, or `NOT_WRITTEN`, and may
 * write `SLACK_BYTES` behind it.
 */
import type { Code, Module } from "./assembler.ts";

/** The value is written by JavaScript, which is slower. */
export const NOT_WRITTEN = -1;
/** Most bytes that are written behind the end of a value. */
export const SLACK_BYTES = 32;

/** "00000000" as a word. */
export const ZEROS = 0x3030303030303030n;
const MINUS = 0x2d, POINT = 0x2e, LETTER_E = 0x45;

/** The powers of ten in the table, which suffice for numbers from 1e-23 to 1e36. */
const POWER_MIN = -45, POWER_MAX = 25;
/** Of `writeTables`. */
export const NUMBER_TABLE_BYTES = (POWER_MAX - POWER_MIN + 1) * 16;

/** Writes what the functions read, at a multiple of 8. */
export function writeNumberTables({ i64 }: { i64: BigInt64Array }, address: number): void {
  for (let power = POWER_MIN, at = address / 8; power <= POWER_MAX; power++) {
    const factor = factorOf(power);
    i64[at++] = factor >> 63n;
    i64[at++] = factor & (1n << 63n) - 1n;
  }
}

/** 10^-power × 2^r, rounded down, plus 1, where r makes it a number of 126 bits. */
function factorOf(power: number): bigint {
  const numerator = power < 0 ? 10n ** BigInt(-power) : 1n, denominator = power > 0 ? 10n ** BigInt(power) : 1n;
  const scaled = (numerator << 400n) / denominator, bits = BigInt(scaled.toString(2).length);
  return (scaled >> (bits - 126n)) + 1n;
}

export interface NumberFunctions {
  /** (i64, at) */
  long: number;
  /** (f64, at): finite. */
  double: number;
  /** (f32, at): finite. */
  float: number;
}

/** `table`: the address of `writeNumberTables`. */
export function numberFunctions(module: Module, table: number): NumberFunctions {
  const decimal = decimalFunction(module, table, scaledFunction(module));
  return {
    long: longFunction(module),
    double: doubleFunction(module, decimal),
    float: floatFunction(module, decimal),
  };
}

/** Emits code in place: a call would take as long. */
export class Digits {
  private readonly value: number;
  private readonly fours: number;
  private readonly pairs: number;

  constructor(private readonly code: Code) {
    this.value = code.local("i32");
    this.fours = code.local("i64");
    this.pairs = code.local("i64");
  }

  /** Of a number below 10^8 on the stack: its eight digits as numbers, the first one in the lowest byte. */
  all(): Code {
    const { code, value, fours, pairs } = this;
    // Splits halves, quarters and bytes at once, without a table.
    code.tee(value).get(value).i32(10_000).op("i32.div_u").tee(value).i32(10_000).op("i32.mul").op("i32.sub");
    code.op("i64.extend_i32_u").i64(32n).op("i64.shl").get(value).op("i64.extend_i32_u").op("i64.or").tee(fours);
    // x * 10486 >> 20 is x / 100 for x below 10,000.
    code.i64(10_486n).op("i64.mul").i64(20n).op("i64.shr_u").i64(0x0000007f_0000007fn).op("i64.and").tee(pairs);
    code.get(fours).get(pairs).i64(100n).op("i64.mul").op("i64.sub").i64(16n).op("i64.shl").op("i64.or").tee(pairs);
    // x * 103 >> 10 is x / 10 for x below 100.
    code.i64(103n).op("i64.mul").i64(10n).op("i64.shr_u").i64(0x000f000f_000f000fn).op("i64.and").tee(fours);
    return code.get(pairs).get(fours).i64(10n).op("i64.mul").op("i64.sub").i64(8n).op("i64.shl").op("i64.or");
  }

  /** Writes a number below 10^8 on the stack at `at` without leading zeros, and sets `at` to its end. */
  put(at: number): void {
    const { code, fours, pairs } = this;
    this.all().tee(fours);
    // At most seven zeros are left out.
    code.i64(1n << 56n).op("i64.or").op("i64.ctz").i64(-8n).op("i64.and").set(pairs);
    code.get(at).get(fours).i64(ZEROS).op("i64.or").get(pairs).op("i64.shr_u").memory("i64.store");
    code.get(at).i32(8).op("i32.add").get(pairs).op("i32.wrap_i64").i32(3).op("i32.shr_u").op("i32.sub").set(at);
  }
}

function longFunction(module: Module): number {
  const { code, index } = module.function(["i64", "i32"], ["i32"]);
  const [value, at] = [0, 1];
  const high = code.local("i64"), digits = new Digits(code);
  const isShort = (local: number) => code.get(local).i64(100_000_000n).op("i64.lt_u");
  const put = (local: number) => {
    code.get(local).op("i32.wrap_i64");
    digits.put(at);
  };
  const putRest = (local: number, quotient: number) => {
    code.get(at).get(local).get(quotient).i64(100_000_000n).op("i64.mul").op("i64.sub").op("i32.wrap_i64");
    digits.all().i64(ZEROS).op("i64.or").memory("i64.store");
    code.get(at).i32(8).op("i32.add").set(at);
  };
  code.get(value).i64(0n).op("i64.lt_s").if(() => {
    putByte(code, at, MINUS);
    code.i64(0n).get(value).op("i64.sub").set(value);
  });
  isShort(value).if(() => {
    put(value);
    code.get(at).return();
  });
  code.get(value).i64(100_000_000n).op("i64.div_u").set(high);
  isShort(high).if(() => put(high), () => {
    const top = code.local("i64");
    code.get(high).i64(100_000_000n).op("i64.div_u").set(top);
    put(top);
    putRest(high, top);
  });
  putRest(value, high);
  code.get(at);
  return index;
}

/** Like `formatDouble`. */
function doubleFunction(module: Module, decimal: number): number {
  const { code, index } = module.function(["f64", "i32"], ["i32"]);
  const digits = new Digits(code);
  const [value, at] = [0, 1];
  const bits = code.local("i64"), scaled = code.local("f64"), whole = code.local("i64"), fraction = code.local("i64");
  code.get(value).op("i64.reinterpret_f64").tee(bits).i64(0n).op("i64.lt_s").if(() => {
    putByte(code, at, MINUS);
    code.get(value).op("f64.neg").set(value);
  });
  code.get(value).f64(1e-3).op("f64.ge").get(value).f64(1e7).op("f64.lt").op("i32.and").if(() => {
    // Most numbers have few decimals: n / 10^6 is rounded correctly, so if it equals the value, the digits of n without the last
    // zeros are the shortest.
    code.get(value).f64(1e6).op("f64.mul").f64(0.5).op("f64.add").op("f64.floor").tee(scaled);
    code.f64(1e6).op("f64.div").get(value).op("f64.eq").if(() => {
      code.get(scaled).op("i64.trunc_sat_f64_u").tee(fraction).i64(1_000_000n).op("i64.div_u").set(whole);
      code.get(fraction).get(whole).i64(1_000_000n).op("i64.mul").op("i64.sub").op("i32.wrap_i64");
      digits.all().i64(16n).op("i64.shr_u").set(fraction);
      code.get(whole).op("i32.wrap_i64");
      digits.put(at);
      code.get(at).i32(POINT).memory("i32.store8").get(at).get(fraction).i64(ZEROS >> 16n).op("i64.or").memory(
        "i64.store",
        1,
      );
      // At least one decimal.
      code.get(at).i32(1).op("i32.add").i64(71n).get(fraction).i64(1n).op("i64.or").op("i64.clz").op("i64.sub");
      code.i64(3n).op("i64.shr_u").op("i32.wrap_i64").op("i32.add").return();
    });
  });
  code.get(value).f64(0).op("f64.eq").if(() => returnZero(code, at));
  code.get(bits).i64(52n).op("i64.shr_u").op("i32.wrap_i64").i32(0x7ff).op("i32.and").i32(1075).op("i32.sub");
  code.get(bits).i64((1n << 52n) - 1n).op("i64.and").tee(bits).i64(1n << 52n).op("i64.or");
  code.get(bits).op("i64.eqz").get(at).call(decimal);
  return index;
}

/** Like `formatFloat`. Powers of two that are not written have other neighbours below than above, which Java takes for equally near. */
function floatFunction(module: Module, decimal: number): number {
  const { code, index } = module.function(["f32", "i32"], ["i32"]);
  const [value, at] = [0, 1];
  const bits = code.local("i32"), exponent = code.local("i32"), fraction = code.local("i32");
  code.get(value).op("i32.reinterpret_f32").tee(bits).i32(0).op("i32.lt_s").if(() => putByte(code, at, MINUS));
  code.get(value).f32(0).op("f32.eq").if(() => returnZero(code, at));
  code.get(bits).i32(23).op("i32.shr_u").i32(0xff).op("i32.and").set(exponent);
  code.get(bits).i32((1 << 23) - 1).op("i32.and").set(fraction);
  // Those from 2^-10 to 2^23 have at most seven digits, which are the shortest text anyway.
  code.get(exponent).i32(127 - 10).op("i32.sub").i32(33).op("i32.gt_u").get(fraction).op("i32.eqz").op("i32.and");
  // Numbers below the normal ones have fewer digits.
  code.get(exponent).op("i32.eqz").op("i32.or").if(() => code.i32(NOT_WRITTEN).return());
  code.get(exponent).i32(150).op("i32.sub");
  code.get(fraction).i32(1 << 23).op("i32.or").op("i64.extend_i32_u").i32(0).get(at).call(decimal);
  return index;
}

function putByte(code: Code, at: number, byte: number): void {
  code.get(at).i32(byte).memory("i32.store8").get(at).i32(1).op("i32.add").set(at);
}

function returnZero(code: Code, at: number): void {
  code.get(at).i32(0x302e30).memory("i32.store").get(at).i32(3).op("i32.add").return();
}

/**
 * The shortest decimal number that identifies c × 2^q among numbers of its precision; the nearest one of them.
 * `(q, c, isLower, at)`; `isLower`: c is the smallest of its precision, so that the next number below is nearer.
 * @see Raffaello Giulietti, The Schubfach way to render doubles, 2020
 */
function decimalFunction(module: Module, table: number, scaled: number): number {
  const { code, index } = module.function(["i32", "i64", "i32", "i32"], ["i32"]);
  const [q, c, isLower, at] = [0, 1, 2, 3];
  const k = code.local("i32"), factor = code.local("i32"), shift = code.local("i64"), odd = code.local("i64");
  const value = code.local("i64"), lower = code.local("i64"), upper = code.local("i64");
  const s = code.local("i64"), t = code.local("i64"), below = code.local("i32");
  const x = code.local("i64"), exponent = code.local("i64");
  // log10(2^q), of three quarters of it if the next number below is nearer; rounded down.
  code.get(q).op("i64.extend_i32_s").i64(661_971_961_083n).op("i64.mul");
  code.i64(-274_743_187_321n).i64(0n).get(isLower).op("select").op("i64.add");
  code.i64(41n).op("i64.shr_s").op("i32.wrap_i64").tee(k);
  code.i32(POWER_MIN).op("i32.lt_s").get(k).i32(POWER_MAX).op("i32.gt_s").op("i32.or").if(() =>
    code.i32(NOT_WRITTEN).return()
  );
  code.get(k).i32(POWER_MIN).op("i32.sub").i32(4).op("i32.shl").i32(table).op("i32.add").set(factor);
  // 4c × 2^(q + floor(log2(10^-k)) + 2)
  code.i32(0).get(k).op("i32.sub").op("i64.extend_i32_s").i64(913_124_641_741n).op("i64.mul").i64(38n).op("i64.shr_s");
  code.get(q).op("i64.extend_i32_s").op("i64.add").i64(2n).op("i64.add").set(shift);
  code.get(c).i64(2n).op("i64.shl").get(shift).op("i64.shl").set(x);
  const products = new RoundedProducts(code, factor, x);
  products.put();
  code.set(value);
  // Half of the distance to the next numbers: 2 × 2^shift, or the half of that.
  code.get(shift).i64(1n).op("i64.add").set(exponent);
  products.put({ sign: "add", exponent });
  code.set(upper);
  code.get(exponent).get(isLower).op("i64.extend_i32_u").op("i64.sub").set(exponent);
  products.put({ sign: "sub", exponent });
  code.set(lower);
  // Ends of the interval belong to even numbers: with 4 × a decimal, lower + odd <= 4d and 4d + odd <= upper.
  code.get(c).i64(1n).op("i64.and").set(odd);
  const isAbove = (local: number) =>
    code.get(lower).get(odd).op("i64.add").get(local).i64(2n).op("i64.shl").op("i64.le_s");
  const isBelow = (local: number) =>
    code.get(local).i64(2n).op("i64.shl").get(odd).op("i64.add").get(upper).op("i64.le_s");
  const found = (local: () => void) => {
    local();
    code.get(k).get(at).call(scaled).return();
  };
  const decide = () => {
    isAbove(s).tee(below);
    isBelow(t).op("i32.ne").if(() => found(() => code.get(s).get(t).get(below).op("select")));
  };
  code.get(value).i64(2n).op("i64.shr_u").i64(10n).op("i64.div_u").i64(10n).op("i64.mul").tee(s);
  code.i64(10n).op("i64.add").set(t);
  code.get(value).i64(400n).op("i64.ge_s").if(decide);
  code.get(value).i64(2n).op("i64.shr_u").tee(s).i64(1n).op("i64.add").set(t);
  decide();
  // Both or none are in it: the nearer one, or the even one.
  code.get(value).get(s).get(t).op("i64.add").i64(1n).op("i64.shl").op("i64.sub").tee(value).i64(0n).op("i64.lt_s");
  code.get(value).op("i64.eqz").get(s).i64(1n).op("i64.and").op("i64.eqz").op("i32.and").op("i32.or").set(below);
  code.get(s).get(t).get(below).op("select").get(k).get(at).call(scaled);
  return index;
}

/**
 * Emits g x / 2^127, for a g of 126 bits, for x and for numbers that are a power of two above and below it. Two products of 64 × 64 bits are
 * enough, because g times the power is a shift. They are in place, as calls would take as long.
 */
class RoundedProducts {
  private readonly high: Product;
  private readonly low: Product;

  /** @param g address of g >> 63 and g & 2^63 - 1 */
  constructor(private readonly code: Code, g: number, x: number) {
    this.high = new Product(code, () => code.get(g).memory("i64.load"), x);
    this.low = new Product(code, () => code.get(g).memory("i64.load", 8), x);
  }

  /** Leaves the quotient of x, or of x + 2^exponent or x - 2^exponent, on the stack; the lowest bit is set if it is not exact. */
  put(difference?: { sign: "add" | "sub"; exponent: number }): void {
    const { code, high, low } = this, z = code.local("i64"), mask = (1n << 63n) - 1n;
    const [highUpper, highLower] = difference === undefined ? [high.upper, high.lower] : high.moved(difference);
    const [lowUpper] = difference === undefined ? [low.upper] : low.moved(difference);
    code.get(highLower).i64(1n).op("i64.shr_u").get(lowUpper).op("i64.add").set(z);
    code.get(highUpper).get(z).i64(63n).op("i64.shr_u").op("i64.add");
    code.get(z).i64(mask).op("i64.and").i64(mask).op("i64.add").i64(63n).op("i64.shr_u").op("i64.or");
  }
}

/** Emits a product of 64 × 64 bits, in two locals. */
class Product {
  readonly upper: number;
  readonly lower: number;
  private readonly g: number;

  constructor(private readonly code: Code, g: () => Code, x: number) {
    const local = () => code.local("i64");
    const [gHigh, gLow, middle, other] = [local(), local(), local(), local()];
    this.g = local();
    this.upper = local();
    this.lower = local();
    const low = (of: number) => code.get(of).i64(0xffffffffn).op("i64.and");
    const high = (of: number) => code.get(of).i64(32n).op("i64.shr_u");
    g().set(this.g);
    high(this.g).set(gHigh);
    low(this.g).set(gLow);
    code.get(gLow);
    low(x).op("i64.mul").i64(32n).op("i64.shr_u").get(gHigh);
    low(x).op("i64.mul").op("i64.add").set(middle);
    code.get(gLow);
    high(x).op("i64.mul");
    low(middle).op("i64.add").set(other);
    code.get(gHigh);
    high(x).op("i64.mul");
    high(middle).op("i64.add");
    high(other).op("i64.add").set(this.upper);
    code.get(this.g).get(x).op("i64.mul").set(this.lower);
  }

  /** The product of x ± 2^exponent, as new locals. The exponent is a local of 1 to 63. */
  moved({ sign, exponent }: { sign: "add" | "sub"; exponent: number }): [upper: number, lower: number] {
    const { code, g } = this, upper = code.local("i64"), lower = code.local("i64"), shifted = code.local("i64");
    code.get(g).get(exponent).op("i64.shl").set(shifted);
    code.get(this.lower).get(shifted).op(`i64.${sign}`).set(lower);
    code.get(this.upper).get(g).i64(64n).get(exponent).op("i64.sub").op("i64.shr_u").op(`i64.${sign}`);
    // The carry, or what is borrowed.
    if (sign === "add") code.get(lower).get(shifted);
    else code.get(this.lower).get(shifted);
    code.op("i64.lt_u").op("i64.extend_i32_u").op(`i64.${sign}`).set(upper);
    return [upper, lower];
  }
}

/** (s below 10^17, k, at): s × 10^k without zeros at its end; plain from 0.001 to below 10^7, otherwise as 1.0E7. */
function scaledFunction(module: Module): number {
  const { code, index } = module.function(["i64", "i32", "i32"], ["i32"]);
  const digits = new Digits(code);
  const [s, k, at] = [0, 1, 2];
  const count = code.local("i32"), point = code.local("i32"), rest = code.local("i64"), skipped = code.local("i64");
  // Digits as numbers, the first one in the lowest byte: 1 + 8 + 8, then those from the first one on that is not zero.
  const [top, middle, low] = [code.local("i64"), code.local("i64"), code.local("i64")];
  const [first, second, third] = [code.local("i64"), code.local("i64"), code.local("i64")];
  const isZero = (word: number) => code.get(word).op("i64.eqz");
  const bytes = (bits: () => void) => {
    bits();
    code.i64(3n).op("i64.shr_u").op("i32.wrap_i64");
  };
  code.get(s).i64(10n ** 16n).op("i64.div_u").tee(top).i64(10n ** 16n).op("i64.mul").set(rest);
  code.get(s).get(rest).op("i64.sub").tee(s).i64(10n ** 8n).op("i64.div_u").tee(rest).op("i32.wrap_i64");
  digits.all().set(middle);
  code.get(s).get(rest).i64(10n ** 8n).op("i64.mul").op("i64.sub").op("i32.wrap_i64");
  digits.all().set(low);
  // The point is behind that many digits.
  isZero(top).if(() => {
    code.i32(16).set(point);
    isZero(middle).if(() => {
      code.get(low).set(middle).i64(0n).set(low);
      code.i32(8).set(point);
    });
    code.get(middle).op("i64.ctz").i64(-8n).op("i64.and").set(skipped);
    code.get(middle).get(skipped).op("i64.shr_u");
    code.get(low).i64(56n).get(skipped).op("i64.sub").op("i64.shl").i64(8n).op("i64.shl").op("i64.or").set(first);
    code.get(low).get(skipped).op("i64.shr_u").set(second);
    code.get(point);
    bytes(() => code.get(skipped));
    code.op("i32.sub").set(point);
  }, () => {
    code.i32(17).set(point);
    code.get(middle).i64(8n).op("i64.shl").get(top).op("i64.or").set(first);
    code.get(low).i64(8n).op("i64.shl").get(middle).i64(56n).op("i64.shr_u").op("i64.or").set(second);
    code.get(low).i64(56n).op("i64.shr_u").set(third);
  });
  code.get(point).get(k).op("i32.add").set(point);
  // Digits up to the last one that is not zero.
  const putCount = (before: number, word: number) => {
    code.i32(before + 8);
    bytes(() => code.get(word).op("i64.clz"));
    code.op("i32.sub");
  };
  isZero(second).if(() => putCount(0, first), () => putCount(8, second), "i32");
  code.i32(17);
  isZero(third).op("select").set(count);
  const put = (offset: number, word: () => void) => {
    code.get(at);
    word();
    code.i64(ZEROS).op("i64.or").memory("i64.store", offset);
  };
  /** Writes the 16 digits behind the first ones, whose bits are in `skipped`: 8 to 56. */
  const putBehind = (offset: number) => {
    const part = (word: number, next: number) => () => {
      code.get(word).get(skipped).op("i64.shr_u");
      code.get(next).i64(64n).get(skipped).op("i64.sub").op("i64.shl").op("i64.or");
    };
    put(offset, part(first, second));
    put(offset + 8, part(second, third));
  };
  const atLeastOne = (emit: () => void) => {
    emit();
    code.set(count);
    code.get(count).i32(1).get(count).i32(1).op("i32.gt_s").op("select");
  };
  code.get(point).i32(-3).op("i32.gt_s").get(point).i32(8).op("i32.lt_s").op("i32.and").if(() => {
    code.get(point).i32(0).op("i32.le_s").if(() => {
      code.get(at).i64(ZEROS & ~0xff00n | BigInt(POINT << 8)).memory("i64.store");
      code.get(at).i32(2).op("i32.add").get(point).op("i32.sub").set(at);
      for (const [k, word] of [first, second, third].entries()) put(8 * k, () => code.get(word));
      code.get(at).get(count).op("i32.add").return();
    });
    put(0, () => code.get(first));
    code.get(at).get(point).op("i32.add").tee(at).i32(POINT).memory("i32.store8");
    code.get(point).op("i64.extend_i32_u").i64(3n).op("i64.shl").set(skipped);
    putBehind(1);
    code.get(at).i32(1).op("i32.add");
    atLeastOne(() => code.get(count).get(point).op("i32.sub"));
    code.op("i32.add").return();
  });
  put(0, () => code.get(first));
  code.get(at).i32(POINT).memory("i32.store8", 1).i64(8n).set(skipped);
  putBehind(2);
  code.get(at).i32(2).op("i32.add");
  atLeastOne(() => code.get(count).i32(1).op("i32.sub"));
  code.op("i32.add").tee(at).i32(LETTER_E).memory("i32.store8");
  code.get(at).i32(1).op("i32.add").set(at);
  code.get(point).i32(1).op("i32.sub").tee(point).i32(0).op("i32.lt_s").if(() => {
    putByte(code, at, MINUS);
    code.i32(0).get(point).op("i32.sub").set(point);
  });
  code.get(point);
  digits.put(at);
  code.get(at);
  return index;
}
