/** Small IR trees that many entries need: a type's null, the test for it, and the wasm type of its values. */
import {
  f32,
  f64,
  finite,
  i32,
  i64,
  type IrNode,
  notNull,
  nullOf,
  select,
  wasmTypeOf,
} from "../../engine/compiler/ir.ts";
import { NULL_I32, NULL_I64 } from "../../types/mod.ts";
import { arrayDimensions, decimalOf, geohashBits } from "../../types/wide.ts";
import type { FunctionEntry } from "./entry.ts";

export { finite, notNull, nullOf, wasmTypeOf };

export const NUMBERS = ["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"] as const;
export const TIMES = ["DATE", "TIMESTAMP", "TIMESTAMP_NS"] as const;
export const TEXTS = ["STRING", "VARCHAR", "SYMBOL", "SYMBOL_TEXT"] as const;

export function isText(tag: string): boolean {
  return (TEXTS as readonly string[]).includes(tag);
}

/** LONG256, BINARY, and the types with parameters: GEOHASH, DECIMAL, arrays. */
export function isWide(tag: string): boolean {
  return tag === "LONG256" || tag === "BINARY" || decimalOf(tag) !== undefined || geohashBits(tag) !== undefined ||
    arrayDimensions(tag) > 0;
}

/** DOUBLEs that differ by at most this are equal. */
export const DOUBLE_TOLERANCE = 1e-10;

export const MIN32 = i32.const(NULL_I32);
export const MIN64 = i64.const(NULL_I64);
export const NAN64 = f64.const(NaN);
export const NAN32 = f32.const(NaN);
export const ZERO32 = i32.const(0);
export const ONE32 = i32.const(1);
export const ZERO64 = i64.const(0n);
export const ONE64 = i64.const(1n);

/** Turns infinities into NaN. */
export function finiteOrNull(x: IrNode): IrNode {
  return select(finite(x), x, x.type === "f32" ? NAN32 : NAN64);
}

/** The value as f64, ignoring nulls. */
export function toF64(x: IrNode): IrNode {
  switch (x.type) {
    case "i32":
      return f64.convertI32(x);
    case "i64":
      return f64.convertI64(x);
    case "f32":
      return f64.promote(x);
    case "f64":
      return x;
  }
}

export function toI64(x: IrNode): IrNode {
  return x.type === "i32" ? i64.extendS(x) : x;
}

/** `then` if `x` is not null, and unconditionally for types without null. */
export function whenNotNull(x: IrNode, tag: string, then: IrNode, otherwise: IrNode): IrNode {
  const test = notNull(x, tag);
  return test === undefined ? then : select(test, then, otherwise);
}

/** Adds examples to the first overload of each name. */
export function withExamples(
  entries: FunctionEntry[],
  examples: Record<string, [sql: string, gives: unknown][]>,
): FunctionEntry[] {
  for (const [name, list] of Object.entries(examples)) {
    const entry = entries.find((candidate) => candidate.name === name);
    if (entry !== undefined) entry.examples = [...entry.examples, ...list.map(([sql, gives]) => ({ sql, gives }))];
  }
  return entries;
}
