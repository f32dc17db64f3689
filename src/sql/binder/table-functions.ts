/** Table functions in FROM: long_sequence, generate_series, read_parquet, and metadata. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { TableSchema } from "../../storage/contract.ts";
import type { Value } from "../../types/mod.ts";
import type { Expression, FunctionCall } from "../ast.ts";
import { LongStatement } from "../effort.ts";
import { TEXT_ARRAY_FUNCTIONS } from "../functions/meta.ts";
import { hasNanoseconds } from "../functions/mod.ts";
import type { Expr, Plan } from "../plan.ts";
import { catalogName } from "./catalog-tables.ts";
import { type FileColumns, type Names, NO_NAMES, typeMismatch, unknownFunction, UNTYPED } from "./context.ts";
import { convertConstant, fold, foldAtNow } from "./convert.ts";
import { type Constant, constant } from "./literals.ts";
import { metadataFunction, metadataFunctions, metadataPlan } from "./metadata.ts";
import { columnOf, project } from "./plans.ts";
import type { Queries } from "./query.ts";
import { isInteger, isTextOrChar, isTime } from "./types.ts";
import { boundView, viewColumns } from "./views.ts";

const ROW_FUNCTIONS = [
  "long_sequence",
  "generate_series",
  "pg_get_keywords",
  "read_parquet",
  "parquet_scan",
  ...metadataFunctions(),
];

export const isRowFunction = (name: string): boolean => ROW_FUNCTIONS.includes(name.toLowerCase());

/** The full name of the catalogue table that is called like a function: `pg_class()`, `information_schema.tables()`. */
export function calledTable({ schema, name, args }: FunctionCall): string | undefined {
  if (args.length > 0) return undefined;
  if (schema !== undefined) return catalogName(`${schema}.${name}`);
  return isRowFunction(name) ? undefined : catalogName(name) ?? catalogName(`information_schema.${name}`);
}

/** `name`: the qualifier of the columns if the source has no alias. */
export function tableFunction(
  queries: Queries,
  call: FunctionCall,
  names: Names,
): { plan: Plan; name: string; notice?: string } {
  const name = call.name.toLowerCase();
  switch (name) {
    case "long_sequence":
      return { plan: longSequence(queries, call, names), name };
    case "generate_series":
      return { plan: generateSeries(queries, call, names), name };
    case "pg_get_keywords":
      checkCount(call, 0, 0);
      return { plan: keywords(queries.language.keywords), name };
    case "read_parquet":
    case "parquet_scan":
      return { ...readParquet(queries, call, names), name };
  }
  if (TEXT_ARRAY_FUNCTIONS.has(name)) {
    const columns = [{ name, type: "STRING" }], { value } = constantOf(queries, call, names);
    return { plan: { node: "values", columns, rows: [[value]], timestamp: -1, order: "none" }, name };
  }
  const metadata = metadataFunction(name);
  if (metadata === undefined) {
    throw unknownFunction(call.name, call.at, ROW_FUNCTIONS, " that gives rows");
  }
  checkCount(call, metadata.args, metadata.args);
  if (metadata.requires !== undefined) queries.binding.requires.add(metadata.requires, call.at);
  const { takes = "table" } = metadata;
  let ofTable: TableSchema | undefined, ofView: Plan | undefined;
  const args: Value[] = call.args.map((arg) => {
    const value = constantOf(queries, arg, names);
    if (typeof value.value !== "string") throw typeMismatch(`${call.name} needs ${WANTED[takes]}`, arg.at);
    if (takes === "pattern") checkPattern(value.value, arg.at);
    if (takes !== "table") return value.value;
    const { catalogue, views } = queries.binding.context, table = catalogue.table(value.value);
    const view = name === "table_columns" ? views?.view(value.value) : undefined;
    if (table === undefined && view !== undefined) {
      ofView = viewColumns(boundView(queries, view, arg.at, NO_NAMES));
      return view.name;
    }
    if (table === undefined) throw queries.binding.noTable({ text: value.value, at: arg.at });
    queries.binding.requires.ofColumns("SELECT", arg.at, table.schema).useTable();
    ofTable = table.schema;
    return table.schema.name;
  });
  const at = takes === "table" ? call.at : call.args[0]!.at;
  return { plan: ofView ?? metadataPlan(name, args, at, ofTable), name };
}

const WANTED = { table: "the name of a table", directory: "the path of a directory", pattern: "a pattern of paths" };

function checkPattern(pattern: string, at: number): void {
  if (pattern === "") throw new SqlError("glob needs a pattern of paths: found an empty text", at);
  if (pattern.split(/[\\/]/).includes("..")) {
    throw new SqlError("a pattern of paths cannot contain ..: it stays in the import directory", at);
  }
}

