/** Limits on the size of what functions create, and growing buffers. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { FunctionContext, FunctionMemory } from "./entry.ts";

/** Maximum length of a text whose length an argument determines. */
export const TEXT_BYTES_MAX = 16 * 1024 * 1024;
/** Maximum length of a pattern. Patterns of a column are compiled row by row. */
export const PATTERN_UNITS_MAX = 32_768;
/** Maximum number of elements of an array that a function makes. */
const ELEMENTS_MAX = 10_000_000;

/** SQLSTATE 22023, at the call. */
export function fail(message: string, context: Pick<FunctionContext, "at">): never {
  throw new SqlError(message, context.at, SQLSTATE.invalidParameter);
}

/** Call it before making a text of this many bytes. */
export function checkTextLength(name: string, length: number, context: FunctionContext): void {
  if (length > TEXT_BYTES_MAX) {
    fail(`${name}: the text becomes too long: at most ${TEXT_BYTES_MAX} bytes are allowed`, context);
  }
}

/** Call it before making an array of this many elements. */
export function checkElements(count: number, context: FunctionContext): void {
  if (count > ELEMENTS_MAX) {
    fail(`an array of ${count} elements is too long: at most ${ELEMENTS_MAX} are allowed`, context);
  }
  context.memory.need(8 * count);
}

/**
 * Returns a buffer of at least `wanted` bytes with the first `used` copied. Checks the memory limit before allocating.
 */
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

/** States of aggregates below this size are charged only after their rows. */
const SMALL_BYTES = 1 << 20;

/** Call it before a state grows to this many bytes. */
export function needLarge(sizeBytes: number, memory: FunctionMemory): void {
  if (sizeBytes > SMALL_BYTES) memory.need(sizeBytes);
}

const SHOWN_UNITS = 200;

/** A value for an error message, truncated if it is long. */
export function shown(text: string): string {
  return text.length > SHOWN_UNITS ? `${text.slice(0, SHOWN_UNITS)}…` : text;
}
