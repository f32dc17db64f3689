/**
 * Kernels over columns of DECIMAL and of integers. BigInts take 50 to 300 ns a row.
 *
 * They process the rows from … to-1. Those that return a row stop at one that they cannot process, such as one whose result does not fit.
 */
import { NULL_I32, NULL_I64 } from "../../types/mod.ts";
import type { Code, ValueType } from "../../wasm/assembler.ts";
import { eachRow, kernelOf } from "./column-kernels.ts";

/** Of values of 64 and 128 bits. */
export type Words = 1 | 2;
export type WideOperation = "+" | "-" | "*" | "=" | "<" | "<=";
/** The operand that is multiplied by a power of ten. */
export type Scaled = "a" | "b" | undefined;

/**
 * `low`, `high`: the power of ten, in two words. Sums and differences have two words, products four, comparisons are bytes. Scaled operands and
 * results fit two words.
 */
export type WideKernel = (
  a: number,
  b: number,
  out: number,
  from: number,
  to: number,
  low: bigint,
  high: bigint,
) => void;

/**
 * Operands have 64 bits. Each is multiplied by a power of ten before, and stops the kernel from `limitA` or `limitB` on, of either sign, below which
 * the products fit 63 bits. Division by zero stops it, too. Quotients have four words.
 */
export type NarrowKernel = (
  a: number,
  b: number,
  out: number,
  from: number,
  to: number,
  powerA: bigint,
  limitA: bigint,
  powerB: bigint,
  limitB: bigint,
) => number;

export type IntegerForm = "i8" | "i16" | "i32" | "i64";
/** "exact" stops at a remainder. */
export type Change = "multiplied" | "divided" | "exact";

/**
 * Multiplies or divides by a power of ten. `limit`: of the value or of the quotient, of either sign.
 */
export type ConversionKernel = (
  column: number,
  out: number,
  from: number,
  to: number,
  power: bigint,
  limit: bigint,
) => number;

/** A value in two locals. */
interface Wide {
  low: number;
  high: number;
}

const wide = (code: Code): Wide => ({ low: code.local("i64"), high: code.local("i64") });

/** Loads a value, and sets `none` if it is NULL. */
function load(code: Code, address: number, words: Words, { low, high }: Wide, none: number): void {
  code.get(address).memory("i64.load").tee(low).i64(NULL_I64).op("i64.eq");
  if (words === 1) code.set(none).get(low).i64(63n).op("i64.shr_s").set(high);
  else code.get(address).memory("i64.load", 8).tee(high).i64(NULL_I64).op("i64.eq").op("i32.and").set(none);
}

/** Pushes the upper half of the product of two unsigned words. `locals`: three. */
function upperProduct(code: Code, a: number, b: number, [upper, lower, middle]: readonly number[]): void {
  const half = (word: number, k: number) =>
    k === 0 ? code.get(word).i64(0xffffffffn).op("i64.and") : code.get(word).i64(32n).op("i64.shr_u");
  const product = (ofA: number, ofB: number) => {
    half(a, ofA);
    half(b, ofB);
    code.op("i64.mul");
  };
  product(1, 0);
  product(0, 0);
  code.i64(32n).op("i64.shr_u").op("i64.add").set(upper!);
  product(0, 1);
  half(upper!, 0).op("i64.add").set(lower!);
  product(1, 1);
  half(upper!, 1).op("i64.add").set(middle!);
  code.get(middle!);
  half(lower!, 1).op("i64.add");
}

/** Multiplies by `power`, modulo 2^128. */
function multiply(code: Code, { low, high }: Wide, power: Wide, locals: readonly number[]): void {
  upperProduct(code, low, power.low, locals);
  code.get(low).get(power.high).op("i64.mul").op("i64.add");
  code.get(high).get(power.low).op("i64.mul").op("i64.add").set(high);
  code.get(low).get(power.low).op("i64.mul").set(low);
}

function storeNull(code: Code, address: number, words: number): void {
  for (let word = 0; word < words; word++) code.get(address).i64(NULL_I64).memory("i64.store", 8 * word);
}

