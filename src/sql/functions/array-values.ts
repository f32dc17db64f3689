/** Values of arrays, and what the functions over them share. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { arrayDimensions } from "../../types/wide.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";
import { checkElements } from "./sizes.ts";

export interface Grid {
  shape: number[];
  values: Float64Array;
}

export const ARRAY = (name: string) => ({ name, type: "array" });
export const arrayTag = (dimensions: number): string => `DOUBLE${"[]".repeat(Math.max(1, dimensions))}`;
export const sizeOf = (shape: readonly number[]): number => shape.reduce((size, length) => size * length, 1);

export function grid(shape: number[], value: (index: number) => number, context: FunctionContext): Grid {
  const size = sizeOf(shape);
  checkElements(size, context);
  const values = new Float64Array(size);
  for (let from = 0; from < size; from += POLL_ELEMENTS) {
    context.poll();
    for (let i = from, to = Math.min(size, from + POLL_ELEMENTS); i < to; i++) values[i] = value(i);
  }
  return { shape, values };
}

export const POLL_ELEMENTS = 16_384;

/** Decodes an array that `encodeArray` encoded. Undefined for null. */
export function read(column: BatchColumn, row: number, context: FunctionContext): Grid | undefined {
  const bytes = column.bytes(row);
  if (bytes === undefined) return undefined;
  if (bytes.length > 8 * POLL_ELEMENTS) context.poll();
  context.memory.need(bytes.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const shape = Array.from({ length: view.getUint32(0, true) }, (_, i) => view.getUint32(4 + 4 * i, true));
  return { shape, values: new Float64Array(bytes.slice(4 + 4 * shape.length).buffer) };
}

export function write(out: BatchOut, row: number, made: Grid | undefined): void {
  if (made === undefined) return out.setText(row, undefined);
  const { shape, values } = made;
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i])) values[i] = NaN;
  const bytes = out.makeText(row, 4 + 4 * shape.length + 8 * values.length);
  bytes.set(new Uint8Array(Uint32Array.of(shape.length, ...shape).buffer));
  bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), 4 + 4 * shape.length);
}

/** Calls `made` for each row, and polls for cancellation. */
export function each(
  made: (row: number, context: FunctionContext) => void,
  rowCount: number,
  context: FunctionContext,
): void {
  for (let row = 0; row < rowCount; row++) {
    made(row, context);
    if ((row & 255) === 255) context.poll();
  }
}

export function unfit(message: string, context: FunctionContext): SqlError {
  return new SqlError(message, context.at, SQLSTATE.invalidParameter);
}

/** Types of results by the types of the arguments. */
export const same = ([type]: string[]): string => type;
export const widest = (types: string[]): string => arrayTag(Math.max(...types.map(arrayDimensions)));
