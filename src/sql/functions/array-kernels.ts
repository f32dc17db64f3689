/**
 * Kernels over the arrays of a column: pairs of address and size, the size negative for NULL. `types/array-text.ts` describes their bytes.
 * JavaScript takes 20 to 100 ns for each array.
 *
 * They process the rows from … to-1 and return `to`, or the first row that is left to JavaScript. Those that make arrays write them from `at` on,
 * where as many bytes are free as the arrays of the argument have. Elements that are not finite become NULL.
 */
import { NULL_I32, NULL_I64 } from "../../types/mod.ts";
import type { Code, ValueType } from "../../wasm/assembler.ts";
import { eachRow, kernelOf, storeNone } from "./column-kernels.ts";
import { DOUBLE_TOLERANCE } from "./nodes.ts";

type Memory = WebAssembly.Memory;

/** Addresses of an array that was opened: its first byte, its first element, its end. */
interface Opened {
  head: number;
  at: number;
  end: number;
}

const opened = (code: Code): Opened => ({ head: code.local("i32"), at: code.local("i32"), end: code.local("i32") });

/** Opens the array of a pair. */
function open(code: Code, pair: number, { head, at, end }: Opened, present: () => void, none: () => void): void {
  code.get(pair).memory("i32.load", 4).tee(end).i32(0).op("i32.lt_s").if(none, () => {
    code.get(pair).memory("i32.load").tee(head).get(end).op("i32.add").set(end);
    code.get(head).get(head).memory("i32.load").i32(2).op("i32.shl").op("i32.add").i32(4).op("i32.add").set(at);
    present();
  });
}

/** Opens the arrays of two pairs. */
function openBoth(
  code: Code,
  pairs: readonly [number, number],
  arrays: readonly [Opened, Opened],
  present: () => void,
  none: () => void,
): void {
  open(code, pairs[0], arrays[0], () => open(code, pairs[1], arrays[1], present, none), none);
}

/** Calls `body` while `at`, which moves by the width, is below `end`. */
function upTo(code: Code, at: number, end: number, width: number, body: () => void): void {
  code.block((done) =>
    code.loop((again) => {
      code.get(at).get(end).op("i32.ge_u").brIf(done);
      body();
      code.get(at).i32(width).op("i32.add").set(at).br(again);
    })
  );
}

/** Calls `body` for the elements that are left, with the element in `value`. */
function eachElement(code: Code, { at, end }: Opened, value: number, body: () => void): void {
  upTo(code, at, end, 8, () => {
    code.get(at).memory("f64.load").set(value);
    body();
  });
}

const isNumber = (code: Code, value: number) => code.get(value).get(value).op("f64.eq");

/** Pushes the value, or NaN if it is not finite. */
function finite(code: Code, value: number): void {
  code.get(value).f64(NaN).get(value).get(value).op("f64.sub").f64(0).op("f64.eq").op("select");
}

/** Makes the kernel stop at this row unless both arrays have the same shape. */
function stopUnlessSameShape(code: Code, row: number, [a, b]: readonly [Opened, Opened]): void {
  const word = code.local("i32"), other = code.local("i32");
  code.get(a.at).get(a.head).op("i32.sub").get(b.at).get(b.head).op("i32.sub").op("i32.ne");
  code.get(a.end).get(a.head).op("i32.sub").get(b.end).get(b.head).op("i32.sub").op("i32.ne").op("i32.or").if(() =>
    code.get(row).return()
  );
  code.get(a.head).set(word).get(b.head).set(other);
  upTo(code, word, a.at, 4, () => {
    code.get(word).memory("i32.load").get(other).memory("i32.load").op("i32.ne").if(() => code.get(row).return());
    code.get(other).i32(4).op("i32.add").set(other);
  });
}

/** Makes the kernel stop at this row unless the array has so many dimensions. */
function stopUnlessDimensions(code: Code, row: number, { head }: Opened, dimensions: number): void {
  code.get(head).memory("i32.load").i32(dimensions).op("i32.ne").if(() => code.get(row).return());
}

// Arrays to numbers

