/**
 * PIVOT: a column for each value of other columns, with aggregates of the rows that have it.
 *
 * The rows are grouped by the keys and by the values first. Then each group of keys picks, for each of its columns, the one group that has
 * the column's values.
 */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { Expression, Pivot, Select, SelectItem, TypeName } from "../ast.ts";
import type { AggregateCall, Expr } from "../plan.ts";
import { aggregateKind } from "./calls.ts";
import { type Names, preludesOf } from "./context.ts";
import type { Scope } from "./expression-binder.ts";
import { groupPlan } from "./grouping.ts";
import { columnOf, project } from "./plans.ts";
import { type OutputItem, type Queries, relationOf } from "./query.ts";
import { type Relation, uniqueNames, type WantedName } from "./scope.ts";
import { columnName, expressionText, isPlain, nameOfText } from "./text.ts";

/** Limit of the columns that one PIVOT makes. */
export const COLUMNS_MAX = 5_000;

/** Names of the columns of the first grouping. */
const KEY = (index: number) => `pivot key ${index}`;
const VALUE = (index: number) => `pivot value ${index}`;
const AGGREGATE = (index: number) => `pivot aggregate ${index}`;

/** The rows of the SELECT's source, filtered by its conditions and turned by its PIVOT. */
export function pivotRelation(queries: Queries, select: Select & { pivot: Pivot }, names: Names): Relation {
  const { pivot } = select;
  refuseBeside(select);
  const lists = pivot.columns.map(({ values, valuesAt, valuesEnd }) => {
    if (!Array.isArray(values)) {
      if (queries.binding.isInsideView) throw notSupported("a sub-query as the list of PIVOT in a view", valuesAt);
      const message = "the sub-query in the list of PIVOT cannot be executed here";
      const list = { end: valuesEnd!, preludes: preludesOf(names) };
      throw new SqlError(message, valuesAt, SQLSTATE.featureNotSupported, { list });
    }
    for (const { expression } of values) refuseColumns(expression);
    refuseRepetition(values);
    return values;
  });
  for (const { expression } of pivot.aggregates) refuseWithoutAggregate(expression);
  for (const key of pivot.groupBy) refusePosition(key);
  const grouped = relationOf(queries.bind(groupsOf(select, lists), names), undefined);
  const { binding, expressions } = queries;
  const aggregates: AggregateCall[] = [];
  const scope: Scope = { columns: grouped.columns, names, aggregates, shareAggregates: true };
  const items: OutputItem[] = [], wanted: WantedName[] = [];
  const add = (item: SelectItem, expr: Expr, name: WantedName) => {
    items.push({ item, expr, name: "", aliased: false });
    wanted.push(name);
  };
  pivot.groupBy.forEach((expression, index) => {
    const key: Expr = binding.at(columnOf(grouped.plan, index), expression.at);
    add({ at: expression.at, expression }, key, { text: columnName(expression), isStar: false });
  });
  const first = pivot.groupBy.length + pivot.columns.length;
  for (const values of combinations(lists, pivot)) {
    pivot.aggregates.forEach((aggregate, index) => {
      binding.spend(values.length, aggregate.at);
      const { type } = grouped.columns[first + index]!;
      const picked = expressions.bind(pickOf(aggregate, index, type, values), scope);
      add(aggregate, picked, { text: nameOf(pivot, aggregate, values), isStar: false });
    });
  }
  const keys = items.slice(0, pivot.groupBy.length).map(({ expr, item }) => ({ expr, at: item.at }));
  const unique = uniqueNames(wanted).map((name) => name!);
  const plan = groupPlan(binding, grouped.plan, items, [], aggregates, keys, undefined);
  const output = project(plan, items.map(({ expr }) => expr), unique);
  return relationOf({ plan: output, visible: unique.length, timestamp: -1 }, pivot.alias);
}

/** Clauses whose rows would have to be a sub-query. */
function refuseBeside({ sampleBy, groupBy, havingAt, windows, pivot }: Select): void {
  const clause = sampleBy !== undefined
    ? "SAMPLE BY"
    : groupBy !== undefined
    ? "GROUP BY before it"
    : havingAt !== undefined
    ? "HAVING"
    : windows.length > 0
    ? "WINDOW"
    : undefined;
  if (clause !== undefined) throw notSupported(`PIVOT beside ${clause} (put it in a sub-query)`, pivot!.at);
}

/** `select keys, values, aggregates from … where value in (…) group by keys, values` */
function groupsOf(select: Select & { pivot: Pivot }, lists: SelectItem[][]): Select {
  const { pivot, from, where, whereAt, latestOn } = select;
  const item = (expression: Expression, text: string): SelectItem => ({
    at: expression.at,
    expression,
    alias: { text, at: expression.at, quoted: true },
  });
  const items = [
    ...pivot.groupBy.map((key, index) => item(key, KEY(index))),
    ...pivot.columns.map(({ expression }, index) => item(expression, VALUE(index))),
    ...pivot.aggregates.map(({ expression }, index) => item(expression, AGGREGATE(index))),
  ];
  const listed = pivot.columns.map(({ expression }, index): Expression => ({
    kind: "in",
    at: expression.at,
    operand: expression,
    items: lists[index]!.map((value) => value.expression),
    bare: false,
    negated: false,
  }));
  const conditions = where === undefined ? listed : [where, ...listed];
  return {
    kind: "select",
    at: pivot.at,
    declares: [],
    with: [],
    distinct: false,
    distinctAt: pivot.at,
    items,
    bare: false,
    from,
    where: conditions.reduce((left, right) => ({ kind: "binary", at: right.at, operator: "and", left, right })),
    whereAt: whereAt ?? pivot.at,
    latestOn,
    groupBy: {
      at: pivot.at,
      items: items.slice(0, pivot.groupBy.length + pivot.columns.length).map((i) => i.expression),
    },
    windows: [],
    orderBy: [],
  };
}

