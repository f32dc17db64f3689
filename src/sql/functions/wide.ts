/** Values of more than 64 bits and of types with parameters: nulls, equality, and their texts. */
import { layoutOf, NULL_I64, type Value } from "../../types/mod.ts";
import { formatValue } from "../../types/format/mod.ts";
import { formatArray } from "../../types/wide.ts";
import { arrayDimensions } from "../../types/wide.ts";
import type { BatchColumn, BatchFunction, FunctionEntry } from "./entry.ts";

/** Is a row of a column of layout i64, i128, i256 or text null? */
export function isNullWide(column: BatchColumn, row: number): boolean {
  const { values } = column;
  switch (layoutOf(column.type)) {
    case "text":
      return values[2 * row + 1] < 0;
    case "i64":
      return values[row] === NULL_I64;
    case "i128":
      return values[2 * row] === NULL_I64 && values[2 * row + 1] === NULL_I64;
    default:
      return values[4 * row] === NULL_I64 && values[4 * row + 1] === NULL_I64 && values[4 * row + 2] === NULL_I64 &&
        values[4 * row + 3] === NULL_I64;
  }
}

/** The value of a row as it is at the edges: a bigint, signed but for LONG256. */
function wideValue(column: BatchColumn, row: number): bigint {
  const { values } = column;
  const words = layoutOf(column.type) === "i64" ? 1 : layoutOf(column.type) === "i128" ? 2 : 4;
  let value = 0n;
  for (let word = words - 1; word >= 0; word--) value = (value << 64n) | BigInt.asUintN(64, values[words * row + word]);
  return column.type === "LONG256" ? value : BigInt.asIntN(64 * words, value);
}

function textOfWide(column: BatchColumn, row: number): string | undefined {
  if (isNullWide(column, row)) return undefined;
  if (arrayDimensions(column.type) > 0) return formatArray(column.bytes(row)!.slice());
  return formatValue(wideValue(column, row) as Value, column.type) ?? undefined;
}

const base = { nulls: "custom", volatility: "immutable" } as const;

/** Equal bits or bytes; null equals null. */
function equality(whenEqual: boolean): BatchFunction {
  return ([a, b], out, rowCount) => {
    const isText = layoutOf(a.type) === "text";
    for (let row = 0; row < rowCount; row++) {
      const nullA = isNullWide(a, row), nullB = isNullWide(b, row);
      let equal = nullA === nullB;
      if (equal && !nullA) {
        if (isText) {
          const x = a.bytes(row)!, y = b.bytes(row)!;
          equal = x.length === y.length && x.every((byte, i) => byte === y[i]);
        } else equal = wideValue(a, row) === wideValue(b, row);
      }
      out.values[row] = equal === whenEqual ? 1 : 0;
    }
  };
}

const sameTypes: FunctionEntry["check"] = (_, types) =>
  types[0] === types[1] ? undefined : { message: `${types[0]} and ${types[1]} cannot be compared` };

export const wideFunctions: FunctionEntry[] = [
  {
    ...base,
    name: "is_null",
    args: [{ name: "value", type: "wide" }],
    returns: "BOOLEAN",
    summary: "Is it null?",
    examples: [],
    batch: ([column], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) out.values[row] = isNullWide(column, row) ? 1 : 0;
    },
  },
  ...["=", "!="].map((name): FunctionEntry => ({
    ...base,
    name,
    args: [{ name: "a", type: "wide" }, { name: "b", type: "wide" }],
    returns: "BOOLEAN",
    summary: name === "=" ? "Are they equal? Null equals null." : "Do they differ?",
    examples: [],
    check: sameTypes,
    batch: equality(name === "="),
  })),
  ...[["STRING", "STRING"], ["VARCHAR", "VARCHAR"]].map(([to, returns]): FunctionEntry => ({
    ...base,
    name: `cast_${to}`,
    args: [{ name: "value", type: "wide" }],
    returns,
    summary: `The value as ${to}.`,
    examples: [],
    check: (_, types) => (types[0] === "BINARY" ? { message: `BINARY has no ${to}` } : undefined),
    batch: ([column], out, rowCount, context) => {
      for (let row = 0; row < rowCount; row++) {
        out.setText(row, textOfWide(column, row));
        if ((row & 4095) === 4095) context.poll();
      }
    },
  })),
];
