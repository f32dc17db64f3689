/** Conditions on the values of single columns, which can be tested by the codes of packed chunks. */
import { childrenOf, type Expr, type ScanNode } from "../../sql/plan.ts";
import { type Bound, boundsOf, comparedColumn, INTEGERS } from "../bounds.ts";
import { columnsOf } from "../compiler/expression.ts";
import type { PlanFacts } from "./facts.ts";
import { isVolatile } from "./functions.ts";

/**
 * A comparison of a column with constants; others of integers, which have the same outcome for all integers between two neighbouring `values`; or any
 * condition on the symbols of a column.
 */
export type SingleCondition =
  | { kind: "bounds"; bound: Bound }
  | { kind: "pieces"; column: number; values: readonly bigint[] }
  | { kind: "symbols"; column: number };

const COMPARISONS: ReadonlySet<string> = new Set(["=", "!=", "<", "<=", ">", ">=", "between"]);
const LOGIC: ReadonlySet<string> = new Set(["and", "or", "not"]);
/** Longer lists pass too many ranges. */
const VALUES_MAX = 32;

/** `part`: of an AND, over the scan's columns. Undefined if it is of another kind. */
export function conditionOf(
  part: Expr,
  { columns, columnIds }: Pick<ScanNode, "columns" | "columnIds">,
  facts: Pick<PlanFacts, "functions">,
): SingleCondition | undefined {
  const [column, ...further] = columnsOf(part);
  if (column === undefined || further.length > 0 || column >= columnIds.length) return undefined;
  const [bound, ...others] = part.kind === "call" ? boundsOf([part], facts) : [];
  if (bound !== undefined && others.length === 0) return { kind: "bounds", bound };
  const values = valuesOf(part, facts);
  if (values !== undefined && values.length <= VALUES_MAX) return { kind: "pieces", column, values };
  const isOfSymbols = part.kind === "call" && columns[column]!.type === "SYMBOL" && !isVolatile(part, facts);
  return isOfSymbols ? { kind: "symbols", column } : undefined;
}

/** The integers that a condition on a column compares it with. Undefined if it is of another kind. */
function valuesOf(part: Expr, facts: Pick<PlanFacts, "functions">): bigint[] | undefined {
  if (part.kind === "column") return part.type === "BOOLEAN" ? [] : undefined;
  if (part.kind === "in") return isOfIntegers(part.operand, facts) ? integersOf(part.values) : undefined;
  if (part.kind !== "call") return undefined;
  const { name } = facts.functions.resolve(part.function).entry;
  if (LOGIC.has(name)) {
    const lists = childrenOf(part).map((child) => valuesOf(child, facts));
    return lists.includes(undefined) ? undefined : lists.flatMap((list) => list!);
  }
  if (!COMPARISONS.has(name)) return undefined;
  const sides = part.args.filter((arg) => arg.kind !== "constant"), [side] = sides;
  if (sides.length !== 1 || !isOfIntegers(side!, facts)) return undefined;
  return integersOf(part.args.flatMap((arg) => arg.kind === "constant" ? [arg.value] : []));
}

function isOfIntegers(side: Expr, facts: Pick<PlanFacts, "functions">): boolean {
  if (side.kind === "column" && side.type === "BOOLEAN") return true;
  const column = comparedColumn(side, facts);
  return column !== undefined && INTEGERS.has(column.type);
}

/** NULL and truth values are tested anyway. */
function integersOf(values: readonly unknown[]): bigint[] | undefined {
  const list: bigint[] = [];
  for (const value of values) {
    if (value === null || typeof value === "boolean") continue;
    if (typeof value !== "bigint" && !Number.isInteger(value)) return undefined;
    list.push(BigInt(value as number | bigint));
  }
  return list;
}