export type Reduction = "sum" | "avg" | "min" | "max" | "count";
const INITIAL: Record<Reduction, number> = { sum: 0, avg: 0, min: Infinity, max: -Infinity, count: 0 };
/** (pairs, from, to, out) */
export type ReductionKernel = (pairs: number, from: number, to: number, out: number) => number;

/** Of the elements that are not null. */
export function reductionKernel(memory: Memory, kind: Reduction): ReductionKernel {
  return kernelOf(memory, `array ${kind}`, ["i32", "i32", "i32", "i32"], ["i32"], (code) => {
    const [pairs, row, to, out] = [0, 1, 2, 3] as const, isCount = kind === "count";
    const array = opened(code), value = code.local("f64"), state = code.local("f64"), count = code.local("i32");
    eachRow(code, [{ base: pairs, width: 8 }, { base: out, width: isCount ? 4 : 8 }], row, to, () => {
      code.i32(0).set(count).f64(INITIAL[kind]).set(state);
      open(code, pairs, array, () =>
        eachElement(code, array, value, () => {
          isNumber(code, value).if(() => {
            code.get(count).i32(1).op("i32.add").set(count);
            if (isCount) return;
            code.get(state).get(value).op(kind === "min" || kind === "max" ? `f64.${kind}` : "f64.add").set(state);
          });
        }), () => {});
      code.get(out);
      if (isCount) {
        code.get(count).memory("i32.store");
        return;
      }
      code.get(state);
      if (kind === "avg") code.get(count).op("f64.convert_i32_s").op("f64.div");
      code.f64(NaN).get(count).op("select").memory("f64.store");
    });
    code.get(to);
  });
}

/** (pairs, from, to, out, dimension): the length of a dimension, counted from 1; 0 if the array is NULL or has none. */
export type LengthKernel = (pairs: number, from: number, to: number, out: number, dimension: number) => number;

export function lengthKernel(memory: Memory): LengthKernel {
  return kernelOf(memory, "array length", ["i32", "i32", "i32", "i32", "i32"], ["i32"], (code) => {
    const [pairs, row, to, out, dimension] = [0, 1, 2, 3, 4] as const, array = opened(code);
    eachRow(code, [{ base: pairs, width: 8 }, { base: out, width: 4 }], row, to, () => {
      code.get(out).i32(0).memory("i32.store");
      open(code, pairs, array, () => {
        code.get(dimension).get(array.head).memory("i32.load").op("i32.le_u").if(() => {
          code.get(out).get(array.head).get(dimension).i32(2).op("i32.shl").op("i32.add").memory("i32.load");
          code.memory("i32.store");
        });
      }, () => {});
    });
    code.get(to);
  });
}

/** (pairs, wanted, from, to, out, before) */
export type SearchKernel = (
  pairs: number,
  wanted: number,
  from: number,
  to: number,
  out: number,
  before: number,
) => number;

/**
 * "position": of the first element that equals the value of the row, counted from 1, or NULL. "insertion": where the value belongs in an ascending
 * or descending array, behind equal elements, or before them if `before` is 1.
 */