/** The keywords of this database's grammar. As in QuestDB, only `word` is set. */
function keywords(words: readonly string[]): Plan {
  const columns = ["word", "catcode", "barelabel", "catdesc", "baredesc"].map((column) => ({
    name: column,
    type: column === "barelabel" ? "BOOLEAN" : "STRING",
  }));
  const rows = words.map((word) => [word.toLowerCase(), null, false, null, null]);
  return { node: "values", columns, rows, timestamp: -1, order: "none" };
}

function checkCount(call: FunctionCall, least: number, most: number): void {
  if (call.args.length < least || call.args.length > most) {
    throw new SqlError(
      `${call.name} expects ${least === most ? least : `${least} to ${most}`} arguments: found ${call.args.length}`,
      call.at,
      SQLSTATE.undefinedFunction,
    );
  }
}

/** `standIn`: the value for a parameter that has none yet. */
function constantOf(queries: Queries, e: Expression, names: Names, standIn?: Constant): Constant {
  return valueOf(queries, queries.expressions.bind(e, { columns: [], names }), e.at, standIn);
}

function valueOf({ binding, expressions }: Queries, bound: Expr, at: number, standIn?: Constant): Constant {
  const value = foldAtNow(bound, binding) ?? (standIn && expressions.constantOf(bound, standIn));
  if (value === undefined) throw typeMismatch("expected a constant", at);
  return value;
}

function wholeNumber(queries: Queries, e: Expression, names: Names): bigint {
  const value = constantOf(queries, e, names, constant(1n, "LONG"));
  if (value.value === null || !isInteger(value.type)) throw typeMismatch("expected a whole number", e.at);
  return BigInt(value.value as number | bigint);
}

function sequence(name: string, type: string, start: bigint, step: bigint, count: bigint, at: number): Plan {
  if (count > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new SqlError(`too many rows: ${count}`, at, SQLSTATE.programLimitExceeded);
  }
  return {
    node: "sequence",
    columns: [{ name, type }],
    start,
    step,
    count: Number(count < 0n ? 0n : count),
    timestamp: -1,
    order: "none",
  };
}

function longSequence(queries: Queries, call: FunctionCall, names: Names): Plan {
  checkCount(call, 1, 3);
  if (call.args.length === 2) throw new SqlError(`${call.name} takes two seeds`, call.at, SQLSTATE.undefinedFunction);
  const given = constantOf(queries, call.args[0]!, names, constant(1n, "LONG"));
  if (given.type === "DOUBLE" || given.type === "FLOAT") {
    throw typeMismatch(`${call.name} needs a whole number`, call.at);
  }
  const whole = given.value !== null && isTextOrChar(given.type)
    ? convertConstant(given.value, given.type, "LONG")
    : given.value;
  if (whole === undefined || typeof whole === "string" || typeof whole === "boolean") {
    throw typeMismatch("expected a whole number", call.args[0]!.at);
  }
  const count = whole === null ? 0n : BigInt(whole);
  const plan = sequence("x", "LONG", 1n, 1n, count, call.args[0]!.at);
  if (call.args.length < 3) return plan;
  return {
    ...plan,
    seeds: [wholeNumber(queries, call.args[1]!, names), wholeNumber(queries, call.args[2]!, names)],
  } as Plan;
}

/** Months have no fixed length, so such series are computed while binding, up to this many rows. */
const CALENDAR_ROWS_MAX = 100_000;

function generateSeries(queries: Queries, call: FunctionCall, names: Names): Plan {
  checkCount(call, 2, 3);
  const name = "generate_series";
  const bound = call.args.map((arg) => queries.expressions.bind(arg, { columns: [], names }));
  const given = bound.map(({ type }) => type);
  const values = call.args.map((arg, i) => {
    const value = valueOf(queries, bound[i]!, arg.at, seriesStandIn(given, i));
    if (value.value === null) throw typeMismatch(`${call.name} does not accept null`, arg.at);
    return value;
  });
  const from = values[0]!, to = values[1]!, step = values[2];
  const stepAt = call.args[2]?.at ?? call.at;
  const isOfNanos = ({ type, value }: Constant) =>
    type === "TIMESTAMP_NS" || (isTextOrChar(type) && hasNanoseconds(String(value)));
  const timeType = [from, to].some(isOfNanos)
    ? "TIMESTAMP_NS"
    : [from, to].some((bound) => isTime(bound.type) || isTextOrChar(bound.type))
    ? "TIMESTAMP"
    : undefined;
  // Without a step, texts are parsed as numbers.
  if (step === undefined && [from, to].every((bound) => isTextOrChar(bound.type))) {
    throw new SqlError(`'${from.value}' is not a DOUBLE`, 0, SQLSTATE.invalidText, { caret: call.args[0]!.at });
  }
  if (timeType !== undefined) {
    const instant = (bound: Constant, i: number) => instantBound(queries, bound, timeType, call.args[i]!.at);
    if (step === undefined) {
      throw new SqlError(`${call.name} of times needs a step`, call.at, SQLSTATE.undefinedFunction);
    }
    const series = timeSeries(name, instant(from, 0), instant(to, 1), step, timeType, stepAt);
    const falls = typeof step.value === "string" ? step.value.startsWith("-") : Number(step.value) < 0;
    return { ...series, timestamp: 0, order: falls ? "desc" : "asc" };
  }
  const types = [from.type, to.type, step?.type ?? "INT"];
  if (types.every(isInteger)) {
    const whole = ({ value }: Constant) => BigInt(value as number | bigint);
    return longSeries(name, "LONG", whole(from), whole(to), step === undefined ? 1n : whole(step), stepAt);
  }
  if (!types.every((type) => isInteger(type) || type === "FLOAT" || type === "DOUBLE")) {
    throw typeMismatch(`${call.name} needs numbers or times`, call.at);
  }
  const size = step === undefined ? 1 : Number(step.value);
  return doubleSeries(queries, name, Number(from.value), Number(to.value), size, stepAt);
}