/** Stores the sign of a word in all bits of the words `from` … `words - 1`. */
function storeSign(code: Code, address: number, value: number, from: number, words: number): void {
  for (let word = from; word < words; word++) {
    code.get(address).get(value).i64(63n).op("i64.shr_s").memory("i64.store", 8 * word);
  }
}

export function wideKernel(
  memory: WebAssembly.Memory,
  operation: WideOperation,
  wordsA: Words,
  wordsB: Words,
  scaled: Scaled,
): WideKernel {
  const name = `${operation} ${wordsA} ${wordsB} ${scaled}`;
  return kernelOf(memory, name, ["i32", "i32", "i32", "i32", "i32", "i64", "i64"], [], (code) => {
    const [a, b, out, row, to, powerLow, powerHigh] = [0, 1, 2, 3, 4, 5, 6] as const;
    const isComparison = operation === "=" || operation === "<" || operation === "<=";
    const words = operation === "*" ? 4 : 2;
    const x = wide(code), y = wide(code), noneX = code.local("i32"), noneY = code.local("i32");
    const locals = Array.from({ length: 10 }, () => code.local("i64"));
    const columns = [
      { base: a, width: 8 * wordsA },
      { base: b, width: 8 * wordsB },
      { base: out, width: isComparison ? 1 : 8 * words },
    ];
    eachRow(code, columns, row, to, () => {
      load(code, a, wordsA, x, noneX);
      load(code, b, wordsB, y, noneY);
      if (scaled !== undefined) multiply(code, scaled === "a" ? x : y, { low: powerLow, high: powerHigh }, locals);
      if (isComparison) {
        code.get(out);
        compare(code, operation, x, y, noneX, noneY);
        code.memory("i32.store8");
        return;
      }
      code.get(noneX).get(noneY).op("i32.or").if(() => storeNull(code, out, words), () => {
        if (operation === "*" && wordsA + wordsB === 2) shortProduct(code, out, x, y, locals);
        else if (operation === "*") longProduct(code, out, x, y, locals);
        else sum(code, operation, out, x, y);
      });
    });
  });
}

/** Pushes the result. NULL equals NULL, and is neither less nor greater than a value. */
function compare(code: Code, operation: "=" | "<" | "<=", x: Wide, y: Wide, noneX: number, noneY: number): void {
  if (operation === "<") code.i32(0);
  else code.get(noneX).get(noneY).op("i32.and");
  if (operation === "=") code.get(x.low).get(y.low).op("i64.eq").get(x.high).get(y.high).op("i64.eq").op("i32.and");
  else {
    code.get(x.low).get(y.low).op(operation === "<" ? "i64.lt_u" : "i64.le_u");
    code.get(x.high).get(y.high).op("i64.lt_s");
    code.get(x.high).get(y.high).op("i64.eq").op("select");
  }
  code.get(noneX).get(noneY).op("i32.or").op("select");
}

function sum(code: Code, operation: "+" | "-", out: number, x: Wide, y: Wide): void {
  const plus = operation === "+";
  code.get(out).get(x.high).get(y.high).op(plus ? "i64.add" : "i64.sub");
  // The carry.
  if (plus) code.get(x.low).get(y.low).op("i64.add").get(x.low).op("i64.lt_u");
  else code.get(x.low).get(y.low).op("i64.lt_u");
  code.op("i64.extend_i32_u").op(plus ? "i64.add" : "i64.sub").memory("i64.store", 8);
  code.get(out).get(x.low).get(y.low).op(plus ? "i64.add" : "i64.sub").memory("i64.store");
}

/** The product of two signed words in `high`, and on the stack its lower half. */
function signedProduct(code: Code, x: Wide, y: Wide, high: number, locals: readonly number[]): void {
  upperProduct(code, x.low, y.low, locals);
  code.get(x.high).get(y.low).op("i64.and").op("i64.sub");
  code.get(y.high).get(x.low).op("i64.and").op("i64.sub").set(high);
  code.get(x.low).get(y.low).op("i64.mul");
}

