import type { PostedPlan } from "../../engine/contract.ts";
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import { findNamed } from "../../types/names.ts";
import type { CommonTable, Expression, Name, Source, SourceNames, Statement, TextRange } from "../ast.ts";
import { assign, INTEGER_BITS, notAssignable, storedTag } from "../binder/assignment.ts";
import { resolveOverload } from "../binder/calls.ts";
import { ChangedRows } from "../binder/changed-rows.ts";
import { innerNames, NO_NAMES, unknownColumn } from "../binder/context.ts";
import { fold } from "../binder/convert.ts";
import { columnOf, project, sort } from "../binder/plans.ts";
import type { Queries } from "../binder/query.ts";
import type { Relation } from "../binder/scope.ts";
import { bindSource, changedRelation, scanOf } from "../binder/sources.ts";
import { isInteger, isTimestamp } from "../binder/types.ts";
import type { AggregateCall, BoundStatement, Expr, Plan } from "../plan.ts";
import { at, list, name, optional } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import { done, type StatementKind } from "./statement.ts";

interface Update extends Statement {
  kind: "update";
  table: Name;
  alias?: Name;
  sets: { column: Name; value: Expression }[];
  from?: Source;
  where?: Expression;
  with: CommonTable[];
  prelude?: TextRange;
}

/** The plan returns new values of `columnIds`, then the row id. */
export interface BoundUpdate<P = PostedPlan> extends BoundStatement<P> {
  kind: "update";
  tableId: number;
  columnIds: number[];
  plan: P;
  at: number;
}

export const update: StatementKind<Update, BoundUpdate> = {
  kind: "update",
  form: {
    words: ["UPDATE"],
    followsWith: true,
    grammar: String.raw`
  update = "UPDATE" ~"SET" tableName sourceAlias? "SET" assignment ("," assignment)* from? where?
  assignment = (name ".")? columnName "=" expr`,
    actions: {
      update(update, table, alias, _set, first, _commas, rest, from, where): Update {
        return {
          kind: "update",
          at: at(update),
          table: onlyName(table.tree()),
          alias: optional<SourceNames>(alias)?.alias,
          sets: list(first, rest),
          from: optional(from),
          where: optional(where),
          with: [],
        };
      },
      assignment(_table, _dot, column, _equals, value) {
        return { column: name(column), value: value.tree() as Expression };
      },
    },
  },
  reference: {
    syntax: "UPDATE table [alias] SET column = value, … [FROM source] [WHERE condition]",
    summary: "Changes values in the rows for which the condition holds.",
  },
  category: "dml",
  requires: ["UPDATE"],

  bind: bindUpdate,
  explain: () => "Update",

  async execute(bound, run) {
    const rows = await run.changeRows(bound, "update");
    return done("dml", `UPDATE ${rows}`, rows);
  },
};

