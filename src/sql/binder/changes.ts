/**
 * INSERT, UPDATE, DELETE.
 */
import { decimalOf, formatDecimal, geohashBits, parseDecimal } from "../../types/wide.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { TableSchema, TableSnapshot } from "../../storage/contract.ts";
import { typeOf, type Value } from "../../types/mod.ts";
import { readValue } from "../../types/parse/mod.ts";
import type { Expression, Name, OtherStatement as Statement, Query } from "../ast.ts";
import { findOverload } from "../functions/mod.ts";
import { nearest } from "../../nearest.ts";
import { tokenize } from "../lexer.ts";
import type { AggregateCall, Column, Expr, OtherBound, Plan, ScanNode } from "../plan.ts";
import { resolveOverload } from "./calls.ts";
import { innerNames, NO_NAMES, tableNames, typeMismatch, unknownColumn, unknownTable, UNTYPED } from "./context.ts";
import { fold } from "./convert.ts";
import { nullValue } from "./expressions.ts";
import { type Constant, constant, numberLiteral } from "./literals.ts";
import { leavingOutIntervals } from "./membership.ts";
import { columnOf, filter, project, sort } from "./plans.ts";
import { nothing, type Relation } from "./scope.ts";
import type { Queries } from "./query.ts";
import { bindSource, scanOf, storedColumns } from "./sources.ts";
import { isRowFunction } from "./table-functions.ts";
import { displayName, isInteger, isNumber, isText, isTextOrChar, isTime, isTimestamp } from "./types.ts";
import { findNamed } from "../../types/names.ts";

type Insert = Extract<Statement, { kind: "insert" }>;
type TableColumn = TableSchema["columns"][number];