export function searchKernel(memory: Memory, kind: "position" | "insertion"): SearchKernel {
  return kernelOf(memory, `array ${kind}`, ["i32", "i32", "i32", "i32", "i32", "i32"], ["i32"], (code) => {
    const [pairs, wanted, row, to, out, before] = [0, 1, 2, 3, 4, 5] as const, array = opened(code);
    const value = code.local("f64"), sought = code.local("f64"), place = code.local("i32"), first = code.local("i32");
    const isAscending = code.local("i32");
    const equals = () => code.get(value).get(sought).op("f64.sub").op("f64.abs").f64(DOUBLE_TOLERANCE).op("f64.le");
    const columns = [{ base: pairs, width: 8 }, { base: wanted, width: 8 }, { base: out, width: 4 }];
    /** Pushes whether `value` is the one. */
    const position = () => {
      equals();
      isNumber(code, value).op("i32.eqz");
      isNumber(code, sought).op("i32.eqz").op("i32.and").op("i32.or");
    };
    const insertion = () => {
      code.get(before);
      code.get(value).get(sought).op("f64.gt").get(value).get(sought).op("f64.lt").get(isAscending).op("select");
      equals();
      code.op("select");
      // NULL belongs to the start.
      isNumber(code, sought).op("i32.eqz").op("i32.or");
    };
    eachRow(code, columns, row, to, () => {
      code.i32(NULL_I32).set(place);
      open(code, pairs, array, () => {
        code.get(wanted).memory("f64.load").set(sought).get(array.at).set(first);
        if (kind === "insertion") {
          code.get(array.end).get(array.at).op("i32.sub").i32(16).op("i32.lt_u").tee(isAscending).op("i32.eqz").if(() =>
            code.get(array.at).memory("f64.load").get(array.end).i32(8).op("i32.sub").memory("f64.load").op("f64.le")
              .set(isAscending)
          );
        }
        code.block((found) => {
          eachElement(code, array, value, () => {
            if (kind === "position") position();
            else insertion();
            code.if(() => {
              code.get(array.at).get(first).op("i32.sub").i32(3).op("i32.shr_u").i32(1).op("i32.add").set(place);
              code.br(found);
            });
          });
          if (kind === "position") return;
          code.get(array.end).get(first).op("i32.sub").i32(3).op("i32.shr_u").i32(1).op("i32.add").set(place);
        });
      }, () => {});
      code.get(out).get(place).memory("i32.store");
    });
    code.get(to);
  });
}

/** (size, volumes, prices, from, to, out): the average price of `size` for the levels of a book. */
export type BookKernel = (
  size: number,
  volumes: number,
  prices: number,
  from: number,
  to: number,
  out: number,
) => number;

export function bookKernel(memory: Memory): BookKernel {
  return kernelOf(memory, "array book", ["i32", "i32", "i32", "i32", "i32", "i32"], ["i32"], (code) => {
    const [size, volumes, prices, row, to, out] = [0, 1, 2, 3, 4, 5] as const;
    const a = opened(code), b = opened(code), rest = code.local("f64"), paid = code.local("f64");
    const taken = code.local("f64"), result = code.local("f64");
    const columns = [size, volumes, prices, out].map((base) => ({ base, width: 8 }));
    eachRow(code, columns, row, to, () => {
      code.f64(NaN).set(result);
      openBoth(code, [volumes, prices], [a, b], () => {
        code.get(a.end).get(a.at).op("i32.sub").get(b.end).get(b.at).op("i32.sub").op("i32.ne").if(() =>
          code.get(row).return()
        );
        code.get(size).memory("f64.load").tee(rest).f64(0).op("f64.eq").if(() => {
          code.get(b.at).get(b.end).op("i32.lt_u").if(() => code.get(b.at).memory("f64.load").set(result));
        }, () => {
          code.f64(0).set(paid);
          code.block((done) =>
            eachElement(code, a, taken, () => {
              code.get(taken).get(rest).op("f64.min").tee(taken).get(b.at).memory("f64.load").op("f64.mul");
              code.get(paid).op("f64.add").set(paid);
              code.get(rest).get(taken).op("f64.sub").tee(rest).f64(0).op("f64.le").if(() => {
                code.get(paid).get(size).memory("f64.load").op("f64.div").set(result).br(done);
              });
              code.get(b.at).i32(8).op("i32.add").set(b.at);
            })
          );
        });
      }, () => {});
      code.get(out).get(result).memory("f64.store");
    });
    code.get(to);
  });
}

/** What of two operands is an array. The other one is a DOUBLE. */
export type Form = "both" | "left" | "right";
export type Operation = "+" | "-" | "*" | "/";
const OPERATION: Record<Operation, string> = { "+": "f64.add", "-": "f64.sub", "*": "f64.mul", "/": "f64.div" };

/**
 * Opens the arrays of two operands, which have the same shape, or loads the number of one. `many` is an array. `operand`: pushes the present element
 * of an operand; `next`: to be called behind each element.
 */
class Operands {
  readonly many: Opened;
  private readonly a: Opened;
  private readonly b: Opened;
  readonly number: number;

  constructor(private readonly code: Code, private readonly form: Form) {
    this.a = opened(code);
    this.b = opened(code);
    this.many = form === "right" ? this.b : this.a;
    this.number = code.local("f64");
  }

