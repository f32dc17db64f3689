/** CREATE TABLE, with columns, LIKE or AS. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { Named } from "../../access/mod.ts";
import type { PostedPlan } from "../../engine/contract.ts";
import { nameKey, sameName } from "../../types/names.ts";
import type { Name, Query, Statement, TypeName } from "../ast.ts";
import { type Binding, NO_NAMES, typeMismatch, unknownColumn } from "../binder/context.ts";
import { columnOf, project } from "../binder/plans.ts";
import type { Queries } from "../binder/query.ts";
import { displayName, isText, isTextOrChar, isTimestamp, tagOfType } from "../binder/types.ts";
import {
  type BoundStatement,
  type Expr,
  type NewColumn,
  type NewTable,
  PARTITION_UNITS,
  type PartitionUnit,
  type Plan,
} from "../plan.ts";
import { at, given, list, many, name, newName, optional, word } from "../tree-nodes.ts";
import { ownerOf } from "./access/owned-by.ts";
import { type ColumnDefinition, newColumn } from "./columns.ts";
import { capacityOf, checkIncluded, indexCapacityOf, type IndexOption } from "./index-option.ts";
import { checkColumnName, checkTableName, onlyName, refuseOwn } from "./names.ts";
import { checkParquetOption, type ParquetOption } from "./parquet-option.ts";
import type { Setting } from "./parts.ts";
import { done, type StatementKind } from "./statement.ts";
import { dedupKeys, parseTtl, tableParams, type WrittenTtl } from "./table-options.ts";

export interface CreateTable extends Statement {
  kind: "createTable";
  name: Name;
  ifNotExists: boolean;
  columns: ColumnDefinition[];
  /** CREATE TABLE AS (query), which may be followed by `, cast(c as type)` and `, index(c)`. */
  query?: Query;
  casts: { column: Name; type: TypeName; symbolCapacity?: number; symbolCached?: boolean; parquet?: ParquetOption }[];
  indexes: { column: Name; option: IndexOption }[];
  like?: Name;
  timestamp?: Name;
  partitionBy?: { at: number; unit: string };
  ttl?: WrittenTtl;
  wal?: boolean;
  walAt?: number;
  dedupKeys?: Name[];
  /** Offset of UPSERT KEYS. */
  dedupAt?: number;
  /** WITH maxUncommittedRows = 1, o3MaxLag = 1s */
  settings: Setting[];
  ownedBy?: Named;
}

export interface BoundCreateTable<P = PostedPlan> extends BoundStatement<P> {
  kind: "createTable";
  table: NewTable;
  ifNotExists: boolean;
  at: number;
  /** For CREATE TABLE AS. The plan's columns are in the table's order. */
  plan?: P;
  ownedBy?: Named;
}

