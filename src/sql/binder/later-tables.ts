/**
 * Conditions of ON about tables that are joined later: `a JOIN b ON b.x = c.x JOIN c ON …`. Those of inner joins are tested with WHERE, which
 * gives the same rows. The others have no such place, and their columns are unknown.
 */
import type { Expression, Select, Source } from "../ast.ts";
import { andParts } from "./join-sides.ts";

type ColumnExpression = Extract<Expression, { kind: "column" }>;

export function withLaterTables(select: Select): Select {
  if (select.from?.kind !== "join") return select;
  const moved: Expression[] = [];
  const from = withoutLater(select.from, new Set(), moved);
  if (moved.length === 0) return select;
  return { ...select, from, where: allOf(select.where === undefined ? moved : [...moved, select.where]) };
}

/** `later`: the tables that are joined after `source`, in lower case. */
function withoutLater(source: Source, later: Set<string>, moved: Expression[]): Source {
  if (source.kind !== "join") return source;
  let join = source;
  if (source.type === "inner" && source.on !== undefined && later.size > 0) {
    const { moving = [], staying = [] } = Object.groupBy(
      andParts(source.on),
      (part) => readsAny(part, later) ? "moving" : "staying",
    );
    if (moving.length > 0) {
      moved.unshift(...moving);
      join = { ...source, type: staying.length > 0 ? "inner" : "cross", on: allOf(staying) };
    }
  }
  // WHERE would also test the rows that RIGHT and FULL add.
  if (source.type === "right" || source.type === "full") later.clear();
  else addNames(source.right, later);
  const left = withoutLater(source.left, later, moved);
  return join === source && left === source.left ? source : { ...join, left };
}

function addNames(source: Source, into: Set<string>): void {
  if (source.kind === "join") {
    addNames(source.left, into);
    addNames(source.right, into);
    return;
  }
  const name = source.alias?.text ?? (source.kind === "table" ? source.name.text : undefined);
  if (name !== undefined) into.add(name.toLowerCase());
}

/** True if the expression has a column of one of the tables. */
function readsAny(expression: Expression, tables: ReadonlySet<string>): boolean {
  return someColumn(expression, ({ path }) => path.length > 1 && tables.has(path[0]!.text.toLowerCase()));
}

/** True if a column passes. Sub-queries are left out: they have tables of their own. */
export function someColumn(node: unknown, passes: (column: ColumnExpression) => boolean): boolean {
  if (Array.isArray(node)) return node.some((item) => someColumn(item, passes));
  if (typeof node !== "object" || node === null) return false;
  if ((node as Partial<Expression>).kind === "column") return passes(node as ColumnExpression);
  return Object.entries(node).some(([key, part]) => key !== "query" && someColumn(part, passes));
}

export function allOf(conditions: Expression[]): Expression | undefined {
  if (conditions.length === 0) return undefined;
  return conditions.reduce((left, right): Expression => ({
    kind: "binary",
    at: right.at,
    operator: "and",
    left,
    right,
  }));
}
