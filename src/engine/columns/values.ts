/** Reads and writes values one row at a time, for constants, boundaries and tests, and marks the rows that are not null. */
import { assert } from "../../assert.ts";
import type { SharedHeap } from "../../storage/heap.ts";
import { fillNull, isNullAt, layoutOf, putValue, typeOf, type Value, valueIn } from "../../types/mod.ts";
import type { Vector } from "../contract.ts";
import type { TextArena } from "./text-arena.ts";
import { textPair } from "./texts.ts";

/** Sets `out` to 1 for the rows that are not null. */
export function markNotNull(heap: SharedHeap, vector: Vector, rowCount: number, out: Uint8Array): void {
  const { type, address } = vector, layout = layoutOf(type);
  if (!typeOf(type).nullable) out.fill(1, 0, rowCount);
  else if (layout === "f64") {
    const view = heap.f64, from = address >>> 3;
    for (let i = 0; i < rowCount; i++) out[i] = view[from + i] - view[from + i] === 0 ? 1 : 0;
  } else if (layout === "i64") {
    const view = heap.i32;
    for (let i = 0, at = address >>> 2; i < rowCount; i++, at += 2) {
      out[i] = view[at] === 0 && view[at + 1] === -0x80000000 ? 0 : 1;
    }
  } else if (layout === "text") {
    const view = heap.i32;
    for (let i = 0, at = (address >>> 2) + 1; i < rowCount; i++, at += 2) out[i] = view[at] < 0 ? 0 : 1;
  } else for (let i = 0; i < rowCount; i++) out[i] = isNullAt(heap, type, address, i) ? 0 : 1;
}

/** The value of a row. */
export function valueAt(heap: SharedHeap, vector: Vector, row: number): Value {
  const { type, address } = vector, layout = layoutOf(type);
  if (layout !== "text" && layout !== "symbol") return valueIn(heap, type, address, row);
  const [at, length] = textPair(heap, vector, row);
  return length < 0 ? null : typeOf(type).bytes.fromBytes(heap.u8.slice(at, at + length));
}

/** Writes one value, as `Value` has it, to a row; text goes to the arena. A symbol is written by its dictionary only. */
export function setValue(
  heap: SharedHeap,
  type: string,
  address: number,
  row: number,
  value: Value,
  arena: TextArena,
): void {
  const { layout, bytes } = typeOf(type);
  assert(layout !== "symbol" || value === null, "codes of symbols are written by their dictionary");
  if (layout !== "text" || value === null) return putValue(heap, type, address, row, value);
  const [at, length] = arena.encode(bytes.toBytes(String(value)));
  heap.u32[(address >>> 2) + row * 2] = at;
  heap.i32[(address >>> 2) + row * 2 + 1] = length;
}

/** Writes one value to rows 0 … rowCount-1. */
export function fillConstant(
  heap: SharedHeap,
  type: string,
  address: number,
  rowCount: number,
  value: Value,
  arena: TextArena,
): void {
  if (rowCount === 0) return;
  if (value === null) return fillNull(heap, type, address, 0, rowCount);
  setValue(heap, type, address, 0, value, arena);
  repeatFirst(heap, address, typeOf(type).width, rowCount);
}

/** Copies the first row of a column to all rows. */
export function repeatFirst(heap: SharedHeap, address: number, width: number, rowCount: number): void {
  for (let done = 1; done < rowCount; done *= 2) {
    heap.u8.copyWithin(address + done * width, address, address + Math.min(done, rowCount - done) * width);
  }
}