function bindUpdate(update: Update, queries: Queries): BoundUpdate<Plan> {
  const { binding, expressions } = queries;
  const table = binding.context.catalogue.table(update.table.text);
  if (table === undefined) throw binding.noTable({ text: update.table.text, at: 0 });
  const { schema } = table;
  const changed = binding.requires.ofColumns("UPDATE", update.table.at, schema);
  const scan = scanOf(table, true);
  const target = changedRelation(queries, scan, update.table, update.alias);
  const names = innerNames({ ...update, declares: [] }, NO_NAMES);
  const source = update.from === undefined ? undefined : bindSource(queries, update.from, names);
  if (source?.windowJoins !== undefined || source?.isHorizon === true) {
    throw notSupported("a WINDOW JOIN or HORIZON JOIN in UPDATE (put it in a sub-query)", update.from!.at);
  }
  const relation = source === undefined ? target : crossed(target, source);
  const rows = new ChangedRows(queries, relation, names);
  const seen = new Set<number>();
  const columnIds: number[] = [];
  const values: Expr[] = [];
  for (const { column: name, value } of update.sets) {
    const column = findNamed(schema.columns, name.text);
    if (column === undefined) throw unknownColumn(name.text, name.at, schema.columns);
    if (seen.has(column.id)) throw new SqlError(`${name.text} is set twice`, name.at, SQLSTATE.duplicateColumn);
    seen.add(column.id);
    if (column.id === schema.timestampId) {
      throw new SqlError("the designated timestamp cannot be updated", name.at, SQLSTATE.invalidParameter);
    }
    const bound = expressions.bind(value, rows.values);
    refuseNarrowing(queries, bound, column.type, value.at);
    changed.use(column.id, name.text, name.at);
    columnIds.push(column.id);
    values.push(assign(queries, bound, storedTag(column.type), value.at));
  }
  if (update.where !== undefined) rows.keep(update.where);
  const rowId = columnOf(scan, scan.columns.length - 1);
  const changes = project(rows.plan, [...values, rowId], [...update.sets.map((set) => set.column.text), "row id"]);
  const plan = update.from !== undefined ? firstMatches(queries, changes, update.table.at) : rows.inOrder(changes);
  return { kind: "update", tableId: schema.id, columnIds, plan, at: update.table.at };
}

const BY_WIDTH = ["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"];

/** Unlike INSERT, UPDATE does not narrow values implicitly: it requires a cast. Constants that fit are accepted. */
function refuseNarrowing(queries: Queries, bound: Expr, target: string, at: number): void {
  const isLossy = BY_WIDTH.indexOf(target) >= 0
    ? BY_WIDTH.indexOf(bound.type) > BY_WIDTH.indexOf(target)
    : target === "DATE" && isTimestamp(bound.type);
  if (!isLossy) return;
  const value = fold(bound, queries.binding)?.value;
  if (value === null) return;
  if (isInteger(bound.type) && value !== undefined) {
    const whole = BigInt(value as number | bigint);
    if (BigInt.asIntN(INTEGER_BITS[target]!, whole) === whole) return;
  }
  if (target === "FLOAT" && typeof value === "number") return;
  throw notAssignable(bound.type, target, at);
}

/** Combines every row of the table with every row of FROM. WHERE turns this into a join. */
function crossed(target: Relation, from: Relation): Relation {
  const offset = target.plan.columns.length;
  const plan: Plan = {
    node: "join",
    type: "cross",
    left: target.plan,
    right: from.plan,
    leftKeys: [],
    rightKeys: [],
    columns: [...target.plan.columns, ...from.plan.columns],
    timestamp: -1,
    order: "none",
  };
  return {
    ...target,
    plan,
    columns: [...target.columns, ...from.columns.map((column) => ({ ...column, index: column.index + offset }))],
  };
}

/** A row that matches several rows of FROM takes the values of the first match. Rows are in the order of their ids. */
function firstMatches(queries: Queries, plan: Plan, at: number): Plan {
  const last = plan.columns.length - 1;
  const rowId = columnOf(plan, last);
  const aggregates = plan.columns.slice(0, last).map((_, i): AggregateCall => {
    const { id, args, type } = resolveOverload(queries.expressions, "first", [columnOf(plan, i)], at, "function");
    return { function: id, args, distinct: false, type, at };
  });
  const grouped: Plan = {
    node: "aggregate",
    input: plan,
    keys: [rowId],
    aggregates,
    columns: [
      { name: "row id", type: "LONG" },
      ...aggregates.map((call, i) => ({ name: plan.columns[i]!.name, type: call.type })),
    ],
    timestamp: -1,
    order: "none",
  };
  const sorted = sort(grouped, [{ expression: columnOf(grouped, 0), descending: false }]);
  const values = aggregates.map((_, i) => queries.expressions.cast(columnOf(sorted, i + 1), plan.columns[i]!.type, at));
  return project(sorted, [...values, columnOf(sorted, 0)], plan.columns.map((column) => column.name));
}