  open(left: number, right: number, row: number, present: () => void, none: () => void): void {
    const { code, form, a, b } = this;
    if (form === "both") {
      openBoth(code, [left, right], [a, b], () => {
        stopUnlessSameShape(code, row, [a, b]);
        present();
      }, none);
    } else {
      code.get(form === "left" ? right : left).memory("f64.load").set(this.number);
      open(code, form === "left" ? left : right, this.many, present, none);
    }
  }

  operand(side: "left" | "right"): void {
    const { code, form } = this;
    if (form === "both" || form === side) code.get(side === "left" ? this.a.at : this.b.at).memory("f64.load");
    else code.get(this.number);
  }

  next(): void {
    if (this.form === "both") this.code.get(this.b.at).i32(8).op("i32.add").set(this.b.at);
  }
}

/** (a, b, from, to, out) */
export type DotKernel = (a: number, b: number, from: number, to: number, out: number) => number;

export function dotKernel(memory: Memory, form: Form): DotKernel {
  return kernelOf(memory, `array dot ${form}`, ["i32", "i32", "i32", "i32", "i32"], ["i32"], (code) => {
    const [left, right, row, to, out] = [0, 1, 2, 3, 4] as const, operands = new Operands(code, form);
    const { many } = operands, sum = code.local("f64"), value = code.local("f64");
    eachRow(code, [left, right, out].map((base) => ({ base, width: 8 })), row, to, () => {
      code.f64(form === "both" ? 0 : NaN).set(sum);
      const add = () => {
        code.f64(0).set(sum);
        upTo(code, many.at, many.end, 8, () => {
          operands.operand("left");
          operands.operand("right");
          code.op("f64.mul").set(value);
          isNumber(code, value).if(() => code.get(sum).get(value).op("f64.add").set(sum));
          operands.next();
        });
      };
      // A null number makes every product null.
      const present = () => form === "both" ? add() : isNumber(code, operands.number).if(add);
      operands.open(left, right, row, present, () => {});
      code.get(out).get(sum).memory("f64.store");
    });
    code.get(to);
  });
}

// Subscripts

/** Pushes the index from 0, as i64, of an element that is counted from 1, or from the end if it is negative. */
function place(code: Code, index: number, length: number): void {
  code.get(length).get(index).op("i64.add").get(index).i64(1n).op("i64.sub");
  code.get(index).i64(0n).op("i64.lt_s").op("select");
}

/** `of` × length of dimension k. */
function timesLength(code: Code, { head }: Opened, k: number, of: number, length: number): void {
  code.get(head).memory("i64.load32_u", 4 + 4 * k).tee(length).get(of).op("i64.mul").set(of);
}

/** (pairs, from, to, out, …indices): an element of an array with as many dimensions as indices, which are columns of LONG. */
export type ElementKernel = (pairs: number, from: number, to: number, out: number, ...indices: number[]) => number;

export function elementKernel(memory: Memory, dimensions: number): ElementKernel {
  const parameters = Array.from<unknown, ValueType>({ length: 4 + dimensions }, () => "i32");
  return kernelOf(memory, `array element ${dimensions}`, parameters, ["i32"], (code) => {
    const [pairs, row, to, out] = [0, 1, 2, 3] as const, indices = Array.from({ length: dimensions }, (_, k) => 4 + k);
    const array = opened(code), index = code.local("i64"), length = code.local("i64"), offset = code.local("i64");
    const result = code.local("f64");
    eachRow(code, [pairs, out, ...indices].map((base) => ({ base, width: 8 })), row, to, () => {
      code.f64(NaN).set(result);
      code.block((missing) =>
        open(code, pairs, array, () => {
          stopUnlessDimensions(code, row, array, dimensions);
          code.i64(0n).set(offset);
          indices.forEach((column, k) => {
            timesLength(code, array, k, offset, length);
            code.get(column).memory("i64.load").set(index);
            place(code, index, length);
            code.tee(index).get(length).op("i64.ge_u").brIf(missing);
            code.get(offset).get(index).op("i64.add").set(offset);
          });
          code.get(array.at).get(offset).op("i32.wrap_i64").i32(3).op("i32.shl").op("i32.add").memory("f64.load");
          code.set(result);
        }, () => {})
      );
      code.get(out).get(result).memory("f64.store");
    });
    code.get(to);
  });
}