function shortProduct(code: Code, out: number, x: Wide, y: Wide, locals: readonly number[]): void {
  const [high] = locals as [number];
  code.get(out);
  signedProduct(code, x, y, high, locals);
  code.memory("i64.store");
  code.get(out).get(high).memory("i64.store", 8);
  storeSign(code, out, high, 2, 4);
}

/** Of magnitudes, then with its sign. `locals`: ten. */
function longProduct(code: Code, out: number, x: Wide, y: Wide, locals: readonly number[]): void {
  const [p0, p1, p2, p3, part, sign, borrow] = locals.slice(3) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const magnitude = ({ low, high }: Wide) => {
    code.get(high).i64(0n).op("i64.lt_s").if(() => {
      code.i64(0n).get(high).op("i64.sub").get(low).i64(0n).op("i64.ne").op("i64.extend_i32_u").op("i64.sub").set(high);
      code.i64(0n).get(low).op("i64.sub").set(low);
    });
  };
  code.get(x.high).get(y.high).op("i64.xor").set(sign);
  magnitude(x);
  magnitude(y);
  code.get(x.low).get(y.low).op("i64.mul").set(p0);
  upperProduct(code, x.low, y.low, locals);
  code.set(p1);
  code.get(x.high).get(y.high).op("i64.mul").set(p2);
  upperProduct(code, x.high, y.high, locals);
  code.set(p3);
  /** Adds the word on the stack, and pushes the carry. */
  const add = (to: number) => {
    code.set(part).get(to).get(part).op("i64.add").tee(to).get(part).op("i64.lt_u").op("i64.extend_i32_u");
  };
  for (const [u, v] of [[x.low, y.high], [x.high, y.low]] as const) {
    code.get(u).get(v).op("i64.mul");
    add(p1);
    // An upper half is never all ones, so the carry can be added to it.
    upperProduct(code, u, v, locals);
    code.op("i64.add");
    add(p2);
    code.get(p3).op("i64.add").set(p3);
  }
  code.get(sign).i64(0n).op("i64.lt_s").if(() => {
    // Minus one, then all bits inverted.
    code.i64(1n).set(borrow);
    for (const word of [p0, p1, p2, p3]) {
      code.get(word).get(borrow).op("i64.sub").i64(-1n).op("i64.xor");
      code.get(borrow).get(word).op("i64.eqz").op("i64.extend_i32_u").op("i64.and").set(borrow).set(word);
    }
  });
  [p0, p1, p2, p3].forEach((word, k) => code.get(out).get(word).memory("i64.store", 8 * k));
}

/** Pushes whether the value is at least the limit, of either sign. */
function isBeyond(code: Code, value: number, limit: number): void {
  code.get(value).get(limit).op("i64.ge_s");
  code.get(value).i64(0n).get(limit).op("i64.sub").op("i64.le_s").op("i32.or");
}

