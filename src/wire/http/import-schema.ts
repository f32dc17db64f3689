/** The part `schema` of an import: `[{"name": "a", "type": "TIMESTAMP", "pattern": "yyyy-MM-dd"}, …]`. */
import type { ImportOptions } from "../../api.ts";
import { tagOfName, typeOf } from "../../types/mod.ts";
import {
  ARRAY_DIMENSIONS_MAX,
  DECIMAL_DEFAULT,
  DECIMAL_PRECISION_MAX,
  decimalTag,
  GEOHASH_BITS_MAX,
  geohashTag,
} from "../../types/wide.ts";

/** Returns the error as a text. */
export function readSchema(text: string): ImportOptions["schema"] | string {
  if (text.trim() === "") return [];
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch (error) {
    return `it is not JSON: ${(error as Error).message}`;
  }
  if (!Array.isArray(entries)) return "it is not an array";
  const schema: ImportOptions["schema"][number][] = [];
  for (const [index, entry] of entries.entries()) {
    const { name, type, pattern, index: indexed } = (entry ?? {}) as Record<string, unknown>;
    if (typeof name !== "string" || typeof type !== "string") return `entry ${index} has no name or no type`;
    if (pattern !== undefined && typeof pattern !== "string") return `the pattern of column ${name} is not a text`;
    const tag = tagOfText(type);
    if (tag === undefined) return `unknown type '${type}' of column ${name}`;
    schema.push({ name, type: tag, pattern: pattern || undefined, index: indexed === true });
  }
  return schema;
}

/** The tag of a type's name, with its parameters. */
function tagOfText(text: string): string | undefined {
  const [, name, parameters, brackets = ""] = /^([\w ]*\w)\s*(?:\(([^)]*)\))?((?:\[\])*)$/.exec(text.trim()) ?? [];
  if (name === undefined) return undefined;
  if (brackets !== "") return parameters === undefined ? arrayOf(name, brackets) : undefined;
  if (/^geohash$/i.test(name)) return geohashOf(parameters);
  if (/^decimal$/i.test(name)) return parameters === undefined ? DECIMAL_DEFAULT : decimalOf(parameters);
  const tag = parameters === undefined ? tagOfName(name) : undefined;
  return tag !== undefined && typeOf(tag).storable ? tag : undefined;
}

function arrayOf(name: string, brackets: string): string | undefined {
  return tagOfName(name) === "DOUBLE" && brackets.length / 2 <= ARRAY_DIMENSIONS_MAX ? `DOUBLE${brackets}` : undefined;
}

function geohashOf(parameters: string | undefined): string | undefined {
  const [, count, unit] = /^\s*(\d{1,2})\s*([bc])\s*$/i.exec(parameters ?? "") ?? [];
  const bits = Number(count) * (unit?.toLowerCase() === "c" ? 5 : 1);
  return bits >= 1 && bits <= GEOHASH_BITS_MAX ? geohashTag(bits) : undefined;
}

function decimalOf(parameters: string): string | undefined {
  const [, precision, scale] = /^\s*(\d{1,2})\s*(?:,\s*(\d{1,2})\s*)?$/.exec(parameters) ?? [];
  const [digits, decimals] = [Number(precision), Number(scale ?? 0)];
  return digits >= 1 && digits <= DECIMAL_PRECISION_MAX && decimals <= digits
    ? decimalTag(digits, decimals)
    : undefined;
}