/** The values of all lists combined, the last list varying fastest. */
function* combinations(lists: SelectItem[][], { at, aggregates }: Pivot): Generator<SelectItem[]> {
  const count = lists.reduce((product, list) => product * list.length, aggregates.length);
  if (count > COLUMNS_MAX) {
    throw new SqlError(
      `PIVOT would make ${count} columns: at most ${COLUMNS_MAX} are allowed`,
      at,
      SQLSTATE.programLimitExceeded,
    );
  }
  const next = function* (chosen: SelectItem[]): Generator<SelectItem[]> {
    if (chosen.length === lists.length) return yield chosen;
    for (const value of lists[chosen.length]!) yield* next([...chosen, value]);
  };
  yield* next([]);
}

/** The aggregate of the group that has these values. Of none it is null, or 0 if it counts. */
function pickOf({ at, expression }: SelectItem, index: number, type: string, values: SelectItem[]): Expression {
  const column = (text: string): Expression => ({ kind: "column", at, path: [{ text, at, quoted: true }] });
  const call = (name: string, ...args: Expression[]): Expression => ({
    kind: "call",
    at,
    name,
    args,
    distinct: false,
    ignoreNulls: false,
  });
  const when = values.map(({ expression: value }, list): Expression => ({
    kind: "binary",
    at: value.at,
    operator: "=",
    left: column(VALUE(list)),
    right: value,
  })).reduce((left, right) => ({ kind: "binary", at: right.at, operator: "and", left, right }));
  const of = (then: Expression): Expression => ({ kind: "case", at, branches: [{ when, then }] });
  const value: Expression = NEVER_NULL.has(type)
    ? { kind: "cast", at, operand: column(AGGREGATE(index)), type: INT, style: "::" }
    : column(AGGREGATE(index));
  if (type === "BOOLEAN") return call("bool_or", { kind: "binary", at, operator: "and", left: when, right: value });
  const picked = call("first_not_null", of(value));
  const counts = expression.kind === "call" && COUNTS.has(expression.name.toLowerCase());
  return counts ? call("coalesce", picked, { kind: "number", at, text: "0" }) : picked;
}

/** Whole numbers that cannot be null become INT. A BOOLEAN of no group is false. */
const NEVER_NULL = new Set(["BYTE", "SHORT"]);
const INT: TypeName = { at: 0, name: "int", parameters: [], dimensions: 0 };
const COUNTS = new Set(["count", "count_distinct", "approx_count_distinct"]);

/** The values, and the aggregate if there are several or it has an alias, joined by `_`. */
function nameOf({ aggregates }: Pivot, { alias, expression }: SelectItem, values: SelectItem[]): string {
  const parts = values.map((value) => value.alias?.text ?? nameOfText(textOf(value.expression)));
  if (alias !== undefined) parts.push(alias.text);
  else if (aggregates.length > 1) parts.push(expressionText(expression));
  return parts.join("_");
}

function textOf(value: Expression): string {
  return value.kind === "string" ? value.value : expressionText(value);
}

function refuseWithoutAggregate(e: Expression): void {
  if (!hasAggregate(e)) throw new SqlError("PIVOT needs an aggregate here", e.at, SQLSTATE.grouping);
}

function hasAggregate(e: Expression): boolean {
  return contains(e, (part) => part.kind === "call" && aggregateKind(part.name) === "aggregate");
}

/** Their columns would have the same name and the same rows. */
function refuseRepetition(values: SelectItem[]): void {
  const seen = new Set<string>();
  for (const { at, expression } of values) {
    const text = expressionText(expression);
    if (seen.has(text)) throw new SqlError(`the list of PIVOT has ${text} twice`, at, SQLSTATE.duplicateColumn);
    seen.add(text);
  }
}

/** Values of a list are the same for all rows. */
function refuseColumns(value: Expression): void {
  contains(value, (part) => {
    if (part.kind !== "column") return false;
    throw new SqlError("a list of PIVOT needs constants: found a column", part.at, SQLSTATE.grouping);
  });
}

/** True if `test` is true for one of the nodes of a tree. */
function contains(tree: unknown, test: (part: Expression) => boolean): boolean {
  if (typeof tree !== "object" || tree === null) return false;
  return "kind" in tree && test(tree as Expression) || Object.values(tree).some((part) => contains(part, test));
}

function refusePosition(e: Expression): void {
  if (!isPlain(e)) return;
  throw new SqlError("GROUP BY of PIVOT needs an expression, not a constant or a position", e.at, SQLSTATE.grouping);
}