/** `words`: of the result. */
export function narrowKernel(memory: WebAssembly.Memory, operation: "/" | "%", words: Words | 4): NarrowKernel {
  const parameters: ValueType[] = ["i32", "i32", "i32", "i32", "i32", "i64", "i64", "i64", "i64"];
  return kernelOf(memory, `${operation} ${words}`, parameters, ["i32"], (code) => {
    const [a, b, out, row, to, powerA, limitA, powerB, limitB] = [0, 1, 2, 3, 4, 5, 6, 7, 8] as const;
    const x = code.local("i64"), y = code.local("i64"), rest = code.local("i64"), sign = code.local("i64");
    const columns = [{ base: a, width: 8 }, { base: b, width: 8 }, { base: out, width: 8 * words }];
    const stop = () => code.get(row).return();
    const magnitude = (value: number) => {
      code.get(value).i64(0n).op("i64.lt_s").if(() => code.i64(0n).get(value).op("i64.sub").set(value));
    };
    eachRow(code, columns, row, to, () => {
      code.get(a).memory("i64.load").tee(x).i64(NULL_I64).op("i64.eq");
      code.get(b).memory("i64.load").tee(y).i64(NULL_I64).op("i64.eq").op("i32.or").if(
        () => storeNull(code, out, words),
        () => {
          isBeyond(code, x, limitA);
          isBeyond(code, y, limitB);
          code.op("i32.or").get(y).op("i64.eqz").op("i32.or").if(stop);
          code.get(x).get(powerA).op("i64.mul").set(x);
          code.get(y).get(powerB).op("i64.mul").set(y);
          if (operation === "%") code.get(x).get(y).op("i64.rem_s").set(x);
          else {
            code.get(x).get(y).op("i64.xor").set(sign);
            magnitude(x);
            magnitude(y);
            // Halves are rounded to the even digit.
            code.get(x).get(y).op("i64.rem_u").i64(1n).op("i64.shl").set(rest);
            code.get(x).get(y).op("i64.div_u").set(x);
            code.get(rest).get(y).op("i64.gt_u");
            code.get(rest).get(y).op("i64.eq").get(x).op("i32.wrap_i64").op("i32.and").op("i32.or");
            code.op("i64.extend_i32_u").get(x).op("i64.add").set(x);
            code.get(sign).i64(0n).op("i64.lt_s").if(() => code.i64(0n).get(x).op("i64.sub").set(x));
          }
          code.get(out).get(x).memory("i64.store");
          storeSign(code, out, x, 1, words);
        },
      );
    });
    code.get(to);
  });
}

const WIDTH: Record<IntegerForm, number> = { i8: 1, i16: 2, i32: 4, i64: 8 };
const LOAD: Record<IntegerForm, string> = {
  i8: "i64.load8_s",
  i16: "i64.load16_s",
  i32: "i64.load32_s",
  i64: "i64.load",
};
const STORE: Record<IntegerForm, string> = {
  i8: "i64.store8",
  i16: "i64.store16",
  i32: "i64.store32",
  i64: "i64.store",
};
const NONE: Record<IntegerForm, bigint | undefined> = {
  i8: undefined,
  i16: undefined,
  i32: BigInt(NULL_I32),
  i64: NULL_I64,
};

/** A result of two words is only "multiplied". */
export function conversionKernel(
  memory: WebAssembly.Memory,
  from: IntegerForm,
  to: IntegerForm | "i128",
  change: Change,
): ConversionKernel {
  const parameters: ValueType[] = ["i32", "i32", "i32", "i32", "i64", "i64"];
  return kernelOf(memory, `${from} ${change} ${to}`, parameters, ["i32"], (code) => {
    const [column, out, row, end, power, limit] = [0, 1, 2, 3, 4, 5] as const;
    const x = wide(code), y = wide(code), locals = Array.from({ length: 4 }, () => code.local("i64"));
    const none = NONE[from], isWide = to === "i128";
    const columns = [{ base: column, width: WIDTH[from] }, { base: out, width: isWide ? 16 : WIDTH[to] }];
    const stop = () => code.get(row).return();
    const value = () => {
      if (change === "exact") code.get(x.low).get(power).op("i64.rem_s").i64(0n).op("i64.ne").if(stop);
      if (change !== "multiplied") code.get(x.low).get(power).op("i64.div_s").set(x.low);
      isBeyond(code, x.low, limit);
      code.if(stop);
      if (isWide) {
        code.get(x.low).i64(63n).op("i64.shr_s").set(x.high).get(power).set(y.low);
        code.get(out);
        signedProduct(code, x, y, locals[3]!, locals);
        code.memory("i64.store").get(out).get(locals[3]!).memory("i64.store", 8);
        return;
      }
      code.get(out).get(x.low);
      if (change === "multiplied") code.get(power).op("i64.mul");
      code.memory(STORE[to]);
    };
    eachRow(code, columns, row, end, () => {
      code.get(column).memory(LOAD[from]).set(x.low);
      if (none === undefined) return value();
      code.get(x.low).i64(none).op("i64.eq").if(() => {
        if (isWide) storeNull(code, out, 2);
        else code.get(out).i64(NONE[to] ?? 0n).memory(STORE[to]);
      }, value);
    });
    code.get(end);
  });
}