export function bindInsert(queries: Queries, insert: Insert): OtherBound {
  const { binding } = queries;
  const snapshot = binding.table(insert.table);
  const { schema } = snapshot;
  binding.requires.add("INSERT", insert.table.at, schema);
  const columns = insert.columns === undefined ? [...schema.columns] : listedColumns(schema, insert.columns);
  const noTimestamp = schema.timestampId >= 0 && !columns.some((column) => column.id === schema.timestampId);
  if (noTimestamp) {
    throw new SqlError(
      "the designated timestamp is not among the columns",
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
    values: insert.query === undefined,
    at: insert.table.at,
  };
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
 * VALUES. Literals are converted right away, without a plan for each cell: a text may have many thousand rows. Rows with
 * parameters or with calls that only run time can answer become projections of one row.
 */
function valuesPlan(queries: Queries, insert: Insert, columns: TableColumn[], snapshot: TableSnapshot): Plan {
  const checkTime = timestampCheck(snapshot);
  const output: Column[] = columns.map((column) => ({ name: column.name, type: storedTag(column.type) }));
  const parts: Plan[] = [];
  let known: Value[][] = [];
  const flush = (): void => {
    if (known.length > 0) parts.push({ node: "values", columns: output, rows: known, timestamp: -1, order: "none" });
    known = [];
  };
  insert.rows!.forEach((row, r) => {
    if (row.length !== columns.length) {
      const at = rowEnd(queries.binding.context.text, insert.rowsAt[r]);
      throw new SqlError(`${columns.length} values are wanted: found ${row.length}`, at, SQLSTATE.syntax);
    }
    const values: Value[] = new Array(row.length);
    let expressions: Expr[] | undefined;
    for (let i = 0; i < row.length; i++) {
      const isDesignated = columns[i].id === snapshot.schema.timestampId;
      const cell = inCell(() => bindCell(queries, row[i], columns[i], isDesignated), columns[i].name, r);
      if (cell.kind === "constant") {
        if (isDesignated) checkTime(cell.value, row[i].at);
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
    const all = values.map((value, i) => expressions![i] ?? constant(value, output[i].type));
    for (let i = 0; i < row.length; i++) all[i] ??= expressions[i];
    parts.push(project(nothing().plan, all, output.map((column) => column.name)));
  });
  flush();
  return unionOf(parts, output);
}

const VALUE_STATES = new Set<string>([SQLSTATE.invalidText, SQLSTATE.outOfRange]);

/** A value that does not fit names its column and row: not all clients show the place in the text. */
function inCell(bindValue: () => Expr, column: string, row: number): Expr {
  try {
    return bindValue();
  } catch (error) {
    if (!(error instanceof SqlError) || !VALUE_STATES.has(error.sqlState)) throw error;
    const { message, position, sqlState, caret } = error;
    throw new SqlError(`${message} (column ${column} of row ${row + 1})`, position, sqlState, { caret, cause: error });
  }
}

/** The closing parenthesis of the row that begins at `from`: where a wrong number of values is reported. */
function rowEnd(text: string | undefined, from: number): number {
  let depth = 0;
  for (const token of text === undefined ? [] : tokenize(text)) {
    if (token.kind !== "operator" || token.at < from) continue;
    if (token.text === "(") depth++;
    if (token.text === ")" && --depth === 0) return token.at;
  }
  return from;
}

/** A tree of unions, balanced: a chain would be as deep as there are rows. */
function unionOf(parts: Plan[], columns: Column[]): Plan {
  if (parts.length === 1) return parts[0];
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

/** Texts on their way into a SYMBOL column have no codes yet. */
function storedTag(type: string): string {
  return type === "SYMBOL" ? "SYMBOL_TEXT" : type;
}

/** Checks designated timestamps in the order of rows: a table without partitions takes them in ascending order only. */
function timestampCheck(table: TableSnapshot): (value: Value, at: number) => void {
  const { schema } = table;
  let latest = schema.partitionBy === "NONE" ? table.timestampMax : null;
  return (value, at) => {
    if (value === null) throw new SqlError("the designated timestamp must not be null", at, SQLSTATE.invalidParameter);
    const time = value as bigint;
    if (time < 0n) {
      throw new SqlError("the designated timestamp must not be before 1970", at, SQLSTATE.invalidParameter);
    }
    if (schema.partitionBy !== "NONE") return;
    if (latest !== null && time < latest) {
      throw new SqlError(
        "the row is older than the table's last: a table without partitions takes rows in the order of time",
        at,
        SQLSTATE.invalidParameter,
      );
    }
    latest = time;
  };
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
    case "unary":
    case "boolean":
      break;
    case "column":
      throw unknownColumn(e.path.map((part) => part.text).join("."), e.at, []);
  }
  const bound = queries.expressions.bind(e, { columns: [], names: NO_NAMES });
  return assign(queries, bound, target, e.at);
}

/** An expression as a value for a column: what INSERT and UPDATE convert by themselves. */
export function assign(queries: Queries, bound: Expr, target: string, at: number): Expr {
  const settled = queries.expressions.settle(bound, target === "SYMBOL_TEXT" ? "STRING" : target);
  const folded = fold(settled, queries.binding);
  if (folded !== undefined) return assigned(folded.value, folded.type, target, at);
  if (settled.kind === "parameter" && settled.type === UNTYPED) return settled;
  if (settled.type === target) return settled;
  if (!isAssignable(settled.type, target)) throw notAssignable(settled.type, target, at);
  if (settled.type === "SYMBOL" && target === "SYMBOL_TEXT") return settled;
  return assignCall(queries, settled, target, at);
}

/** By "assign_<TYPE>" where there is one: what does not fit is an error then, and not null as in casts. */
function assignCall(queries: Queries, expr: Expr, target: string, at: number): Expr {
  const strict = findOverload(`assign_${target}`, [expr.type]);
  const fits = "entry" in strict && strict.types[0] === expr.type;
  return fits
    ? queries.expressions.operator(`assign_${target}`, [expr], at)
    : queries.expressions.cast(expr, target, at);
}

function notAssignable(from: string, to: string, at: number): SqlError {
  // The dialect tries whether the number of a time fits, when the row is written.
  const place = isTime(from) && isInteger(to) ? 0 : at;
  const message = `${displayName(from)} is no value for a column of type ${displayName(to)}`;
  return new SqlError(message, place, SQLSTATE.datatypeMismatch, { caret: at });
}

/** Which types go into which columns without a cast: text to all but BOOLEAN; numbers, truth values and times not to text. */
export function isAssignable(from: string, to: string): boolean {
  if (from === to || from === "NULL") return true;
  if (isTextOrChar(to)) {
    if (to === "CHAR") return isTextOrChar(from) && from !== "SYMBOL" && from !== "SYMBOL_TEXT";
    if (isTextOrChar(from)) return true;
    return (from === "UUID" || from === "IPv4") && to !== "SYMBOL_TEXT" && to !== "SYMBOL";
  }
  if (from === "SYMBOL" || from === "SYMBOL_TEXT") return isTimestamp(to) || to === "UUID";
  if (from === "CHAR" && ["UUID", "IPv4", "LONG256", "BINARY"].includes(to)) return false;
  if (isTextOrChar(from)) return to !== "BOOLEAN" && to !== "BINARY";
  if (to === "BOOLEAN" || from === "BOOLEAN") return false;
  if (decimalOf(to)) return decimalOf(from) !== undefined || isInteger(from);
  const fromBits = geohashBits(from), toBits = geohashBits(to);
  if (fromBits !== undefined && toBits !== undefined) return fromBits >= toBits;
  if (isNumber(from)) return isNumber(to) || (isTime(to) && isInteger(from));
  if (isTime(from)) return isTime(to) || to === "LONG" || to === "FLOAT" || to === "DOUBLE";
  return false;
}

const INTEGER_BITS: Record<string, number> = { BYTE: 8, SHORT: 16, INT: 32, LONG: 64 };

/** A constant as a column's value. @throws at the value for a type that does not go in, at 0 for a value that does not. */
function assigned(value: Value, from: string, to: string, at: number): Constant {
  if (value === null && isAssignable(from, to)) return constant(nullValue(to), to);
  if (from === to) return constant(value, to);
  if (value === null || !isAssignable(from, to)) throw notAssignable(from, to, at);
  const decimal = decimalOf(to);
  if (decimal && !isTextOrChar(from)) {
    const read = parseDecimal(formatDecimal(BigInt(value as number | bigint), decimalOf(from)?.scale ?? 0), decimal);
    if (read === undefined) {
      throw new SqlError(
        `${formatDecimal(BigInt(value as number | bigint), decimalOf(from)?.scale ?? 0)} does not fit ${to}`,
        0,
        SQLSTATE.outOfRange,
        { caret: at },
      );
    }
    return constant(read, to);
  }
  const fromBits = geohashBits(from), toBits = geohashBits(to);
  if (fromBits !== undefined && toBits !== undefined) {
    return constant((value as bigint) >> BigInt(fromBits - toBits), to);
  }
  if (isTextOrChar(from)) return fromText(value as string, to, at);
  const bits = INTEGER_BITS[to];
  if (isNumber(from) && bits !== undefined) return constant(wholeValue(value as number | bigint, to, bits, at), to);
  if (isNumber(from) && isNumber(to)) {
    const number = Number(value);
    if (to !== "FLOAT") return constant(number, to);
    const single = Math.fround(number);
    if (Number.isFinite(number) && !Number.isFinite(single)) {
      throw new SqlError(`${value} is out of the range of FLOAT`, 0, SQLSTATE.outOfRange, { caret: at });
    }
    return constant(single, to);
  }
  if (isNumber(from)) return constant(BigInt(value as number | bigint), to);
  if (isTime(from) && isTime(to)) return constant(scaleTime(value as bigint, from, to), to);
  if (isTime(from)) return constant(to === "LONG" ? value : Number(value), to);
  if (from === "UUID") return constant(uuidText(value as bigint), to);
  if (from === "IPv4") return constant(ipText(value as number), to);
  throw notAssignable(from, to, at);
}

/** `isInstant`: no other reading than that of a time will do. */
function fromText(value: string, to: string, at: number, isInstant = false): Constant {
  if (isText(to)) return constant(value, to);
  if (to === "CHAR") {
    if (value.length > 1) {
      throw new SqlError(`'${value}' is no CHAR`, 0, SQLSTATE.invalidText, { caret: at });
    }
    return constant(value === "" ? null : value, to);
  }
  if (to === "UUID" && value === "") return constant(null, to);
  // Elsewhere a text of digits is a number of the column's units, and no year.
  const units = isTime(to) && !isInstant ? readValue(value, "LONG") : undefined;
  const read = typeof units === "bigint" ? units : readValue(value, to);
  if (read instanceof Object) {
    // A time that nanoseconds cannot hold is told at its place, text that is no value at the statement's start.
    const isTooFar = to === "TIMESTAMP_NS" && typeof readValue(value, "TIMESTAMP") === "bigint";
    throw new SqlError(read.problem, isTooFar ? at : 0, SQLSTATE.invalidText, { caret: at });
  }
  return constant(read ?? nullValue(to), to);
}

/** Fractions are cut; what is out of range is an error when the row is written. */
function wholeValue(value: number | bigint, to: string, bits: number, at: number): Value {
  if (typeof value === "number" && !Number.isFinite(value)) return nullValue(to);
  const whole = typeof value === "bigint" ? value : BigInt(Math.trunc(value));
  const lowest = -(1n << BigInt(bits - 1));
  if (whole === lowest && typeOf(to).nullable) return null;
  if (BigInt.asIntN(bits, whole) !== whole) {
    throw new SqlError(`${value} is out of the range of ${displayName(to)}`, 0, SQLSTATE.outOfRange, { caret: at });
  }
  return to === "LONG" ? whole : Number(whole);
}

const TIME_SCALE: Record<string, bigint> = { DATE: 1_000_000n, TIMESTAMP: 1000n, TIMESTAMP_NS: 1n };

function scaleTime(value: bigint, from: string, to: string): bigint {
  const nanos = value * TIME_SCALE[from];
  const scale = TIME_SCALE[to];
  return nanos >= 0n ? nanos / scale : -((-nanos + scale - 1n) / scale);
}

function uuidText(value: bigint): string {
  const hex = BigInt.asUintN(128, value).toString(16).padStart(32, "0");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

function ipText(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");
}

/** `insert into t valeus (1)` reads as a function that gives rows. */
function refuseMisspeltValues(query: Query): void {
  if (query.kind !== "select" || !query.bare || query.from?.kind !== "function") return;
  const { name, at } = query.from.call;
  if (nearest(name, ["VALUES"]) === undefined || isRowFunction(name)) return;
  throw new SqlError(`Cannot read the statement: found ${name}; did you mean VALUES?`, at);
}

function insertSelect(queries: Queries, insert: Insert, columns: TableColumn[], schema: TableSchema): Plan {
  refuseMisspeltValues(insert.query!);
  const { plan, visible } = queries.bind(insert.query!, innerNames({ declares: [], with: insert.with }, NO_NAMES));
  const designated = columns.findIndex((column) => column.id === schema.timestampId);
  const timeType = designated < visible ? plan.columns[designated]?.type : undefined;
  const isNoTime = timeType !== undefined && (isInteger(timeType) || timeType === "CHAR" || timeType === "NULL");
  if (isNoTime && (insert.columns === undefined || visible === columns.length)) {
    throw typeMismatch(`the designated timestamp is wanted: found ${displayName(timeType)}`, insert.table.at);
  }
  if (visible !== columns.length) {
    throw new SqlError(
      `${columns.length} columns are wanted: the query gives ${visible}`,
      insert.columns === undefined ? insert.query!.at : insert.table.at,
      SQLSTATE.syntax,
    );
  }
  const expressions = columns.map((column, i): Expr => {
    const target = storedTag(column.type);
    const at = insert.columns?.[i].at ?? insert.table.at;
    const source = columnOf(plan, i);
    const constantValue = plan.node === "project" ? fold(plan.expressions[i], queries.binding) : undefined;
    if (constantValue !== undefined && !isText(target)) {
      const value = assigned(constantValue.value, constantValue.type, target, at);
      // Found when the row is written, not at a value's place.
      if (column.id === schema.timestampId && value.value === null) {
        throw new SqlError("the designated timestamp must not be null", 0, SQLSTATE.invalidParameter);
      }
      return value;
    }
    return assign(queries, source, target, at);
  });
  if (expressions.every((e, i) => e.kind === "column" && e.index === i) && visible === plan.columns.length) return plan;
  return project(plan, expressions, columns.map((column) => column.name));
}

export function bindUpdate(queries: Queries, update: Extract<Statement, { kind: "update" }>): OtherBound {
  const { binding, expressions } = queries;
  const table = binding.context.catalogue.table(update.table.text);
  if (table === undefined) throw unknownTable(update.table.text, 0, tableNames(binding.context.catalogue));
  const { schema } = table;
  const changed = binding.requires.ofColumns("UPDATE", update.table.at, schema);
  const scan = scanOf(table, true);
  const target = changeRelation(queries, scan, update.table, update.alias);
  const names = innerNames({ declares: [], with: update.with }, NO_NAMES);
  const relation = update.from === undefined ? target : crossed(target, bindSource(queries, update.from, names));
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
    const bound = expressions.bind(value, { columns: relation.columns, names });
    refuseNarrowing(queries, bound, column.type, value.at);
    changed.use(column.id, name.text, name.at);
    columnIds.push(column.id);
    values.push(assign(queries, bound, storedTag(column.type), value.at));
  }
  let { plan } = relation;
  if (update.where !== undefined) {
    const where = leavingOutIntervals(update.where, relation);
    plan = filter(plan, expressions.condition(where, { columns: relation.columns, names, isFilter: true }));
  }
  const rowId = columnOf(scan, scan.columns.length - 1);
  plan = project(plan, [...values, rowId], [...update.sets.map((set) => set.column.text), "row id"]);
  if (update.from !== undefined) plan = firstMatches(queries, plan, update.table.at);
  return { kind: "update", tableId: schema.id, columnIds, plan, at: update.table.at };
}

const BY_WIDTH = ["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"];

/** Unlike INSERT, UPDATE neither cuts nor takes what may not fit: a cast says that it is meant. Constants that fit are taken. */
function refuseNarrowing(queries: Queries, bound: Expr, target: string, at: number): void {
  const isLossy = BY_WIDTH.indexOf(target) >= 0
    ? BY_WIDTH.indexOf(bound.type) > BY_WIDTH.indexOf(target)
    : target === "DATE" && isTimestamp(bound.type);
  if (!isLossy) return;
  const value = fold(bound, queries.binding)?.value;
  if (value === null) return;
  if (isInteger(bound.type) && value !== undefined) {
    const whole = BigInt(value as number | bigint);
    if (BigInt.asIntN(INTEGER_BITS[target], whole) === whole) return;
  }
  if (target === "FLOAT" && typeof value === "number") return;
  throw notAssignable(bound.type, target, at);
}

/** Every row of the table beside every row of FROM; WHERE makes a join of it. */
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

/** A row that FROM matches more than once takes the values of the first match; rows come in the order of their ids. */
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
      ...aggregates.map((call, i) => ({ name: plan.columns[i].name, type: call.type })),
    ],
    timestamp: -1,
    order: "none",
  };
  const sorted = sort(grouped, [{ expression: columnOf(grouped, 0), descending: false }]);
  const values = aggregates.map((_, i) => queries.expressions.cast(columnOf(sorted, i + 1), plan.columns[i].type, at));
  return project(sorted, [...values, columnOf(sorted, 0)], plan.columns.map((column) => column.name));
}

export function bindDelete(queries: Queries, statement: Extract<Statement, { kind: "delete" }>): OtherBound {
  const { binding, expressions } = queries;
  const table = binding.table(statement.table);
  binding.requires.add("DELETE", statement.table.at, table.schema);
  const scan = scanOf(table, true);
  const relation = changeRelation(queries, scan, statement.table);
  let plan: Plan = scan;
  if (statement.where !== undefined) {
    const where = leavingOutIntervals(statement.where, relation);
    plan = filter(plan, expressions.condition(where, { columns: relation.columns, names: NO_NAMES, isFilter: true }));
  }
  plan = project(plan, [columnOf(scan, scan.columns.length - 1)], ["row id"]);
  return { kind: "delete", tableId: table.schema.id, plan, at: statement.table.at };
}

function changeRelation(queries: Queries, scan: ScanNode, table: Name, alias = table): Relation {
  const columns = storedColumns(queries, scan, alias, table.at);
  return { plan: scan, columns, isTable: true, timestamp: scan.timestamp };
}
