/** FROM: tables, sub-queries, table functions, joins. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { TableSnapshot } from "../../storage/contract.ts";
import type { Name, Source } from "../ast.ts";
import type { ScanNode } from "../plan.ts";
import {
  findQuery,
  findVariable,
  inForce,
  type Names,
  tableNames,
  typeMismatch,
  unknownColumn,
  unknownTable,
  unknownVariable,
} from "./context.ts";
import { TEXT_ARRAY_FUNCTIONS } from "../functions/meta.ts";
import { statementHint } from "../other-dialects.ts";
import { bareCall } from "./calls.ts";
import { joinRelation } from "./joins.ts";
import { constantOfColumn, isEmptyTable, TABLE_OID } from "./catalog-tables.ts";
import { isMetadata, metadataFunction, metadataPlan } from "./metadata.ts";
import { bindCommon, renamed } from "./recursion.ts";
import { viewRelation } from "./views.ts";
import { markUsed, type Relation, type ScopeColumn } from "./scope.ts";
import { type Queries, relationOf } from "./query.ts";
import { calledTable, tableFunction } from "./table-functions.ts";
import { bindUnnest, isUnnest, unnestJoin } from "./unnest.ts";
import { isTimestamp } from "./types.ts";
import { sameName } from "../../types/names.ts";

/**
 * `outer`: columns of the query around a correlated sub-query, for arguments of functions. `first`: takes the place of the
 * first of joined sources.
 */
export function bindSource(
  queries: Queries,
  source: Source,
  names: Names,
  outer: readonly ScopeColumn[] = [],
  first?: Relation,
): Relation {
  if (source.kind !== "join" && first !== undefined) return first;
  const relation = bindPlain(queries, source, names, outer, first);
  if (source.kind === "join" || source.columnNames === undefined) return relation;
  return { ...relation, columns: renamed(relation.columns, source.columnNames), isTable: false };
}

function bindPlain(
  queries: Queries,
  source: Source,
  names: Names,
  outer: readonly ScopeColumn[],
  first?: Relation,
): Relation {
  switch (source.kind) {
    case "table":
      return bindTable(queries, source, names);
    case "subquery": {
      const bound = queries.bind(source.query, names, { keepTimestamp: true });
      return withTimestamp(relationOf(bound, source.alias), source.timestamp);
    }
    case "variable": {
      const found = findVariable(names, source.name);
      if (found === undefined) {
        throw unknownVariable(source.name, source.at, names);
      }
      const { value } = found, { alias, timestamp } = source;
      if (value.kind === "query") {
        return bindSource(
          queries,
          { kind: "subquery", at: source.at, query: value.query, alias, timestamp },
          found.names,
        );
      }
      if (value.kind === "column" && value.path.length === 1) {
        return bindSource(
          queries,
          { kind: "table", at: source.at, name: value.path[0]!, alias, timestamp },
          found.names,
        );
      }
      throw typeMismatch(`the variable @${source.name} is neither a table nor a query`, source.at);
    }
    case "function": {
      if (isUnnest(source.call)) return bindUnnest(queries, source, names, outer);
      if (source.ordinality !== undefined) throw notSupported("WITH ORDINALITY of this function", source.ordinality.at);
      const table = calledTable(source.call);
      if (table !== undefined) {
        const { at, alias, timestamp } = source;
        return bindSource(
          queries,
          { kind: "table", at, name: { text: table, at, quoted: false }, alias, timestamp },
          names,
        );
      }
      const { plan, name, notice } = tableFunction(queries, source.call, names);
      const relation = relationOf({ plan, visible: plan.columns.length, timestamp: plan.timestamp }, source.alias);
      if (source.alias === undefined) { for (const column of relation.columns) column.qualifier = name; }
      const [sole] = relation.columns;
      if (sole !== undefined && relation.columns.length === 1) sole.isSole = true;
      if (sole !== undefined && TEXT_ARRAY_FUNCTIONS.has(name)) sole.isTextArray = true;
      if (notice !== undefined) { for (const column of relation.columns) column.notice = notice; }
      return withTimestamp(relation, source.timestamp);
    }
    case "show": {
      const { plan } = queries.language.bind(source.statement, queries);
      if (plan === undefined) throw notSupported("this statement as a table", source.at);
      return relationOf({ plan, visible: plan.columns.length, timestamp: -1 }, source.alias);
    }
    case "join": {
      const left = bindSource(queries, source.left, names, outer, first);
      if (left.windowJoins !== undefined && source.type !== "window") {
        throw notSupported("another join after a WINDOW JOIN (put it in a sub-query)", source.at);
      }
      if (left.isHorizon === true) {
        throw notSupported("another join after a HORIZON JOIN (put it in a sub-query)", source.at);
      }
      return unnestJoin(queries, source, left, names) ??
        joinRelation(queries, source, left, bindSource(queries, source.right, names, outer), names);
    }
  }
}

