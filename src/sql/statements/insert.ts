/** INSERT of VALUES or of a query. */
import type { PostedPlan } from "../../engine/contract.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import { nearest } from "../../nearest.ts";
import type { TableSchema, TableSnapshot } from "../../storage/contract.ts";
import type { Value } from "../../types/mod.ts";
import { findNamed } from "../../types/names.ts";
import type { CommonTable, Expression, Name, Query, Statement, TextRange } from "../ast.ts";
import { assign, assigned, fromText, storedTag } from "../binder/assignment.ts";
import { innerNames, NO_NAMES, typeMismatch, unknownColumn } from "../binder/context.ts";
import { fold } from "../binder/convert.ts";
import { nullValue } from "../binder/expressions.ts";
import { constant, numberLiteral } from "../binder/literals.ts";
import { columnOf, project } from "../binder/plans.ts";
import type { Queries } from "../binder/query.ts";
import { nothing } from "../binder/scope.ts";
import { isRowFunction } from "../binder/table-functions.ts";
import { displayName, isInteger, isText } from "../binder/types.ts";
import type { BoundStatement, Column, Expr, Plan } from "../plan.ts";
import { at, matched, name, optional, tokenIndex } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import { done, type StatementKind } from "./statement.ts";

export interface Insert extends Statement {
  kind: "insert";
  table: Name;
  columns?: Name[];
  rows?: Expression[][];
  rowsAt: number[];
  /** Positions of the closing parentheses. */
  rowEnds: number[];
  query?: Query;
  with: CommonTable[];
  prelude?: TextRange;
}

/** The plan's columns are those of `columnIds`. Other columns of the table get nulls. */
export interface BoundInsert<P = PostedPlan> extends BoundStatement<P> {
  kind: "insert";
  tableId: number;
  columnIds: number[];
  plan: P;
  at: number;
  /** See `ChangedTable`. */
  timesAt?: number[];
}

type TableColumn = TableSchema["columns"][number];

export const insert: StatementKind<Insert, BoundInsert> = {
  kind: "insert",
  form: {
    words: ["INSERT"],
    followsWith: true,
    grammar: String.raw`
  insert = "INSERT" batching? "INTO" tableName columnNames? insertSource
  columnNames = "(" columnName ("," columnName)* ")"
  insertSource = "VALUES" "<rows>" ("," "<rows>")*       -- rows
               | ~("VALUES" | "(") query                 -- query`,
    actions: {
      insert(insert, batching, _into, table, columns, source): Insert {
        optional(batching);
        return {
          kind: "insert",
          at: at(insert),
          table: onlyName(table.tree()),
          columns: optional(columns),
          with: [],
          ...source.tree() as Pick<Insert, "rows" | "rowsAt" | "rowEnds" | "query">,
        };
      },
      columnNames(_open, first, _commas, rest, _close) {
        return [first, ...rest.children].map(name);
      },
      insertSource_rows(_values, rows, _commas, _more) {
        return matched.source.rows(tokenIndex(rows));
      },
      insertSource_query(query) {
        return { query: query.tree() as Query, rowsAt: [], rowEnds: [] };
      },
    },
  },
  reference: {
    syntax: `INSERT INTO table [(column, …)] VALUES (value, …), …
INSERT [BATCH n | ATOMIC] INTO table [(column, …)] query`,
    summary: "Adds rows from VALUES or from a query. Columns that are not listed get NULL.",
  },
  category: "dml",
  requires: ["INSERT"],

  bind: bindInsert,
  explain: () => "Insert",

  execute(bound, run) {
    const inserted = (rows: number) => done("dml", `INSERT 0 ${rows}`, rows), rows = run.append(bound);
    return rows instanceof Promise ? rows.then(inserted) : inserted(rows);
  },
};