export const createTable: StatementKind<CreateTable, BoundCreateTable> = {
  kind: "createTable",
  form: {
    words: ["CREATE"],
    grammar: String.raw`
  createTable = "CREATE" batching? "TABLE" ifNotExists? tableName createBody createExtra* createOption*
  createBody = "(" "LIKE" tableName ")"                  -- like
             | "(" createItem ("," createItem)* ")"      -- columns
             | "AS" "(" query ")"                        -- query
             | "AS" query                                -- openQuery
  createItem = indexItem | columnDefinition
  indexItem = "INDEX" "(" name indexOption? ")"
  createExtra = "," "CAST" "(" name "AS" type columnOption* ")"  -- cast
              | "," indexItem                            -- index
  createOption = "TIMESTAMP" "(" name ")"                -- timestamp
               | "PARTITION" "BY" name                   -- partition
               | "TTL" ttl                               -- ttl
               | "BYPASS" "WAL"                          -- bypass
               | "WAL"                                   -- wal
               | "WITH" setting ("," setting)*           -- with
               | "DEDUP" keys                            -- dedup
               | "IN" "VOLUME" (name | "<string>")       -- volume
               | ownedBy                                 -- owned`,
    actions: {
      createTable(create, _batching, _table, ifNotExists, table, body, extras, options): CreateTable {
        const statement: CreateTable = {
          kind: "createTable",
          at: at(create),
          name: newName(onlyName(table.tree())),
          ifNotExists: given(ifNotExists),
          columns: [],
          casts: [],
          indexes: [],
          settings: [],
        };
        const add = body.tree() as (statement: CreateTable) => void;
        add(statement);
        for (const column of statement.columns) newName(column.name);
        for (const extra of extras.children) {
          if (statement.like !== undefined) throw optionOfLike(at(extra));
          const addExtra = extra.tree() as (statement: CreateTable) => void;
          addExtra(statement);
        }
        const seen = new Set<string>();
        for (const option of options.children) {
          // BYPASS WAL and WAL are the same option.
          const kind = word(option) === "bypass" ? "wal" : word(option);
          if (statement.like !== undefined && kind !== "owned") throw optionOfLike(at(option));
          if (seen.has(kind)) throw new SqlError(`The option ${kind.toUpperCase()} is given twice`, at(option));
          seen.add(kind);
          Object.assign(statement, option.tree());
        }
        return statement;
      },
      createBody_like(_open, _like, table, _close) {
        const like = onlyName(table.tree());
        return (statement: CreateTable) => void (statement.like = like);
      },
      createBody_columns(_open, first, _commas, rest, _close) {
        const items = list<ColumnDefinition | CreateTable["indexes"][number]>(first, rest);
        return (statement: CreateTable) => {
          for (const item of items) {
            if ("type" in item) statement.columns.push(item);
            else statement.indexes.push(item);
          }
        };
      },
      createBody_query(_as, _open, query, _close) {
        const tree: Query = query.tree();
        return (statement: CreateTable) => void (statement.query = tree);
      },
      createBody_openQuery(_as, query) {
        query.tree();
        throw new SqlError("the query of CREATE TABLE AS must be in parentheses", at(query));
      },
      createItem(item) {
        return item.tree();
      },
      indexItem(_index, _open, column, option, _close): CreateTable["indexes"][number] {
        return { column: name(column), option: optional<IndexOption>(option) ?? {} };
      },
      createExtra_cast(_comma, castWord, _open, column, _as, type, options, _close) {
        const cast: CreateTable["casts"][number] = Object.assign(
          { column: name(column), type: type.tree() },
          ...many<object>(options),
        );
        return (statement: CreateTable) => {
          if (statement.query === undefined) {
            throw new SqlError("CAST belongs to CREATE TABLE … AS (query)", at(castWord), SQLSTATE.syntax);
          }
          statement.casts.push(cast);
        };
      },
      createExtra_index(_comma, index) {
        const item = index.tree() as CreateTable["indexes"][number];
        return (statement: CreateTable) => void statement.indexes.push(item);
      },
      createOption_timestamp(_timestamp, _open, column, _close): Partial<CreateTable> {
        return { timestamp: name(column) };
      },
      createOption_partition(_partition, _by, unit): Partial<CreateTable> {
        return { partitionBy: { at: at(unit), unit: word(unit) } };
      },
      createOption_ttl(_ttl, ttl): Partial<CreateTable> {
        return { ttl: { at: at(ttl), text: ttl.tree() } };
      },
      createOption_bypass(_bypass, _wal): Partial<CreateTable> {
        return { wal: false };
      },
      createOption_wal(wal): Partial<CreateTable> {
        return { wal: true, walAt: at(wal) };
      },
      createOption_with(_with, first, _commas, rest): Partial<CreateTable> {
        return { settings: list(first, rest) };
      },
      createOption_dedup(_dedup, keys): Partial<CreateTable> {
        return { dedupKeys: keys.tree(), dedupAt: at(keys) };
      },
      createOption_volume(inNode, _volume, _name) {
        throw notSupported("IN VOLUME", at(inNode));
      },
      createOption_owned(owner): Partial<CreateTable> {
        return { ownedBy: owner.tree() };
      },
    },
  },
  reference: {
    syntax: `CREATE TABLE [IF NOT EXISTS] name (column type, … [, INDEX (column)]) [options]
CREATE TABLE [IF NOT EXISTS] name AS (query) [, CAST(column AS type), …] [options]
CREATE TABLE [IF NOT EXISTS] name (LIKE table)`,
    summary:
      "Creates a table: with the given columns, with the columns and rows of a query, or with the columns of another table. " +
      "A column may have options after its type: a SYMBOL `CAPACITY n`, `CACHE`, `NOCACHE` and `INDEX [CAPACITY n | TYPE kind]`, and every column " +
      "`PARQUET(encoding [, codec[(level)]] [, BLOOM_FILTER])`, which is checked and has no effect. " +
      "Options of the table are `TIMESTAMP(column)` (without it, the designated timestamp of the query), `PARTITION BY unit`, `TTL n unit`, `WAL`, `BYPASS WAL`, " +
      "`DEDUP UPSERT KEYS(column, …)` and `OWNED BY name`, which gives all permissions on the table to `name` instead of the user.",
  },
  category: "ddl",
  requires: ["CREATE TABLE"],

  bind: bindCreateTable,
  explain: ({ table }) => `Create table ${table.name}`,

  async execute({ table, plan, ifNotExists, at, ownedBy }, run) {
    if (run.catalogue.table(table.name)) {
      if (ifNotExists) return done("ddl", "CREATE TABLE");
      throw new SqlError(
        `Cannot create table ${table.name}: it already exists`,
        at,
        SQLSTATE.duplicateTable,
      );
    }
    if (run.services.views.isTaken(table.name)) {
      throw new SqlError(`Cannot create table ${table.name}: a view has the name`, at, SQLSTATE.duplicateTable);
    }
    const creator = ownerOf(ownedBy, run);
    if (plan === undefined) {
      await run.define({ kind: "createTable", table, creator });
      return run.defined("CREATE TABLE");
    }
    const rows = await run.createTable(table, plan, creator);
    run.defined("CREATE TABLE");
    return done("ddl", `SELECT ${rows}`, rows);
  },
};

