/** How much a function may make at once, and room for it. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { FunctionContext, FunctionMemory } from "./entry.ts";

/** The longest text that a function makes when an argument says how long. */
export const TEXT_BYTES_MAX = 16 * 1024 * 1024;
/** The longest pattern. Those of a column are compiled row by row. */
export const PATTERN_UNITS_MAX = 32_768;
/** The most elements of an array that a function makes. */
export const ELEMENTS_MAX = 10_000_000;

/** SQLSTATE 22023, at the call. */
export function fail(message: string, context: Pick<FunctionContext, "at">): never {
  throw new SqlError(message, context.at, SQLSTATE.invalidParameter);
}

/** Before a text of so many bytes is made. */
export function checkTextLength(name: string, length: number, context: FunctionContext): void {
  if (length > TEXT_BYTES_MAX) {
    fail(`${name}: the text becomes too long: ${TEXT_BYTES_MAX} bytes are the most`, context);
  }
}

/** Before an array of so many elements is made. */
export function checkElements(count: number, context: FunctionContext): void {
  if (count > ELEMENTS_MAX) fail(`an array of ${count} elements is too long: ${ELEMENTS_MAX} are the most`, context);
  context.memory.need(8 * count);
}

/** `bytes` with room for `wanted` of them, the first `used` copied. The new buffer is asked for before it is made. */
export function grownBytes(
  bytes: Uint8Array<ArrayBuffer>,
  used: number,
  wanted: number,
  memory: FunctionMemory,
): Uint8Array<ArrayBuffer> {
  if (wanted <= bytes.length) return bytes;
  const size = Math.max(wanted, bytes.length * 2);
  needLarge(size, memory);
  const grown = new Uint8Array(size);
  grown.set(bytes.subarray(0, used));
  return grown;
}

/** Below this, what an aggregate keeps is charged soon enough when its rows are done. */
const SMALL_BYTES = 1 << 20;

/** Before a state grows to so many bytes. */
export function needLarge(sizeBytes: number, memory: FunctionMemory): void {
  if (sizeBytes > SMALL_BYTES) memory.need(sizeBytes);
}

const SHOWN_UNITS = 200;

/** A value in an error: its start, if it is long. */
export function shown(text: string): string {
  return text.length > SHOWN_UNITS ? `${text.slice(0, SHOWN_UNITS)}…` : text;
}
