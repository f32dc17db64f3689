/** Parses one text as a value of a type, for literals, parameters and settings. Columns use the functions on bytes. */
import { parseArray } from "../array-text.ts";
import type { Value } from "../layout.ts";
import { typeOf } from "../registry.ts";
import {
  arrayDimensions,
  decimalOf,
  formatBinary,
  geohashBits,
  parseBinary,
  parseDecimal,
  parseGeohash,
  parseLong256,
} from "../wide.ts";
import { encodeAscii } from "./ascii.ts";
import { parseDouble, parseInteger, parseIPv4, parseLong, parseUuid } from "./numbers.ts";
import { instantAs, parseInstant } from "./time.ts";

export interface ReadFailure {
  problem: string;
}

const EMPTY = new Uint8Array(0);

/** The value of `text` as type `tag`, or a description of the error. Text types keep the text unchanged. */
export function readValue(text: string, tag: string): Value | ReadFailure {
  if (tag === "BINARY") {
    const bytes = parseBinary(text);
    return bytes === undefined ? { problem: "the text is not a BINARY: found a broken escape" } : formatBinary(bytes);
  }
  if (typeOf(tag).layout === "text" && arrayDimensions(tag) === 0) return text;
  const bytes = encodeAscii(text) ?? EMPTY;
  const length = bytes === EMPTY ? 0 : text.length;
  const failure = (): ReadFailure => ({
    problem: `'${text}' is not ${/^[AEIOU]/.test(tag) ? "an" : "a"} ${typeOf(tag).name}`,
  });
  switch (tag) {
    case "SYMBOL":
      return text;
    case "BOOLEAN":
      return /^(true|t|1)$/i.test(text);
    case "BYTE":
    case "SHORT":
    case "INT": {
      const value = parseInteger(bytes, 0, length, tag === "BYTE" ? 127 : tag === "SHORT" ? 32767 : 2147483647);
      if (value !== value) return failure();
      return value === -2147483648 ? null : value;
    }
    case "LONG": {
      const value = parseLong(bytes, 0, length);
      if (value === undefined) return failure();
      return value === -9223372036854775808n ? null : value;
    }
    case "FLOAT":
    case "DOUBLE": {
      const value = parseDouble(bytes, 0, length);
      if (value === undefined) return failure();
      if (value !== value) return null;
      const rounded = tag === "FLOAT" ? Math.fround(value) : value;
      return Number.isFinite(rounded) ? rounded : null;
    }
    case "CHAR":
      return text.slice(0, 1);
    case "DATE":
    case "TIMESTAMP":
    case "TIMESTAMP_NS":
      return parseInstant(bytes, 0, length) ? instantAs(tag) ?? failure() : failure();
    case "UUID": {
      const value = parseUuid(bytes, 0, length);
      return value ?? failure();
    }
    case "IPv4": {
      if (text === "") return null;
      const value = parseIPv4(bytes, 0, length);
      if (value === undefined) return failure();
      return value === 0 ? null : value >>> 0;
    }
    case "LONG256":
      return text === "" ? null : parseLong256(text) ?? failure();
    default: {
      const decimal = decimalOf(tag), bits = geohashBits(tag), dimensions = arrayDimensions(tag);
      if (decimal) return parseDecimal(text, decimal) ?? failure();
      if (bits !== undefined) return text === "" ? null : parseGeohash(text, bits) ?? failure();
      if (dimensions > 0) return parseArray(text, dimensions) ? text : failure();
      return failure();
    }
  }
}
