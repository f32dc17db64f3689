/** Numbers of files: as casts read them, or with the letter of their type: 1L, 1.5f, 1.5d. */
import { parseDouble, parseLong } from "../../types/parse/mod.ts";

const NINE = 0x39, LOWER_CASE = 0x20, L = 0x6c, D = 0x64, F = 0x66;

/** Undefined if it is none. */
export function readLong(bytes: Uint8Array, from: number, to: number): bigint | undefined {
  const value = parseLong(bytes, from, to);
  if (value !== undefined || to - from < 2 || bytes[to - 2] > NINE) return value;
  return (bytes[to - 1] | LOWER_CASE) === L ? parseLong(bytes, from, to - 1) : undefined;
}

/** Undefined if it is none. */
export function readDouble(bytes: Uint8Array, from: number, to: number): number | undefined {
  const value = parseDouble(bytes, from, to);
  if (value !== undefined || to - from < 2 || bytes[to - 2] > NINE) return value;
  const letter = bytes[to - 1] | LOWER_CASE;
  return letter === D || letter === F ? parseDouble(bytes, from, to - 1) : undefined;
}
