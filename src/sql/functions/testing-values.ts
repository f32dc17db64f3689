/** For tests over the whole catalogue: edge-case values of each type, and the types that an entry accepts. */
import type { Value } from "../../types/mod.ts";
import type { FunctionEntry } from "./mod.ts";

/** The types used to test each class of arguments. */
const CLASS_TYPES: Record<string, string[]> = {
  any: ["LONG", "STRING", "UUID", "BOOLEAN", "DOUBLE", "TIMESTAMP", "CHAR", "LONG256"],
  same: ["INT", "LONG", "DOUBLE", "STRING", "FLOAT", "TIMESTAMP"],
  text: ["STRING", "SYMBOL", "VARCHAR"],
  number: ["INT", "DOUBLE", "LONG", "SHORT", "FLOAT"],
  integer: ["INT", "LONG", "BYTE"],
  time: ["DATE", "TIMESTAMP", "TIMESTAMP_NS"],
  wide: ["LONG256", "BINARY", "GEOHASH(4c)", "DECIMAL(12,3)", "DECIMAL(30,4)", "DOUBLE[]"],
  decimal: ["DECIMAL(12,3)", "DECIMAL(30,4)", "DECIMAL(60,5)"],
  array: ["DOUBLE[]", "DOUBLE[][]"],
};

const TIMES = [0n, -1n, 1n, 1709208000999123n, -62135596800000000n, 86399999999n, 253402300799999999n, null];
const TEXTS = [
  "",
  "a",
  "abc",
  "ABC",
  "žluť",
  "a longer text than eight bytes",
  "10",
  "-7.5",
  "2024-02-29T12:00:00.5Z",
  "Europe/Berlin",
  null,
];

/** Ends of ranges, zeros, nulls and ordinary values. */
export const VALUES: Readonly<Record<string, readonly Value[]>> = {
  BOOLEAN: [true, false],
  BYTE: [0, 1, -1, 127, -128],
  SHORT: [0, 1, -1, 32767, -32768],
  CHAR: ["a", "Z", "7", "ž", null],
  INT: [0, 1, -1, 2147483647, -2147483647, 12345, null],
  LONG: [0n, 1n, -1n, 9223372036854775807n, -9223372036854775807n, 4294967296n, 1234567890123n, null],
  FLOAT: [0, 1.5, -1.5, Math.fround(0.1), Math.fround(3e38), null],
  DOUBLE: [0, -0, 1.5, -2.5, 0.1, 1e-11, 1e300, -1e300, 9007199254740993, 2147483648.5, null],
  DATE: [0n, -1n, 1709208000999n, -62135596800000n, null],
  TIMESTAMP: TIMES,
  TIMESTAMP_NS: [0n, -1n, 1709208000999123456n, 86399999999999n, -1000000001n, null],
  IPv4: [1, 0x0a000005, 0xffffffff, null],
  STRING: TEXTS,
  VARCHAR: TEXTS,
  SYMBOL: ["a", "abc", "", null],
  SYMBOL_TEXT: ["a", null],
  NULL: [null],
  UUID: [0n, 1n, (1n << 128n) - 1n, 0x11111111_2222_3333_4444_555555555555n, null],
  LONG256: [0n, 1n, (1n << 256n) - 1n, 1n << 200n, null],
  BINARY: ["\\x", "\\x00ff", "\\x616263", null],
  INTERVAL: [1n << 64n, (1709208000999123n << 64n) | 5n, null],
  "GEOHASH(4c)": [0n, 1n, (1n << 20n) - 1n, null],
  "DECIMAL(12,3)": [0n, 1n, -1n, 999999999999n, -999999999999n, 12345n, null],
  "DECIMAL(30,4)": [0n, -1n, 10n ** 30n - 1n, -(10n ** 30n) + 1n, 12345678901234567890n, null],
  "DECIMAL(60,5)": [0n, -1n, 10n ** 60n - 1n, -(10n ** 60n) + 1n, 10n ** 40n, null],
  "DOUBLE[]": ["[1.0,2.5,null]", "[]", "[-1.0E300]", "[0.1,0.2,0.3]", null],
  "DOUBLE[][]": ["[[1.0,2.0],[3.0,4.0]]", "[[null]]", null],
};

/** Meaningful texts for arguments that must be constant. */
export const CONSTANT_TEXTS: readonly string[] = [
  "h",
  "d",
  "M",
  "y",
  "5m",
  "1h",
  "hour",
  "Europe/Berlin",
  "yyyy-MM-ddTHH:mm:ss.SSSUUUNNNZ",
  "a%",
  "[a-c]+",
  "$.a",
];

/**
 * Argument types for calls of the entry: each member of a class occurs in one of them, with and without optional
 * arguments, with repeated ones.
 */
export function signatures(entry: FunctionEntry): string[][] {
  const found = new Map<string, string[]>();
  for (const repeats of [3, 2, 1, 0]) {
    const specs = entry.args.flatMap((arg) =>
      arg.variadic
        ? Array.from({ length: Math.max(1, repeats) }, () => arg)
        : arg.optional && repeats === 0
        ? []
        : [arg]
    );
    const choices = Math.max(1, ...specs.map((arg) => CLASS_TYPES[arg.type]?.length ?? 1));
    for (let k = 0; k < choices; k++) {
      const types = specs.map(({ type }) => CLASS_TYPES[type]?.[k % CLASS_TYPES[type].length] ?? type);
      found.set(types.join(), types);
    }
  }
  return [...found.values()];
}