function bindInsert(insert: Insert, queries: Queries): BoundInsert<Plan> {
  const { binding } = queries;
  const snapshot = binding.table(insert.table);
  const { schema } = snapshot;
  binding.requires.add("INSERT", insert.table.at, schema);
  const columns = insert.columns === undefined ? [...schema.columns] : listedColumns(schema, insert.columns);
  const noTimestamp = schema.timestampId >= 0 && !columns.some((column) => column.id === schema.timestampId);
  if (noTimestamp) {
    throw new SqlError(
      "the columns must include the designated timestamp",
      insert.query === undefined ? 0 : insert.table.at,
      SQLSTATE.invalidParameter,
    );
  }
  const plan = insert.query === undefined
    ? valuesPlan(queries, insert, columns, snapshot)
    : insertSelect(queries, insert, columns, schema);
  return {
    kind: "insert",
    tableId: schema.id,
    columnIds: columns.map((column) => column.id),
    plan,
    at: insert.table.at,
    timesAt: insert.rows && timesAt(insert.rows, columns, schema),
  };
}

/** The positions of the designated timestamps of rows for a table that has an order. */
function timesAt(rows: Expression[][], columns: TableColumn[], schema: TableSchema): number[] | undefined {
  if (schema.timestampId < 0 || schema.partitionBy !== "NONE") return undefined;
  const time = columns.findIndex(({ id }) => id === schema.timestampId);
  return rows.map((row) => row[time]!.at);
}

function listedColumns(schema: TableSchema, names: Name[]): TableColumn[] {
  const columns: TableColumn[] = [];
  for (const name of names) {
    const column = findNamed(schema.columns, name.text);
    if (column === undefined) throw unknownColumn(name.text, name.at, schema.columns);
    if (columns.includes(column)) throw new SqlError(`${name.text} is listed twice`, name.at, SQLSTATE.duplicateColumn);
    columns.push(column);
  }
  return columns;
}

/**
 * Plans VALUES. Literals are converted directly, without a plan for each value, because a statement may have many
 * thousand rows. Rows with parameters, or with calls that need run time, become projections of one row.
 */
function valuesPlan(queries: Queries, insert: Insert, columns: TableColumn[], snapshot: TableSnapshot): Plan {
  const output: Column[] = columns.map((column) => ({ name: column.name, type: storedTag(column.type) }));
  const parts: Plan[] = [];
  let known: Value[][] = [];
  const flush = (): void => {
    if (known.length > 0) parts.push({ node: "values", columns: output, rows: known, timestamp: -1, order: "none" });
    known = [];
  };
  insert.rows!.forEach((row, r) => {
    if (row.length !== columns.length) {
      const message = `expected ${columns.length} values: found ${row.length}`;
      throw new SqlError(message, insert.rowEnds[r]!, SQLSTATE.syntax);
    }
    const values: Value[] = new Array(row.length);
    let expressions: Expr[] | undefined;
    for (let i = 0; i < row.length; i++) {
      const isDesignated = columns[i]!.id === snapshot.schema.timestampId;
      const cell = inCell(() => bindCell(queries, row[i]!, columns[i]!, isDesignated), columns[i]!.name, r);
      if (cell.kind === "constant") {
        if (isDesignated) checkTimestamp(cell.value, row[i]!.at);
        values[i] = cell.value;
      } else {
        expressions ??= [];
        expressions[i] = cell;
      }
    }
    if (expressions === undefined) {
      known.push(values);
      return;
    }
    flush();
    const all = values.map((value, i) => expressions![i] ?? constant(value, output[i]!.type));
    for (let i = 0; i < row.length; i++) all[i] ??= expressions[i]!;
    parts.push(project(nothing().plan, all, output.map((column) => column.name)));
  });
  flush();
  return unionOf(parts, output);
}

const VALUE_STATES = new Set<string>([SQLSTATE.invalidText, SQLSTATE.outOfRange]);

/** Adds the column and row to the error of a value, because not all clients show positions in the text. */
function inCell(bindValue: () => Expr, column: string, row: number): Expr {
  try {
    return bindValue();
  } catch (error) {
    if (!(error instanceof SqlError) || !VALUE_STATES.has(error.sqlState)) throw error;
    const { message, position, sqlState, caret } = error;
    throw new SqlError(`${message} (column ${column} of row ${row + 1})`, position, sqlState, { caret, cause: error });
  }
}

