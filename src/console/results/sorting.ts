/** Sorts rows that are in the page. */
import type { Rows } from "../server/client.ts";
import { isNumeric, textOf } from "./cells.ts";

export interface Sorting {
  /** Index of the column. */
  column: number;
  order: "ascending" | "descending";
}

/** Nulls are last in both orders, and equal rows keep their order. */
export function sorted(
  { columns, dataset }: Pick<Rows, "columns" | "dataset">,
  { column, order }: Sorting,
): unknown[][] {
  const type = columns[column]?.type;
  // A later result may have fewer columns.
  if (type === undefined) return dataset;
  const compare = compareValues(type);
  const sign = order === "ascending" ? 1 : -1;
  return dataset.toSorted((a, b) => {
    const [left, right] = [a[column], b[column]];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return sign * compare(left, right);
  });
}

/** The order of the values of a type, without nulls. */
export const compareValues = (type: string) => isNumeric(type) ? compareNumbers : compareTexts;

/** Large integers arrive as texts. If two are equal as doubles, they are compared as integers. */
function compareNumbers(a: unknown, b: unknown): number {
  const difference = Number(a) - Number(b);
  if (difference !== 0 || typeof a !== "string" && typeof b !== "string") return difference;
  return /^-?\d+$/.test(`${a}`) && /^-?\d+$/.test(`${b}`) ? Number(BigInt(`${a}`) - BigInt(`${b}`)) : 0;
}

function compareTexts(a: unknown, b: unknown): number {
  const [left, right] = [textOf(a), textOf(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The sorting after a click on the head of a column: ascending, descending, none. */
export function nextSorting(current: Sorting | undefined, column: number): Sorting | undefined {
  if (current?.column !== column) return { column, order: "ascending" };
  return current.order === "ascending" ? { column, order: "descending" } : undefined;
}