/** The subscript behind the indices: none, `from:` or `from:to`. Dimensions without one are whole. */
export type SliceEnd = "whole" | "open" | "closed";
/** (pairs, from, to, out, at, …columns): `columns` are those of the indices, then of the ends of the slice. */
export type SliceKernel = (
  pairs: number,
  from: number,
  to: number,
  out: number,
  at: number,
  ...columns: number[]
) => number;

/** A part of an array of `dimensions` whose elements are side by side: one index for each of the first dimensions, then one slice. */
export function sliceKernel(memory: Memory, dimensions: number, indexCount: number, end: SliceEnd): SliceKernel {
  const numberCount = indexCount + { whole: 0, open: 1, closed: 2 }[end];
  const parameters = Array.from<unknown, ValueType>({ length: 5 + numberCount }, () => "i32");
  return kernelOf(memory, `array slice ${dimensions} ${indexCount} ${end}`, parameters, ["i32"], (code) => {
    const [pairs, row, to, out, at] = [0, 1, 2, 3, 4] as const;
    const columns = Array.from({ length: numberCount }, (_, k) => 5 + k), array = opened(code);
    const index = code.local("i64"), length = code.local("i64"), offset = code.local("i64"), count = code.local("i64");
    const last = code.local("i64"), kept = dimensions - indexCount;
    const load = (column: number | undefined) => code.get(column!).memory("i64.load").set(index);
    eachRow(code, [pairs, out, ...columns].map((base) => ({ base, width: 8 })), row, to, () => {
      storeNone(code, out);
      code.block((missing) =>
        open(code, pairs, array, () => {
          stopUnlessDimensions(code, row, array, dimensions);
          code.i64(0n).set(offset);
          for (let k = 0; k < indexCount; k++) {
            timesLength(code, array, k, offset, length);
            load(columns[k]);
            place(code, index, length);
            code.tee(index).get(length).op("i64.ge_u").brIf(missing);
            code.get(offset).get(index).op("i64.add").set(offset);
          }
          timesLength(code, array, indexCount, offset, length);
          code.get(length).set(count);
          if (end !== "whole") {
            const known = () => code.get(index).i64(NULL_I64).op("i64.eq").brIf(missing);
            if (end === "closed") {
              load(columns[indexCount + 1]);
              known();
              place(code, index, length);
              code.tee(last).get(length).get(last).get(length).op("i64.lt_s").op("select");
              // Far before the first element, the difference below would wrap around.
              code.tee(last).i64(0n).get(last).i64(0n).op("i64.gt_s").op("select").set(last);
            } else code.get(length).set(last);
            load(columns[indexCount]);
            known();
            place(code, index, length);
            code.tee(index).i64(0n).get(index).i64(0n).op("i64.gt_s").op("select").tee(index);
            code.get(offset).op("i64.add").set(offset);
            code.get(last).get(index).op("i64.sub").tee(count).i64(0n).get(count).i64(0n).op("i64.gt_s").op("select");
            code.set(count);
          }
          code.get(out).get(at).memory("i32.store");
          code.get(at).i32(kept).memory("i32.store").get(at).get(count).memory("i64.store32", 4);
          for (let k = 1; k < kept; k++) {
            timesLength(code, array, indexCount + k, offset, length);
            code.get(at).get(length).memory("i64.store32", 4 + 4 * k);
            code.get(count).get(length).op("i64.mul").set(count);
          }
          code.get(array.at).get(offset).op("i32.wrap_i64").i32(3).op("i32.shl").op("i32.add").tee(array.at);
          code.get(count).op("i32.wrap_i64").i32(3).op("i32.shl").op("i32.add").set(array.end);
          code.get(out).get(array.end).get(array.at).op("i32.sub").i32(4 + 4 * kept).op("i32.add");
          code.memory("i32.store", 4);
          code.get(at).i32(4 + 4 * kept).op("i32.add").set(at);
          upTo(code, array.at, array.end, 8, () => {
            code.get(at).get(array.at).memory("f64.load").memory("f64.store").get(at).i32(8).op("i32.add").set(at);
          });
        }, () => {})
      );
    });
    code.get(to);
  });
}