/** A balanced tree of unions. A chain would be as deep as the number of rows. */
function unionOf(parts: Plan[], columns: Column[]): Plan {
  if (parts.length === 1) return parts[0]!;
  const middle = parts.length >> 1;
  return {
    node: "set",
    operator: "union all",
    left: unionOf(parts.slice(0, middle), columns),
    right: unionOf(parts.slice(middle), columns),
    columns,
    timestamp: -1,
    order: "none",
  };
}

function checkTimestamp(value: Value, at: number): void {
  const fault = value === null ? "null" : value as bigint < 0n ? "before 1970" : undefined;
  if (fault === undefined) return;
  throw new SqlError(`the designated timestamp must not be ${fault}`, at, SQLSTATE.invalidParameter);
}

function bindCell(queries: Queries, e: Expression, column: TableColumn, isDesignated: boolean): Expr {
  const target = storedTag(column.type);
  switch (e.kind) {
    case "null":
      return constant(nullValue(target), target);
    case "string":
      if (isDesignated) return fromText(e.value, target, e.at, true);
      return assigned(e.value, e.value.length === 1 ? "CHAR" : "STRING", target, e.at);
    case "number": {
      const literal = numberLiteral(e.text, e.at);
      return assigned(literal.value, literal.type, target, e.at);
    }
  }
  const bound = queries.expressions.bind(e, { columns: [], names: NO_NAMES });
  const text = isDesignated && isText(bound.type) ? fold(bound, queries.binding)?.value : undefined;
  if (typeof text === "string") return fromText(text, target, e.at, true);
  return assign(queries, bound, target, e.at);
}

/** `insert into t valeus (1)` parses as a table function. */
function refuseMisspeltValues(query: Query): void {
  if (query.kind !== "select" || !query.bare || query.from?.kind !== "function") return;
  const { name, at } = query.from.call;
  if (nearest(name, ["VALUES"]) === undefined || isRowFunction(name)) return;
  throw new SqlError(`Cannot read the statement: found ${name}; did you mean VALUES?`, at);
}

/** The position of the expression that gives column `index`; of a set operation, in its first query. */
function itemAt(query: Query, index: number): number {
  if (query.kind === "set") return itemAt(query.left, index);
  const star = query.items.findIndex(({ expression }) => expression.kind === "star");
  const item = query.items[star < 0 ? index : Math.min(star, index)];
  return item?.expression.at ?? query.at;
}

function insertSelect(queries: Queries, insert: Insert, columns: TableColumn[], schema: TableSchema): Plan {
  refuseMisspeltValues(insert.query!);
  const { plan, visible } = queries.bind(insert.query!, innerNames({ ...insert, declares: [] }, NO_NAMES));
  const designated = columns.findIndex((column) => column.id === schema.timestampId);
  const timeType = designated < visible ? plan.columns[designated]?.type : undefined;
  const isNoTime = timeType !== undefined && (isInteger(timeType) || timeType === "CHAR" || timeType === "NULL");
  if (isNoTime && (insert.columns === undefined || visible === columns.length)) {
    throw typeMismatch(`the designated timestamp cannot have type ${displayName(timeType)}`, insert.table.at);
  }
  if (visible !== columns.length) {
    throw new SqlError(
      `expected ${columns.length} columns: the query gives ${visible}`,
      insert.columns === undefined ? insert.query!.at : insert.table.at,
      SQLSTATE.syntax,
    );
  }
  const expressions = columns.map((column, i): Expr => {
    const target = storedTag(column.type);
    const isDesignated = column.id === schema.timestampId;
    const at = insert.columns?.[i]?.at ?? (isDesignated ? insert.table.at : itemAt(insert.query!, i));
    const source = columnOf(plan, i);
    const constantValue = plan.node === "project" ? fold(plan.expressions[i]!, queries.binding) : undefined;
    if (constantValue !== undefined && !isText(target)) {
      const value = assigned(constantValue.value, constantValue.type, target, at);
      // This is found when the row is written, so there is no position.
      if (isDesignated && value.value === null) {
        throw new SqlError("the designated timestamp must not be null", 0, SQLSTATE.invalidParameter);
      }
      return value;
    }
    return assign(queries, source, target, at);
  });
  if (expressions.every((e, i) => e.kind === "column" && e.index === i) && visible === plan.columns.length) return plan;
  return project(plan, expressions, columns.map((column) => column.name));
}