function optionOfLike(at: number): SqlError {
  return new SqlError("A table that is LIKE another one has its columns and options", at, SQLSTATE.syntax);
}

function bindCreateTable(create: CreateTable, queries: Queries): BoundCreateTable<Plan> {
  const { binding } = queries;
  checkTableName(create.name);
  refuseOwn(binding, create.name, create.name.at);
  binding.requires.add("CREATE TABLE", create.at);
  const existing = binding.context.catalogue.table(create.name.text);
  if (existing !== undefined && !create.ifNotExists) {
    throw new SqlError(`table ${create.name.text} already exists`, create.name.at, SQLSTATE.duplicateTable);
  }
  if (binding.context.views?.view(create.name.text) !== undefined) {
    throw new SqlError(`view ${create.name.text} exists already`, create.name.at, SQLSTATE.duplicateTable);
  }
  if (create.like !== undefined) return createLike(binding, create);
  const { columns, plan, inherited } = create.query === undefined
    ? { columns: definedColumns(create.columns), plan: undefined, inherited: -1 }
    : queryColumns(queries, create);
  let timestamp = inherited;
  if (create.timestamp !== undefined) {
    const name = create.timestamp;
    timestamp = columns.findIndex((column) => sameName(column.name, name.text));
    if (timestamp < 0) throw unknownColumn(name.text, name.at, columns);
    if (!isTimestamp(columns[timestamp]!.type)) {
      throw typeMismatch(
        `the designated timestamp must be a TIMESTAMP: ${name.text} is ${displayName(columns[timestamp]!.type)}`,
        name.at,
      );
    }
  }
  addIndexes(columns, create.indexes, create.query === undefined ? undefined : 0);
  const partitionBy = partitionUnit(create);
  if (partitionBy !== "NONE" && timestamp < 0) {
    throw new SqlError("PARTITION BY needs TIMESTAMP(column)", create.partitionBy!.at, SQLSTATE.syntax);
  }
  const table: NewTable = {
    name: create.name.text,
    columns,
    timestamp,
    partitionBy,
    wal: create.wal ?? partitionBy !== "NONE",
    dedupKeys: keysOf(create, columns, timestamp),
    ttl: create.ttl === undefined ? undefined : parseTtl(create.ttl, partitionBy),
    params: create.settings.length === 0 ? undefined : tableParams(create.settings, "end"),
  };
  if (create.wal === true && partitionBy === "NONE") {
    throw new SqlError(
      "a table without partitions cannot have a WAL",
      create.walAt!,
      SQLSTATE.syntax,
    );
  }
  return {
    kind: "createTable",
    table,
    ifNotExists: create.ifNotExists,
    at: create.name.at,
    plan: existing === undefined ? plan : undefined,
    ownedBy: create.ownedBy,
  };
}

/** `at`: where the error of a column that is no SYMBOL is, if not at its name. */
export function addIndexes(columns: readonly NewColumn[], indexes: CreateTable["indexes"], at?: number): void {
  for (const index of indexes) {
    const column = columns.find((candidate) => sameName(candidate.name, index.column.text));
    if (column === undefined) throw unknownColumn(index.column.text, index.column.at, columns);
    if (column.type !== "SYMBOL") {
      throw typeMismatch(
        `only a SYMBOL can have an index: ${column.name} is ${displayName(column.type)}`,
        at ?? index.column.at,
      );
    }
    column.indexed = true;
    checkIncluded(index.option, columns);
    column.indexCapacity = indexCapacityOf(index.option) ?? column.indexCapacity;
  }
}