// Arrays to arrays

/** Begins a result with the shape of an array: sets the pair at `out`, and moves `at` to its first element. */
function beginSame(code: Code, out: number, at: number, array: Opened): void {
  const word = code.local("i32");
  code.get(out).get(at).memory("i32.store").get(out).get(array.end).get(array.head).op("i32.sub").memory(
    "i32.store",
    4,
  );
  code.get(array.head).set(word);
  upTo(code, word, array.at, 4, () => {
    code.get(at).get(word).memory("i32.load").memory("i32.store").get(at).i32(4).op("i32.add").set(at);
  });
}

/** (a, b, from, to, out, at) */
export type CombiningKernel = (a: number, b: number, from: number, to: number, out: number, at: number) => number;

export function combiningKernel(memory: Memory, operation: Operation, form: Form): CombiningKernel {
  const parameters: ValueType[] = ["i32", "i32", "i32", "i32", "i32", "i32"];
  return kernelOf(memory, `array ${operation} ${form}`, parameters, ["i32"], (code) => {
    const [left, right, row, to, out, at] = [0, 1, 2, 3, 4, 5] as const, operands = new Operands(code, form);
    const { many } = operands, value = code.local("f64");
    eachRow(
      code,
      [left, right, out].map((base) => ({ base, width: 8 })),
      row,
      to,
      () =>
        operands.open(left, right, row, () => {
          beginSame(code, out, at, many);
          upTo(code, many.at, many.end, 8, () => {
            operands.operand("left");
            operands.operand("right");
            code.op(OPERATION[operation]).set(value).get(at);
            finite(code, value);
            code.memory("f64.store").get(at).i32(8).op("i32.add").set(at);
            operands.next();
          });
        }, () => storeNone(code, out)),
    );
    code.get(to);
  });
}

export type Change = "negative" | "sums" | "reverse";
/** (pairs, from, to, out, at) */
export type ChangeKernel = (pairs: number, from: number, to: number, out: number, at: number) => number;

/** "sums": the sums up to each element, in one dimension; NULL if there are none. "reverse": of each run of the last dimension. */
export function changeKernel(memory: Memory, change: Change): ChangeKernel {
  return kernelOf(memory, `array ${change}`, ["i32", "i32", "i32", "i32", "i32"], ["i32"], (code) => {
    const [pairs, row, to, out, at] = [0, 1, 2, 3, 4] as const, array = opened(code);
    const value = code.local("f64"), sum = code.local("f64");
    const put = (result: number) => {
      code.get(at);
      finite(code, result);
      code.memory("f64.store").get(at).i32(8).op("i32.add").set(at);
    };
    const present = () => {
      if (change === "sums") {
        code.get(array.at).get(array.end).op("i32.ge_u").if(() => storeNone(code, out), () => {
          code.get(array.end).get(array.at).op("i32.sub").i32(3).op("i32.shr_u").set(array.head);
          code.get(out).get(at).memory("i32.store");
          code.get(out).get(array.head).i32(3).op("i32.shl").i32(8).op("i32.add").memory("i32.store", 4);
          code.get(at).i32(1).memory("i32.store").get(at).get(array.head).memory("i32.store", 4);
          code.get(at).i32(8).op("i32.add").set(at).f64(NaN).set(sum);
          eachElement(code, array, value, () => {
            isNumber(code, value).if(() => {
              code.get(sum).f64(0);
              isNumber(code, sum).op("select").get(value).op("f64.add").set(sum);
            });
            put(sum);
          });
        });
        return;
      }
      beginSame(code, out, at, array);
      if (change === "negative") {
        eachElement(code, array, value, () => {
          code.get(value).op("f64.neg").set(value);
          put(value);
        });
      } else {
        const from = code.local("i32");
        eachRun(code, array, () => {
          code.get(array.at).set(from);
          upTo(code, from, array.end, 8, () => {
            code.get(array.end).i32(8).op("i32.sub").get(from).op("i32.sub").get(array.at).op("i32.add");
            code.memory("f64.load").set(value);
            put(value);
          });
        });
      }
    };
    eachRow(
      code,
      [pairs, out].map((base) => ({ base, width: 8 })),
      row,
      to,
      () => open(code, pairs, array, present, () => storeNone(code, out)),
    );
    code.get(to);
  });
}