/** The value for a parameter that has none yet: its type decides about that of the series. */
function seriesStandIn(types: readonly string[], i: number): Constant {
  const type = types[i]!, isStep = i === 2;
  const ofTimes = types.slice(0, 2).some(isTime) || types.some(isTextOrChar);
  if (isTime(type)) return constant(0n, type);
  if (isTextOrChar(type)) return constant(isStep ? "1d" : "1970-01-01", "STRING");
  if (type === "DOUBLE" || type === "FLOAT") return constant(1, type);
  if (type !== UNTYPED) return constant(1n, "LONG");
  if (!ofTimes) return constant(1n, "LONG");
  return isStep ? constant("1d", "STRING") : constant(0n, "TIMESTAMP");
}

function instantBound(queries: Queries, bound: Constant, type: string, at: number): bigint {
  const direct = bound.value === null ? null : convertConstant(bound.value, bound.type, type);
  const value = direct ?? fold(queries.expressions.cast(bound, type, at), queries.binding)?.value;
  if (typeof value !== "bigint") throw typeMismatch("expected a time", at);
  return value;
}

/** The bounds may be in either order. The sign of the step is the direction. */
function longSeries(name: string, type: string, a: bigint, b: bigint, step: bigint, at: number): Plan {
  if (step === 0n) throw new SqlError("the step must not be 0", at, SQLSTATE.invalidParameter);
  const [low, high] = a < b ? [a, b] : [b, a];
  const size = step < 0n ? -step : step;
  const plan = sequence(name, type, step > 0n ? low : high, step, (high - low) / size + 1n, at);
  return plan;
}

function doubleSeries(queries: Queries, name: string, a: number, b: number, step: number, at: number): Plan {
  if (!(Math.abs(step) > 0) || !Number.isFinite(a) || !Number.isFinite(b)) {
    throw new SqlError("the step must not be 0", at, SQLSTATE.invalidParameter);
  }
  const [low, high] = a < b ? [a, b] : [b, a];
  const count = Math.floor((high - low) / Math.abs(step) + 1e-9) + 1;
  const steps = sequence(name, "LONG", 0n, 1n, BigInt(count), at);
  const { expressions } = queries;
  const product = expressions.operator("*", [
    expressions.cast(columnOf(steps, 0), "DOUBLE", at),
    constant(step, "DOUBLE"),
  ], at);
  const value: Expr = expressions.operator("+", [constant(step > 0 ? low : high, "DOUBLE"), product], at);
  return project(steps, [value], [name]);
}

const PERIOD_MICROS: Record<string, bigint> = {
  u: 1n,
  U: 1n,
  T: 1000n,
  s: 1_000_000n,
  m: 60_000_000n,
  h: 3_600_000_000n,
  d: 86_400_000_000n,
  w: 604_800_000_000n,
};

function timeSeries(name: string, a: bigint, b: bigint, step: Constant, type: string, at: number): Plan {
  if (step.value === null) throw typeMismatch("expected a step", at);
  if (isInteger(step.type)) return longSeries(name, type, a, b, BigInt(step.value as number | bigint), at);
  const match = /^(-?\d*)([nuUTsmhdwMy])$/.exec(String(step.value));
  if (match === null) {
    throw new SqlError(
      `invalid step '${step.value}': expected a number and one of n U T s m h d w M y`,
      at,
      SQLSTATE.invalidParameter,
    );
  }
  const digits = match[1]!, unit = match[2]!, count = BigInt(/\d/.test(digits) ? digits : `${digits}1`);
  if (unit === "M" || unit === "y") {
    return calendarSeries(name, a, b, Number(count) * (unit === "y" ? 12 : 1), type, at);
  }
  if (unit === "n") {
    if (type !== "TIMESTAMP_NS") throw notSupported("a step of nanoseconds over microseconds", at);
    return longSeries(name, type, a, b, count, at);
  }
  const scale = type === "TIMESTAMP_NS" ? 1000n : 1n;
  return longSeries(name, type, a, b, count * PERIOD_MICROS[unit]! * scale, at);
}