function definedColumns(definitions: ColumnDefinition[]): NewColumn[] {
  const taken = new Set<string>();
  const columns = definitions.map((definition) => {
    const key = nameKey(definition.name.text);
    if (taken.has(key)) {
      throw new SqlError(
        `column ${definition.name.text} is defined twice`,
        definition.name.at,
        SQLSTATE.duplicateColumn,
      );
    }
    taken.add(key);
    return newColumn(definition);
  });
  for (const { index } of definitions) if (index !== undefined) checkIncluded(index, columns);
  return columns;
}

export function partitionUnit(create: Pick<CreateTable, "partitionBy">): PartitionUnit {
  if (create.partitionBy === undefined) return "NONE";
  const unit = create.partitionBy.unit.toUpperCase() as PartitionUnit;
  if (!PARTITION_UNITS.includes(unit)) {
    throw new SqlError(
      `${create.partitionBy.unit} is not a unit of partitions: expected ${PARTITION_UNITS.join(", ")}`,
      create.partitionBy.at,
      SQLSTATE.syntax,
    );
  }
  return unit;
}

function keysOf(create: CreateTable, columns: NewColumn[], timestamp: number): number[] {
  const { dedupKeys: keys, dedupAt: at = 0, wal, partitionBy } = create;
  return keys === undefined
    ? []
    : dedupKeys({ keys, at, wal: wal !== false && partitionBy !== undefined }, columns, timestamp);
}

function createLike(binding: Binding, create: CreateTable): BoundCreateTable<Plan> {
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
    params: schema.params,
  };
  const { ifNotExists, name: { at }, ownedBy } = create;
  return { kind: "createTable", table, ifNotExists, at, ownedBy };
}

/** The position of the item that gives a column, or of the query. */
function itemAt(query: Query, index: number, columnCount: number): number {
  // Each item gives a column if there is no star.
  const isPlain = query.kind === "select" && query.items.length === columnCount;
  return isPlain ? query.items[index]!.at : query.at;
}

/** The columns of CREATE TABLE AS, after its casts. The plan has them in this order. */
export function queryColumns(
  queries: Queries,
  create: Pick<CreateTable, "query" | "casts" | "name">,
): { columns: NewColumn[]; plan: Plan; inherited: number } {
  const { plan, visible } = queries.bind(create.query!, NO_NAMES);
  const casts = new Map<number, { type: string; at: number; symbolCapacity?: number; symbolCached?: boolean }>();
  for (const { column, type, symbolCapacity, symbolCached, parquet } of create.casts) {
    const index = plan.columns.findIndex((candidate) => sameName(candidate.name, column.text));
    if (index < 0) throw unknownColumn(column.text, column.at, plan.columns);
    if (casts.has(index)) throw new SqlError(`${column.text} is cast twice`, column.at, SQLSTATE.duplicateColumn);
    if (parquet !== undefined) checkParquetOption(parquet, tagOfType(type));
    casts.set(index, { type: tagOfType(type), at: column.at, symbolCapacity, symbolCached });
  }
  const columns: NewColumn[] = [];
  const expressions: Expr[] = [];
  for (let i = 0; i < visible; i++) {
    const { name } = plan.columns[i]!;
    checkColumnName({ text: name, at: create.name.at, quoted: false }, itemAt(create.query!, i, visible));
    if (columns.some((column) => sameName(column.name, name))) {
      throw new SqlError(`the query has two columns called ${name}`, 0, SQLSTATE.duplicateColumn);
    }
    let type = plan.columns[i]!.type;
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
  const inherited = plan.timestamp >= 0 && plan.timestamp < visible && isTimestamp(columns[plan.timestamp]!.type)
    ? plan.timestamp
    : -1;
  return {
    columns,
    plan: changed ? project(plan, expressions, columns.map((column) => column.name)) : plan,
    inherited,
  };
}

/**
 * True if CREATE TABLE AS may cast between the types. Not from numbers to symbols or from texts to integers. Addresses
 * and UUIDs can only be cast from texts.
 */
function isStorableCast(from: string, to: string): boolean {
  if (isTextOrChar(from)) return !["BYTE", "SHORT", "INT", "LONG", "BOOLEAN"].includes(to) || from === "CHAR";
  return to !== "SYMBOL" && to !== "UUID" && to !== "IPv4";
}