/** Calls `body` for each run of the last dimension, which is from `at` to `end`. */
function eachRun(code: Code, { at, end }: Opened, body: () => void): void {
  const last = code.local("i32"), size = code.local("i32");
  code.get(at).i32(4).op("i32.sub").memory("i32.load").i32(3).op("i32.shl").set(size).get(end).set(last);
  code.block((done) =>
    code.loop((again) => {
      code.get(at).get(last).op("i32.ge_u").brIf(done);
      code.get(at).get(size).op("i32.add").set(end);
      body();
      code.get(end).set(at).br(again);
    })
  );
}

/** (pairs, places, fill, from, to, out, at): `places` is a column of INT, `fill` one of DOUBLE. */
export type ShiftKernel = (
  pairs: number,
  places: number,
  fill: number,
  from: number,
  to: number,
  out: number,
  at: number,
) => number;

/** Moves the elements of each run to the right. `isFilled`: free places get the value of `fill`, which counts only then. */
export function shiftKernel(memory: Memory, isFilled: boolean): ShiftKernel {
  const parameters: ValueType[] = ["i32", "i32", "i32", "i32", "i32", "i32", "i32"];
  return kernelOf(memory, `array shift ${isFilled}`, parameters, ["i32"], (code) => {
    const [pairs, places, fill, row, to, out, at] = [0, 1, 2, 3, 4, 5, 6] as const, array = opened(code);
    const value = code.local("f64"), free = code.local("f64"), by = code.local("i32"), size = code.local("i32");
    const offset = code.local("i32"), most = code.local("i32");
    const wide = isFilled ? [pairs, out, fill] : [pairs, out];
    const columns = [{ base: places, width: 4 }, ...wide.map((base) => ({ base, width: 8 }))];
    eachRow(code, columns, row, to, () =>
      open(code, pairs, array, () => {
        beginSame(code, out, at, array);
        if (isFilled) code.get(fill).memory("f64.load").set(free);
        else code.f64(NaN).set(free);
        eachRun(code, array, () => {
          code.get(array.end).get(array.at).op("i32.sub").tee(size).i32(3).op("i32.shr_u").set(most);
          // As many places as there are elements, at most.
          code.get(places).memory("i32.load").tee(by).get(most).get(by).get(most).op("i32.lt_s").op("select").set(by);
          code.i32(0).get(most).op("i32.sub").tee(most).get(by).get(most).get(by).op("i32.gt_s").op("select");
          code.i32(3).op("i32.shl").set(by).i32(0).set(offset);
          upTo(code, offset, size, 8, () => {
            code.get(free).set(value);
            code.get(offset).get(by).op("i32.sub").get(size).op("i32.lt_u").if(() =>
              code.get(array.at).get(offset).op("i32.add").get(by).op("i32.sub").memory("f64.load").set(value)
            );
            code.get(at);
            finite(code, value);
            code.memory("f64.store").get(at).i32(8).op("i32.add").set(at);
          });
        });
      }, () => storeNone(code, out)));
    code.get(to);
  });
}

/** A longer run takes too long to sort by insertion. */
export const SORTED_ELEMENTS_MAX = 64;
/** (pairs, from, to, out, at) */
export type SortKernel = ChangeKernel;