/** Steps by months: the day is clamped to the month's length, and the next step starts from the clamped day. */
function calendarSeries(name: string, a: bigint, b: bigint, months: number, type: string, at: number): Plan {
  if (months === 0) throw new SqlError("the step must not be 0", at, SQLSTATE.invalidParameter);
  const [low, high] = a < b ? [a, b] : [b, a];
  const perMilli = type === "TIMESTAMP_NS" ? 1_000_000n : 1000n;
  const rows: Value[][] = [];
  let now = months > 0 ? low : high;
  while (now >= low && now <= high) {
    if (rows.length === CALENDAR_ROWS_MAX) {
      throw new SqlError(`more than ${CALENDAR_ROWS_MAX} months`, at, SQLSTATE.programLimitExceeded);
    }
    rows.push([now]);
    const date = new Date(Number(now / perMilli));
    const day = date.getUTCDate();
    date.setUTCDate(1);
    date.setUTCMonth(date.getUTCMonth() + months);
    const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
    date.setUTCDate(Math.min(day, last));
    now = BigInt(date.getTime()) * perMilli + now % perMilli;
  }
  return { node: "values", columns: [{ name, type }], rows, timestamp: -1, order: "none" };
}

function readParquet(queries: Queries, call: FunctionCall, names: Names): { plan: Plan; notice?: string } {
  checkCount(call, 1, 1);
  const arg = call.args[0]!;
  const value = constantOf(queries, arg, names);
  if (typeof value.value !== "string" || value.value === "") throw typeMismatch("expected the name of a file", arg.at);
  const path = importPath(queries.binding.context.importRoot, value.value, arg.at);
  let schema: FileColumns;
  try {
    queries.binding.boundAnew = true; // the file may have other columns next time
    schema = queries.binding.context.parquetSchema(path);
  } catch (error) {
    if (error instanceof LongStatement) throw error;
    if (error instanceof SqlError) throw new SqlError(error.message, arg.at, error.sqlState, { cause: error });
    throw new SqlError(
      `${value.value} cannot be read as Parquet: ${error instanceof Error ? error.message : error}`,
      arg.at,
      SQLSTATE.invalidParameter,
      { cause: error },
    );
  }
  const plan: Plan = {
    node: "parquet",
    path,
    root: queries.binding.context.importRoot,
    fileColumns: schema.columns.map((column) => column.name),
    at: arg.at,
    columns: schema.columns.map(({ name, type }) => ({ name, type })),
    timestamp: -1,
    order: "none",
  };
  return { plan, notice: leaveOut(queries, schema, value.value, arg.at) };
}

/** Records why columns cannot be read. Returns the notice for a `*` that omits them. */
function leaveOut(queries: Queries, { columns, leftOut }: FileColumns, file: string, at: number): string | undefined {
  if (leftOut.length === 0) return undefined;
  const { unreadable } = queries.binding;
  for (const { name, type } of leftOut) {
    unreadable.set(name.toLowerCase(), `column ${name} of ${file} cannot be read: its type ${type} is not supported`);
  }
  const named = leftOut.slice(0, LEFT_OUT_NAMED_MAX).map(({ name, type }) => `${name} (${type})`).join(", ");
  const more = leftOut.length - LEFT_OUT_NAMED_MAX;
  const list = more > 0 ? `${named} and ${more} more` : named;
  if (columns.length === 0) {
    throw new SqlError(`no column of ${file} has a supported type: ${list}`, at, SQLSTATE.featureNotSupported);
  }
  return `${file}: * omits columns of unsupported types: ${list}`;
}

/** Limits the number of names in the notice. */
const LEFT_OUT_NAMED_MAX = 50;

/** Files must be in the import directory: no `..`, and an absolute path must begin with the directory. */
function importPath(root: string, path: string, at: number): string {
  const refused = (): SqlError =>
    new SqlError(`${path} is not in the import directory`, at, SQLSTATE.insufficientPrivilege);
  const parts = path.split(/[\\/]/);
  if (parts.includes("..") || path.includes("\0")) throw refused();
  const base = root.replace(/[\\/]+$/, "");
  if (/^([\\/]|[A-Za-z]:)/.test(path)) {
    if (path.startsWith(`${base}/`) || path.startsWith(`${base}\\`)) return path;
    throw refused();
  }
  return `${base}/${path}`;
}
