/**
 * CREATE TABLE and what changes tables: DROP, TRUNCATE, RENAME, ALTER.
 */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { TableSchema, TableSnapshot } from "../../storage/contract.ts";
import type { AlterAction, ColumnDefinition, CreateTable, Name, OtherStatement as Statement } from "../ast.ts";
import type { Expr, NewColumn, NewTable, OtherBound, PartitionUnit, Plan } from "../plan.ts";
import { type Binding, NO_NAMES, typeMismatch, unknownColumn } from "./context.ts";
import { nextToken, placeBefore, placeOf } from "./places.ts";
import { columnOf, project } from "./plans.ts";
import type { Queries } from "./query.ts";
import type { ColumnUse } from "./requirements.ts";
import { displayName, isText, isTextOrChar, isTimestamp, tagOfType } from "./types.ts";
import { findNamed, hiddenCharacterFault, nameKey, sameName } from "../../types/names.ts";

/** Taken for QuestDB's sake; this storage has no use for them. */
const SETTINGS = new Set(["maxuncommittedrows", "o3maxlag"]);
const PARTITION_UNITS: PartitionUnit[] = ["NONE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"];
const TABLE_NAME_LENGTH_MAX = 127;
const SYMBOL_CAPACITY_DEFAULT = 256;

/** Empty, a sign that no file system takes, a blank at an end, two dots or a dot at an end: no name. */
export function checkTableName(name: Name): void {
  const { text } = name;
  const problem = text === ""
    ? "a name is wanted"
    : text.length > TABLE_NAME_LENGTH_MAX
    ? `the name has more than ${TABLE_NAME_LENGTH_MAX} characters`
    // deno-lint-ignore no-control-regex
    : /[?*:/\\%~(),+'"\u0000-\u001f\u007f\ufeff]/.test(text)
    ? `${text} has a character that a table's name cannot have`
    : /^\s|\s$|^\.|\.$|\..*\./.test(text)
    ? `${text} is no name for a table`
    : hiddenCharacterFault(text);
  if (problem === undefined) return;
  // The dialect points at the sign where it would split a path.
  const sign = Math.max(text.search(/[/\\]/), text.search(/\.\./));
  throw new SqlError(problem, sign > 0 ? name.at + sign : name.at, SQLSTATE.invalidName);
}

export function checkColumnName(name: Name): void {
  // deno-lint-ignore no-control-regex
  const hasSign = /[?.,'"\\/:()+\-*%~\u0000-\u001f\u007f\ufeff]/.test(name.text);
  if (name.text === "" || name.text.length > TABLE_NAME_LENGTH_MAX || hasSign) {
    throw new SqlError(`'${name.text}' is no name for a column`, name.at, SQLSTATE.invalidName);
  }
  const fault = hiddenCharacterFault(name.text);
  if (fault !== undefined) throw new SqlError(fault, name.at, SQLSTATE.invalidName);
}

const CAPACITY_MAX = 1073741824;
const INDEX_CAPACITY_MAX = 8388608;

/** Names that clients write in casts, as PostgreSQL has them; columns go by the dialect's own. */
const CAST_ONLY = new Set(["bool", "int2", "int4", "int8", "float4", "float8", "timestamptz"]);

function newColumn(definition: ColumnDefinition, text: string | undefined): NewColumn {
  checkColumnName(definition.name);
  if (CAST_ONLY.has(definition.type.name)) {
    throw new SqlError(
      `there is no type ${definition.type.name} for a column`,
      definition.type.at,
      SQLSTATE.undefinedFunction,
    );
  }
  const type = tagOfType(definition.type);
  const { symbolCapacity, symbolCached, indexed } = definition;
  if (type !== "SYMBOL" && (symbolCapacity !== undefined || symbolCached !== undefined || indexed === true)) {
    throw new SqlError(
      "only a SYMBOL has capacity, cache and index",
      nextToken(text, definition.type.at + definition.type.name.length),
      SQLSTATE.syntax,
    );
  }
  if (symbolCapacity !== undefined && (symbolCapacity < 2 || symbolCapacity > CAPACITY_MAX)) {
    const word = placeOf(text, /\bcapacity\b/i, definition.type.at);
    throw new SqlError(
      `the capacity lies between 2 and ${CAPACITY_MAX}`,
      nextToken(text, word + "capacity".length),
      SQLSTATE.invalidParameter,
    );
  }
  const { indexCapacity } = definition;
  if (indexCapacity !== undefined && (indexCapacity < 2 || indexCapacity > INDEX_CAPACITY_MAX)) {
    const word = placeOf(text, /\bindex\s+capacity\b/i, definition.type.at);
    throw new SqlError(
      `the capacity of an index lies between 2 and ${INDEX_CAPACITY_MAX}`,
      nextToken(text, placeOf(text, /\bcapacity\b/i, word) + "capacity".length),
      SQLSTATE.invalidParameter,
    );
  }
  if (type === "INTERVAL") throw typeMismatch("a column cannot have the type INTERVAL", definition.type.at);
  return {
    name: definition.name.text,
    type,
    indexed: definition.indexed === true,
    symbolCapacity: type === "SYMBOL" ? capacityOf(definition.symbolCapacity) : 0,
    symbolCached: type === "SYMBOL" && definition.symbolCached !== false,
    indexCapacity: definition.indexCapacity === undefined ? undefined : capacityOf(definition.indexCapacity),
  };
}

/** Capacities are powers of two. */
function capacityOf(wanted: number | undefined): number {
  if (wanted === undefined) return SYMBOL_CAPACITY_DEFAULT;
  let capacity = 2;
  while (capacity < wanted) capacity *= 2;
  return capacity;
}

export function bindCreateTable(queries: Queries, create: CreateTable): OtherBound {
  const { binding } = queries;
  checkTableName(create.name);
  binding.requires.add("CREATE TABLE", create.at);
  const existing = binding.context.catalogue.table(create.name.text);
  if (existing !== undefined && !create.ifNotExists) {
    throw new SqlError(`the table ${create.name.text} exists already`, create.name.at, SQLSTATE.duplicateTable);
  }
  if (create.like !== undefined) return createLike(binding, create);
  const { columns, plan, inherited } = create.query === undefined
    ? { columns: definedColumns(create.columns, binding.context.text), plan: undefined, inherited: -1 }
    : queryColumns(queries, create);
  let timestamp = inherited;
  if (create.timestamp !== undefined) {
    const name = create.timestamp;
    timestamp = columns.findIndex((column) => sameName(column.name, name.text));
    if (timestamp < 0) throw unknownColumn(name.text, name.at, columns);
    if (!isTimestamp(columns[timestamp].type)) {
      throw typeMismatch(
        `the designated timestamp is a TIMESTAMP: ${name.text} is ${displayName(columns[timestamp].type)}`,
        name.at,
      );
    }
  }
  for (const index of create.indexes) {
    const column = columns.find((candidate) => sameName(candidate.name, index.column.text));
    if (column === undefined) throw unknownColumn(index.column.text, index.column.at, columns);
    if (column.type !== "SYMBOL") {
      throw typeMismatch(
        `only a SYMBOL has an index: ${column.name} is ${displayName(column.type)}`,
        create.query === undefined ? index.column.at : 0,
      );
    }
    column.indexed = true;
    if (index.capacity !== undefined) column.indexCapacity = capacityOf(index.capacity);
  }
  const partitionBy = partitionUnit(create);
  if (partitionBy !== "NONE" && create.timestamp === undefined) {
    throw new SqlError("PARTITION BY wants TIMESTAMP(column)", create.partitionBy!.at, SQLSTATE.syntax);
  }
  const table: NewTable = {
    name: create.name.text,
    columns,
    timestamp,
    partitionBy,
    wal: create.wal ?? partitionBy !== "NONE",
    dedupKeys: dedupKeys(create, columns, timestamp, binding.context.text),
    ttl: create.ttl === undefined ? undefined : parseTtl(create.ttl, partitionBy),
  };
  if (create.wal === true && partitionBy === "NONE") {
    throw new SqlError(
      "a table without partitions has no WAL",
      placeBefore(binding.context.text, "wal", Infinity),
      SQLSTATE.syntax,
    );
  }
  for (const setting of create.settings) {
    if (SETTINGS.has(setting.name.toLowerCase())) continue;
    const written = /^\w+\s*=\s*\S+/.exec(binding.context.text?.slice(setting.at) ?? "");
    throw new SqlError(
      `there is no setting ${setting.name}`,
      setting.at + (written?.[0].length ?? 0),
      SQLSTATE.invalidParameter,
    );
  }
  return {
    kind: "createTable",
    table,
    ifNotExists: create.ifNotExists,
    at: create.name.at,
    plan: existing === undefined ? plan : undefined,
  };
}

function definedColumns(definitions: ColumnDefinition[], text: string | undefined): NewColumn[] {
  const taken = new Set<string>();
  return definitions.map((definition) => {
    const key = nameKey(definition.name.text);
    if (taken.has(key)) {
      throw new SqlError(
        `two columns are called ${definition.name.text}`,
        definition.name.at,
        SQLSTATE.duplicateColumn,
      );
    }
    taken.add(key);
    return newColumn(definition, text);
  });
}

function partitionUnit(create: CreateTable): PartitionUnit {
  if (create.partitionBy === undefined) return "NONE";
  const unit = create.partitionBy.unit.toUpperCase() as PartitionUnit;
  if (!PARTITION_UNITS.includes(unit)) {
    throw new SqlError(
      `${create.partitionBy.unit} is no partition: known are ${PARTITION_UNITS.join(", ")}`,
      create.partitionBy.at,
      SQLSTATE.syntax,
    );
  }
  return unit;
}

function dedupKeys(create: CreateTable, columns: NewColumn[], timestamp: number, text: string | undefined): number[] {
  if (create.dedupKeys === undefined) return [];
  const keys: number[] = [];
  for (const name of create.dedupKeys) {
    const index = columns.findIndex((column) => sameName(column.name, name.text));
    if (index < 0) throw unknownColumn(name.text, name.at, columns);
    if (columns[index].type.endsWith("[]")) throw typeMismatch(`${name.text} is an array and no key`, name.at);
    if (keys.includes(index)) throw new SqlError(`${name.text} is a key twice`, name.at, SQLSTATE.duplicateColumn);
    keys.push(index);
  }
  if (create.wal === false || create.partitionBy === undefined) {
    throw new SqlError(
      "DEDUP wants a table with WAL",
      placeBefore(text, "upsert", create.dedupKeys[0]?.at ?? Infinity),
    );
  }
  if (!keys.includes(timestamp)) {
    throw new SqlError("the keys of DEDUP must have the designated timestamp", create.dedupKeys[0]?.at ?? create.at);
  }
  return keys.sort((a, b) => a - b);
}

/** In hours, or in months for units of no fixed length. */
const TTL_UNITS: Record<string, [size: number, calendar: boolean]> = {
  h: [1, false],
  hour: [1, false],
  d: [24, false],
  day: [24, false],
  w: [168, false],
  week: [168, false],
  m: [1, true],
  month: [1, true],
  y: [12, true],
  year: [12, true],
};

function parseTtl(
  ttl: { at: number; text: string },
  partitionBy: PartitionUnit,
): { count: number; unit: string } | undefined {
  const match = /^(\d+)\s*([a-z]+)$/i.exec(ttl.text.trim());
  const singular = match?.[2].toLowerCase().replace(/s$/, "");
  const unit = singular === undefined ? undefined : TTL_UNITS[match![2] === "M" ? "m" : singular];
  if (unit === undefined) throw new SqlError(`'${ttl.text}' is no time to live`, ttl.at, SQLSTATE.invalidParameter);
  const count = Number(match![1]) * unit[0];
  if (count === 0) return undefined;
  if (partitionBy === "NONE") throw new SqlError("TTL wants partitions", ttl.at);
  const partition = TTL_UNITS[partitionBy.toLowerCase()];
  const fits = partition[1] ? unit[1] && count % partition[0] === 0 : unit[1] || count % partition[0] === 0;
  if (!fits) {
    throw new SqlError(
      `the time to live must be a multiple of a ${partitionBy.toLowerCase()}`,
      ttl.at,
      SQLSTATE.invalidParameter,
    );
  }
  if (unit[1]) return count % 12 === 0 ? { count: count / 12, unit: "YEAR" } : { count, unit: "MONTH" };
  if (count % 168 === 0) return { count: count / 168, unit: "WEEK" };
  return count % 24 === 0 ? { count: count / 24, unit: "DAY" } : { count, unit: "HOUR" };
}

function createLike(binding: Binding, create: CreateTable): OtherBound {
  const { schema } = binding.table(create.like!);
  binding.requires.ofColumns("SELECT", create.like!.at, schema).useTable();
  const table: NewTable = {
    name: create.name.text,
    columns: schema.columns.map(({ id: _, ...column }) => column),
    timestamp: schema.columns.findIndex((column) => column.id === schema.timestampId),
    partitionBy: schema.partitionBy,
    wal: schema.wal,
    dedupKeys: schema.dedupKeys.map((id) => schema.columns.findIndex((column) => column.id === id)),
    ttl: schema.ttl,
  };
  return { kind: "createTable", table, ifNotExists: create.ifNotExists, at: create.name.at };
}

/** Columns of CREATE TABLE AS, after its casts; the plan gives them in this order. */
function queryColumns(queries: Queries, create: CreateTable): { columns: NewColumn[]; plan: Plan; inherited: number } {
  const { plan, visible } = queries.bind(create.query!, NO_NAMES);
  const casts = new Map<number, { type: string; at: number; symbolCapacity?: number; symbolCached?: boolean }>();
  for (const { column, type, symbolCapacity, symbolCached } of create.casts) {
    const index = plan.columns.findIndex((candidate) => sameName(candidate.name, column.text));
    if (index < 0) throw unknownColumn(column.text, column.at, plan.columns);
    if (casts.has(index)) throw new SqlError(`${column.text} is cast twice`, column.at, SQLSTATE.duplicateColumn);
    casts.set(index, { type: tagOfType(type), at: column.at, symbolCapacity, symbolCached });
  }
  const columns: NewColumn[] = [];
  const expressions: Expr[] = [];
  for (let i = 0; i < visible; i++) {
    const { name } = plan.columns[i];
    checkColumnName({ text: name, at: create.name.at, quoted: false });
    if (columns.some((column) => sameName(column.name, name))) {
      throw new SqlError(`two columns are called ${name}`, 0, SQLSTATE.duplicateColumn);
    }
    let type = plan.columns[i].type;
    let expr = columnOf(plan, i);
    const wanted = casts.get(i);
    if (wanted !== undefined && wanted.type !== type) {
      if (!isStorableCast(type, wanted.type)) {
        throw typeMismatch(`${displayName(type)} cannot become ${displayName(wanted.type)}`, wanted.at);
      }
      if (!(isText(type) && wanted.type === "SYMBOL")) expr = queries.expressions.cast(expr, wanted.type, wanted.at);
      type = wanted.type;
    }
    if (type === "NULL") throw typeMismatch(`${name} has no type: cast the null`, 0);
    if (type === "INTERVAL") throw typeMismatch(`${name} is an INTERVAL, which cannot be stored`, 0);
    if (type === "SYMBOL_TEXT") type = "SYMBOL";
    const isSymbol = type === "SYMBOL";
    columns.push({
      name,
      type,
      indexed: false,
      symbolCapacity: isSymbol ? capacityOf(wanted?.symbolCapacity) : 0,
      symbolCached: isSymbol && wanted?.symbolCached !== false,
    });
    expressions.push(expr);
  }
  const changed = expressions.some((e, i) => e.kind !== "column" || e.index !== i) || visible < plan.columns.length;
  const inherited = plan.timestamp >= 0 && plan.timestamp < visible && isTimestamp(columns[plan.timestamp].type)
    ? plan.timestamp
    : -1;
  return {
    columns,
    plan: changed ? project(plan, expressions, columns.map((column) => column.name)) : plan,
    inherited,
  };
}

/** Numbers do not become symbols, text no integers; addresses and identifiers come from text only. */
function isStorableCast(from: string, to: string): boolean {
  if (isTextOrChar(from)) return !["BYTE", "SHORT", "INT", "LONG", "BOOLEAN"].includes(to) || from === "CHAR";
  return to !== "SYMBOL" && to !== "UUID" && to !== "IPv4";
}

export function bindDrop(binding: Binding, drop: Extract<Statement, { kind: "dropTable" }>): OtherBound {
  if (drop.all) {
    const tables = binding.context.catalogue.tables();
    for (const { schema } of tables) binding.requires.add("DROP TABLE", drop.at, schema);
    return {
      kind: "dropTable",
      names: tables.map(({ schema }) => ({ name: schema.name, at: drop.at })),
      ifExists: true,
    };
  }
  const name = drop.name!;
  const table = binding.context.catalogue.table(name.text);
  if (table === undefined && !drop.ifExists) throw binding.table(name);
  if (table !== undefined) binding.requires.add("DROP TABLE", name.at, table.schema);
  return {
    kind: "dropTable",
    names: table === undefined ? [] : [{ name: table.schema.name, at: name.at }],
    ifExists: drop.ifExists,
  };
}

export function bindRename(binding: Binding, rename: Extract<Statement, { kind: "rename" }>): OtherBound {
  const { schema } = binding.table({ ...rename.from, at: 0 });
  // The dialect finds both faults when it renames: at 0.
  checkTableName({ ...rename.to, at: 0 });
  const other = binding.context.catalogue.table(rename.to.text);
  if (other !== undefined) throw new SqlError(`the table ${rename.to.text} exists already`, 0, SQLSTATE.duplicateTable);
  binding.requires.add("RENAME TABLE", rename.from.at, schema);
  return { kind: "rename", tableId: schema.id, to: rename.to.text, at: rename.to.at };
}

export function bindAlter(binding: Binding, alter: Extract<Statement, { kind: "alterTable" }>): OtherBound {
  const { schema } = binding.table(alter.table);
  const { requires } = binding;
  const { action } = alter;
  switch (action.kind) {
    case "addColumn":
      requires.add("ADD COLUMN", alter.table.at, schema);
      return addColumns(schema, action, binding.context.text);
    case "dropColumn":
      return dropColumns(schema, action, requires.ofColumns("DROP COLUMN", alter.table.at, schema));
    case "renameColumn":
      return renameColumn(schema, action, requires.ofColumns("RENAME COLUMN", alter.table.at, schema));
    case "columnType":
      throw notSupported("ALTER COLUMN TYPE", action.at);
    case "other":
      throw notSupported(`ALTER TABLE … ${action.text}`, action.at);
  }
}

/** With WAL a statement changes one column. */
function checkOne(schema: TableSchema, items: { at: number }[]): void {
  if (schema.wal && items.length > 1) {
    throw new SqlError("on a table with WAL a statement changes one column", items[1].at, SQLSTATE.featureNotSupported);
  }
}

function findColumn(schema: TableSchema, name: Name): TableSnapshot["schema"]["columns"][number] {
  const column = findNamed(schema.columns, name.text);
  if (column === undefined) throw unknownColumn(name.text, name.at, schema.columns);
  return column;
}

function addColumns(
  schema: TableSchema,
  action: Extract<AlterAction, { kind: "addColumn" }>,
  text: string | undefined,
): OtherBound {
  checkOne(schema, action.columns.map((column) => column.name));
  const columns: NewColumn[] = [];
  for (const definition of action.columns) {
    const column = newColumn(definition, text);
    const known = schema.columns.find((candidate) => sameName(candidate.name, column.name));
    if (known !== undefined) {
      if (!action.ifNotExists) {
        throw new SqlError(`the column ${column.name} exists already`, definition.name.at, SQLSTATE.duplicateColumn);
      }
      if (known.type !== column.type) {
        throw typeMismatch(`the column ${column.name} exists as ${displayName(known.type)}`, definition.type.at);
      }
      continue;
    }
    if (columns.some((other) => sameName(other.name, column.name))) {
      throw new SqlError(`two columns are called ${column.name}`, definition.name.at, SQLSTATE.duplicateColumn);
    }
    columns.push(column);
  }
  return { kind: "addColumns", tableId: schema.id, columns, ifNotExists: action.ifNotExists, at: action.at };
}

function dropColumns(
  schema: TableSchema,
  action: Extract<AlterAction, { kind: "dropColumn" }>,
  dropped: ColumnUse,
): OtherBound {
  checkOne(schema, action.columns);
  const columnIds = action.columns.map((name) => {
    const column = findColumn(schema, name);
    dropped.use(column.id, name.text, name.at);
    if (column.id === schema.timestampId) {
      throw new SqlError("the designated timestamp cannot be dropped", 0, SQLSTATE.invalidParameter);
    }
    return column.id;
  });
  return { kind: "dropColumns", tableId: schema.id, columnIds };
}

function renameColumn(
  schema: TableSchema,
  action: Extract<AlterAction, { kind: "renameColumn" }>,
  renamed: ColumnUse,
): OtherBound {
  if (action.renames.length > 1) throw notSupported("a list of columns to rename", action.renames[1].from.at);
  const [{ from, to }] = action.renames;
  const column = findColumn(schema, from);
  renamed.use(column.id, from.text, from.at);
  if (column.id === schema.timestampId) {
    throw new SqlError("the designated timestamp cannot be renamed", 0, SQLSTATE.invalidParameter);
  }
  checkColumnName(to);
  if (schema.columns.some((other) => sameName(other.name, to.text))) {
    throw new SqlError(`the column ${to.text} exists already`, to.at, SQLSTATE.duplicateColumn);
  }
  return { kind: "renameColumn", tableId: schema.id, columnId: column.id, to: to.text };
}