/** Sorts each run. NULLs are at its end, or at its start. -0 is before 0, as for `sort` of typed arrays. */
export function sortKernel(memory: Memory, isDescending: boolean, nullsFirst: boolean): SortKernel {
  const name = `array sort ${isDescending} ${nullsFirst}`;
  return kernelOf(memory, name, ["i32", "i32", "i32", "i32", "i32"], ["i32"], (code) => {
    const [pairs, row, to, out, at] = [0, 1, 2, 3, 4] as const, array = opened(code), from = code.local("i32");
    const value = code.local("f64"), key = code.local("i64"), bits = code.local("i64"), first = code.local("i32");
    const end = code.local("i32"), slot = code.local("i32"), nulls = code.local("i32"), size = code.local("i32");
    /** Pushes bits that are ordered as the numbers are. */
    const order = (local: number) =>
      code.get(local).get(local).i64(63n).op("i64.shr_s").i64(1n).op("i64.shr_u").op("i64.xor");
    const nullsFrom = (start: number) => {
      code.get(start).get(nulls).op("i32.add").set(slot).get(start).set(from);
      upTo(code, from, slot, 8, () => code.get(from).f64(NaN).memory("f64.store"));
    };
    const insert = () => {
      code.get(value).op("i64.reinterpret_f64").set(bits);
      order(bits).set(key).get(end).set(slot);
      code.block((done) =>
        code.loop((again) => {
          code.get(slot).get(first).op("i32.le_u").brIf(done);
          code.get(slot).i32(8).op("i32.sub").memory("i64.load").set(bits);
          order(bits).get(key).op(isDescending ? "i64.ge_s" : "i64.le_s").brIf(done);
          code.get(slot).get(bits).memory("i64.store").get(slot).i32(8).op("i32.sub").set(slot).br(again);
        })
      );
      code.get(slot).get(value).memory("f64.store").get(end).i32(8).op("i32.add").set(end);
    };
    eachRow(code, [pairs, out].map((base) => ({ base, width: 8 })), row, to, () =>
      open(code, pairs, array, () => {
        code.get(array.at).i32(4).op("i32.sub").memory("i32.load").i32(SORTED_ELEMENTS_MAX).op("i32.gt_u").if(() =>
          code.get(row).return()
        );
        beginSame(code, out, at, array);
        eachRun(code, array, () => {
          code.i32(0).set(nulls).get(array.at).set(from);
          upTo(code, from, array.end, 8, () => {
            code.get(from).memory("f64.load").set(value);
            code.get(nulls).i32(8).i32(0);
            isNumber(code, value).op("i32.eqz").op("select").op("i32.add").set(nulls);
          });
          code.get(array.end).get(array.at).op("i32.sub").set(size);
          code.get(at);
          if (nullsFirst) code.get(nulls).op("i32.add");
          code.tee(first).set(end).get(array.at).set(from);
          upTo(code, from, array.end, 8, () => {
            code.get(from).memory("f64.load").set(value);
            isNumber(code, value).if(insert);
          });
          // Infinity has its place, too.
          code.get(first).set(from);
          upTo(code, from, end, 8, () => {
            code.get(from).memory("f64.load").set(value).get(from);
            finite(code, value);
            code.memory("f64.store");
          });
          nullsFrom(nullsFirst ? at : end);
          code.get(at).get(size).op("i32.add").set(at);
        });
      }, () => storeNone(code, out)));
    code.get(to);
  });
}

// Arrays from columns

export interface LiteralKernels {
  /** Begins an array of `count` elements for each row. */
  begin(from: number, to: number, out: number, at: number, count: number): void;
  /** Writes a column of DOUBLE. `at`: of the first row's element; `step`: to that of the next one. */
  fill(column: number, from: number, to: number, at: number, step: number): void;
}

export function literalKernels(memory: Memory): LiteralKernels {
  const parameters: ValueType[] = ["i32", "i32", "i32", "i32", "i32"];
  return {
    begin: kernelOf(memory, "array begin", parameters, [], (code) => {
      const [row, to, out, at, count] = [0, 1, 2, 3, 4] as const, size = code.local("i32");
      code.get(count).i32(3).op("i32.shl").i32(8).op("i32.add").set(size);
      eachRow(code, [{ base: out, width: 8 }], row, to, () => {
        code.get(out).get(at).memory("i32.store").get(out).get(size).memory("i32.store", 4);
        code.get(at).i32(1).memory("i32.store").get(at).get(count).memory("i32.store", 4);
        code.get(at).get(size).op("i32.add").set(at);
      });
    }),
    fill: kernelOf(memory, "array fill", parameters, [], (code) => {
      const [column, row, to, at, step] = [0, 1, 2, 3, 4] as const, value = code.local("f64");
      eachRow(code, [{ base: column, width: 8 }], row, to, () => {
        code.get(column).memory("f64.load").set(value).get(at);
        finite(code, value);
        code.memory("f64.store").get(at).get(step).op("i32.add").set(at);
      });
    }),
  };
}
