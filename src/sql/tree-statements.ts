/** Actions for all statements other than queries. */
import type * as ohm from "ohm-js";
import { onlyName } from "./statements/parts.ts";
import { notSupported, SqlError } from "../errors.ts";
import type {
  AlterAction,
  ColumnDefinition,
  CreateTable,
  Expression,
  Name,
  OtherStatement as Statement,
  Query,
  SourceNames,
  TypeName,
} from "./ast.ts";
import {
  at,
  endOf,
  given,
  list,
  many,
  matched,
  name,
  newName,
  optional,
  type Path,
  token,
  tokenIndex,
  wholeNumber,
  word,
  written,
} from "./tree-nodes.ts";

function bareName(path: Path): Name {
  if (path.schema !== undefined) {
    throw new SqlError("A schema cannot be given here: expected the table's name alone", path.schema.at);
  }
  return path.name;
}

export const statementActions: ohm.ActionDict<unknown> = {
  // --- CREATE TABLE ---
  createTable(create, _batching, _table, ifNotExists, table, body, extras, options, _end): CreateTable {
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
      const addExtra = extra.tree() as (statement: CreateTable) => void;
      addExtra(statement);
    }
    const seen = new Set<string>();
    for (const option of options.children) {
      // BYPASS WAL and WAL set the same option.
      const kind = word(option) === "bypass" ? "wal" : word(option);
      if (seen.has(kind)) throw new SqlError(`The option ${kind.toUpperCase()} is given already`, at(option));
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
    throw new SqlError("the query of CREATE TABLE AS stands in parentheses", at(query));
  },
  createItem(item) {
    return item.tree();
  },
  indexItem(_index, _open, column, _capacityWord, capacity, _close): CreateTable["indexes"][number] {
    return given(capacity)
      ? { column: name(column), capacity: wholeNumber(capacity.child(0)) }
      : { column: name(column) };
  },
  columnDefinition(columnName, type, options): ColumnDefinition {
    return Object.assign({ name: name(columnName), type: type.tree() }, ...many<object>(options));
  },
  columnOption_capacity(_capacity, number) {
    return { symbolCapacity: wholeNumber(number) };
  },
  columnOption_cache(_cache) {
    return { symbolCached: true };
  },
  columnOption_nocache(_nocache) {
    return { symbolCached: false };
  },
  columnOption_index(_index, _capacity, number) {
    return given(number) ? { indexed: true, indexCapacity: wholeNumber(number.child(0)) } : { indexed: true };
  },
  columnOption_notNull(_not, _null) {
    return {};
  },
  columnOption_null(_null) {
    return {};
  },
  createExtra_cast(_comma, _cast, _open, column, _as, type, options, _close) {
    const cast: CreateTable["casts"][number] = Object.assign(
      { column: name(column), type: type.tree() },
      ...many<object>(options),
    );
    return (statement: CreateTable) => void statement.casts.push(cast);
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
  createOption_wal(_wal): Partial<CreateTable> {
    return { wal: true };
  },
  createOption_with(_with, first, _commas, rest): Partial<CreateTable> {
    return { settings: list(first, rest) };
  },
  createOption_dedup(_dedup, keys): Partial<CreateTable> {
    return { dedupKeys: keys.tree() };
  },
  createOption_volume(inNode, _volume, _name) {
    throw notSupported("IN VOLUME", at(inNode));
  },
  createOption_owned(owned, _by, _name) {
    throw notSupported("OWNED BY", at(owned));
  },
  ttl_unit(number, unit) {
    return `${token(number).text} ${token(unit).text}`;
  },
  ttl_text(number) {
    return token(number).text;
  },
  setting(settingName, _equals, minus, value): CreateTable["settings"][number] {
    return { name: token(settingName).text, at: at(settingName), value: (given(minus) ? "-" : "") + token(value).text };
  },
  keys(_upsert, _keys, _open, first, _commas, rest, _close) {
    return [first, ...rest.children].map(name);
  },

  // --- ALTER TABLE ---
  alterTable(alter, _table, table, alteration, _end): Statement {
    return { kind: "alterTable", at: at(alter), table: onlyName(table.tree()), action: alteration.tree() };
  },
  alteration(alteration): AlterAction {
    return alteration.tree();
  },
  alteration_add(add, _column, ifNotExists, first, _commas, rest): AlterAction {
    return { kind: "addColumn", at: at(add), ifNotExists: given(ifNotExists), columns: list(first, rest) };
  },
  alteration_drop(drop, _column, first, _commas, rest): AlterAction {
    return { kind: "dropColumn", at: at(drop), columns: [first, ...rest.children].map(name) };
  },
  alteration_rename(rename, _column, first, _commas, rest): AlterAction {
    return { kind: "renameColumn", at: at(rename), renames: list(first, rest) };
  },
  alteration_type(alter, _column, column, _type, type, options): AlterAction {
    const target: TypeName = type.tree();
    const definition: ColumnDefinition = Object.assign({ name: name(column), type: target }, ...many<object>(options));
    return { kind: "columnType", at: at(alter), column: name(column), type: target, definition };
  },
  otherAlteration(change): AlterAction {
    return { kind: "other", at: at(change), text: written(change) };
  },
  renaming(from, _to, to) {
    return { from: name(from), to: name(to) };
  },

  // --- Rows ---
  insert(body, _end): Statement {
    return body.tree();
  },
  batching_atomic(_atomic) {
    return undefined;
  },
  batching_batch(_batch, rows, _lagWord, _lag) {
    if (wholeNumber(rows) <= 0) throw new SqlError("BATCH takes a positive number of rows", at(rows));
    return undefined;
  },
  insertBody(insert, batching, _into, table, columns, source): Statement {
    optional(batching);
    return {
      kind: "insert",
      at: at(insert),
      table: onlyName(table.tree()),
      columns: optional(columns),
      with: [],
      ...source.tree() as { rows?: Expression[][]; rowsAt: number[]; query?: Query },
    };
  },
  columnNames(_open, first, _commas, rest, _close) {
    return [first, ...rest.children].map(name);
  },
  insertSource_rows(_values, rows, _commas, _more) {
    return matched.source.rows(tokenIndex(rows));
  },
  insertSource_query(query) {
    return { query: query.tree() as Query, rowsAt: [] };
  },
  update(body, _end): Statement {
    return body.tree();
  },
  updateBody(update, table, alias, _set, first, _commas, rest, from, where): Statement {
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
  delete(deleteNode, _from, table, where, _end): Statement {
    return { kind: "delete", at: at(deleteNode), table: onlyName(table.tree()), where: optional(where) };
  },
  dropTable_all(drop, _all, _tables, _end): Statement {
    return { kind: "dropTable", at: at(drop), ifExists: false, all: true };
  },
  dropTable_one(drop, _table, ifExists, table, _end): Statement {
    return { kind: "dropTable", at: at(drop), name: bareName(table.tree()), ifExists: given(ifExists), all: false };
  },
  rename(rename, _table, from, _to, to, _end): Statement {
    return { kind: "rename", at: at(rename), from: onlyName(from.tree()), to: onlyName(to.tree()) };
  },

  // --- The session and the server ---
  showStatement(show, _end): Statement {
    return show.tree();
  },
  show_from(show, what, _from, table): Statement {
    return { kind: "show", at: at(show), what: word(what), whatAt: at(what), table: onlyName(table.tree()) };
  },
  show_create(show, create, what, table): Statement {
    return {
      kind: "show",
      at: at(show),
      what: `create ${word(what)}`,
      whatAt: at(create),
      table: onlyName(table.tree()),
    };
  },
  show_words(show, first, rest): Statement {
    const name = matched.source.text.slice(at(first), endOf(first)).toLowerCase();
    return { kind: "show", at: at(show), what: [name, ...rest.children.map(word)].join(" "), whatAt: at(first) };
  },
  set(first, rest): Statement {
    const last = rest.numChildren > 0 ? rest.child(rest.numChildren - 1) : first;
    return { kind: "set", at: at(first), text: matched.source.text.slice(at(first), endOf(last)) };
  },
  transaction_word(first, _work, _modes, _end): Statement {
    const action = word(first);
    const actions = {
      begin: "begin",
      commit: "commit",
      end: "commit",
      rollback: "rollback",
      abort: "rollback",
    } as const;
    return { kind: "transaction", at: at(first), action: actions[action as keyof typeof actions] };
  },
  transaction_start(start, _transaction, _modes, _end): Statement {
    return { kind: "transaction", at: at(start), action: "begin" };
  },
  checkpoint(checkpoint, action, _end): Statement {
    return { kind: "checkpoint", at: at(checkpoint), action: word(action) as "create" | "release" };
  },
};
