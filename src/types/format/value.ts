/** Formats single values as text, for literals and metadata. Not for loops over rows. */
import { assert } from "../../errors.ts";
import type { Value } from "../layout.ts";
import { formatDouble, formatFloat, formatIPv4, formatUuid } from "./numbers.ts";
import { decimalOf, formatDecimal, formatGeohash, formatLong256, geohashBits } from "../wide.ts";
import { formatDate, formatNanos, formatTimestampMicros } from "./time.ts";

const scratch = new Uint8Array(64);
const words = new Int32Array(4);

function ascii(end: number): string {
  return String.fromCharCode(...scratch.subarray(0, end));
}

function wordsOf(value: bigint): void {
  for (let i = 0; i < 4; i++) words[i] = Number(BigInt.asIntN(32, value >> BigInt(32 * i)));
}

/** The text of a value of type `tag` when cast to STRING; null stays null. */
export function formatValue(value: Value, tag: string): string | null {
  if (value === null) return null;
  switch (typeof value) {
    case "string":
      return value;
    case "boolean":
      return value ? "true" : "false";
    case "number":
      if (tag === "DOUBLE" || tag === "FLOAT") {
        if (!Number.isFinite(value)) return null;
        return ascii(tag === "FLOAT" ? formatFloat(value, scratch, 0) : formatDouble(value, scratch, 0));
      }
      return tag === "IPv4" ? ascii(formatIPv4(value, scratch, 0)) : String(value);
    case "bigint":
      break;
  }
  assert(typeof value === "bigint");
  const decimal = decimalOf(tag), bits = geohashBits(tag);
  if (decimal) return formatDecimal(value, decimal.scale);
  if (bits !== undefined) return formatGeohash(value, bits);
  if (tag === "LONG256") return formatLong256(value);
  wordsOf(value);
  if (tag === "DATE") return ascii(formatDate(words[0], words[1], scratch, 0));
  if (tag === "TIMESTAMP") return ascii(formatTimestampMicros(words[0], words[1], scratch, 0));
  if (tag === "TIMESTAMP_NS") return ascii(formatNanos(words[0], words[1], scratch, 0));
  if (tag === "UUID") return ascii(formatUuid(words, 0, scratch, 0));
  if (tag === "INTERVAL") return intervalText(BigInt.asIntN(64, value), BigInt.asIntN(64, value >> 64n));
  return String(value);
}

/** ('2024-01-01T00:00:00.000Z', '2024-01-02T00:00:00.000Z'), from microseconds. */
export function intervalText(low: bigint, high: bigint): string {
  const milliseconds = (micros: bigint) => formatValue((micros - (((micros % 1000n) + 1000n) % 1000n)) / 1000n, "DATE");
  return `('${milliseconds(low)}', '${milliseconds(high)}')`;
}