function bindTable(queries: Queries, source: Extract<Source, { kind: "table" }>, names: Names): Relation {
  const { name, schema } = source;
  const common = schema === undefined ? findQuery(names, name.text) : undefined;
  if (common !== undefined) {
    const relation = relationOf(bindCommon(queries, common, { keepTimestamp: true }), source.alias ?? name);
    const columnNames = "table" in common ? common.table.columnNames : undefined;
    return withTimestamp({ ...relation, columns: renamed(relation.columns, columnNames) }, source.timestamp);
  }
  const { binding } = queries;
  const full = schema === undefined || schema.text.toLowerCase() === "public"
    ? name.text
    : `${schema.text}.${name.text}`;
  const snapshot = binding.context.catalogue.table(full);
  if (snapshot !== undefined) {
    return withTimestamp(tableRelation(queries, snapshot, source.alias ?? name, source.at), source.timestamp);
  }
  const view = binding.context.views?.view(full);
  if (view !== undefined) {
    return withTimestamp(viewRelation(queries, view, name, source.alias ?? name, names), source.timestamp);
  }
  if (isMetadata(full)) {
    const plan = metadataPlan(full, [], name.at);
    const isEmpty = isEmptyTable(full);
    const bound = { plan, visible: plan.columns.length, timestamp: plan.timestamp, isEmpty };
    const relation = relationOf(bound, source.alias ?? name);
    for (const column of relation.columns) {
      column.known = constantOfColumn(full, column.name);
      column.isSystem = column.name === TABLE_OID;
    }
    return relation;
  }
  if (schema === undefined && metadataFunction(name.text)?.args === 0) {
    const { at, alias = name, timestamp } = source;
    return bindSource(queries, { kind: "function", at, call: bareCall(name.text, name.at), alias, timestamp }, names);
  }
  const queryNames = inForce(names).flatMap(({ queries }) => [...queries.keys()]);
  // A statement that begins with a name reads a table, so `selct` is taken for a table.
  const isFirst = source.at === binding.statementAt;
  const foreign = isFirst ? statementHint(full) : undefined;
  if (foreign !== undefined) {
    throw new SqlError(
      `there is no table ${full}, and no such statement: ${foreign}`,
      source.at,
      SQLSTATE.undefinedTable,
    );
  }
  const words = isFirst ? queries.language.statementWords : [];
  throw unknownTable(full, source.at, [...queryNames, ...tableNames(binding.context.catalogue), ...words]);
}

/** A scan of all columns of a table, in its order. */
export function scanOf(snapshot: TableSnapshot, rowId = false): ScanNode {
  const { schema } = snapshot;
  const timestamp = schema.columns.findIndex((column) => column.id === schema.timestampId);
  const columns = schema.columns.map(({ name, type }) => ({ name, type }));
  if (rowId) columns.push({ name: "row id", type: "LONG" });
  return {
    node: "scan",
    id: -1,
    tableId: schema.id,
    tableName: schema.name,
    columnIds: schema.columns.map((column) => column.id),
    reverse: false,
    rowId,
    columns,
    timestamp,
    order: timestamp < 0 ? "none" : "asc",
  };
}

function tableRelation(queries: Queries, snapshot: TableSnapshot, alias: Name, at: number): Relation {
  const plan = scanOf(snapshot);
  queries.binding.requires.ofColumns("SELECT", at, snapshot.schema).useTable();
  return { plan, columns: storedColumns(queries, plan, alias, at), isTable: true, timestamp: plan.timestamp };
}

/** The columns of a table as a source. The statement requires SELECT on the columns that it uses. */
function storedColumns({ binding }: Queries, scan: ScanNode, alias: Name, at: number): ScopeColumn[] {
  const table = binding.requires.ofColumns("SELECT", at, { id: scan.tableId, name: scan.tableName });
  const qualifier = alias.text.toLowerCase();
  return scan.columnIds.map((id, index) => ({ ...scan.columns[index]!, qualifier, index, stored: { id, table } }));
}

/** The rows of a table that UPDATE and DELETE can change. */
export function changedRelation(queries: Queries, scan: ScanNode, table: Name, alias = table): Relation {
  const columns = storedColumns(queries, scan, alias, table.at);
  return { plan: scan, columns, isTable: true, timestamp: scan.timestamp };
}

/** `timestamp(col)` after a source: sets the designated timestamp, without sorting. */
function withTimestamp(relation: Relation, name: Name | undefined): Relation {
  if (name === undefined) return relation;
  const column = relation.columns.find((candidate) => sameName(candidate.name, name.text));
  if (column === undefined) throw unknownColumn(name.text, name.at, relation.columns);
  if (!isTimestamp(column.type)) throw typeMismatch(`column ${name.text} is not a TIMESTAMP`, name.at);
  markUsed(column, name.at, name.text);
  const { plan } = relation;
  // The rows may not be in the order of this column. Nodes that need the order sort them or use a slower algorithm.
  const order = plan.timestamp === column.index ? plan.order : "none";
  return { ...relation, plan: { ...plan, timestamp: column.index, order }, timestamp: column.index, isTable: false };
}
