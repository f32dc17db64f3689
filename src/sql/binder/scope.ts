/**
 * Names of columns: where they are found and what result columns are called.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Name } from "../ast.ts";
import type { Plan } from "../plan.ts";
import { ambiguousColumn, unknownColumn } from "./context.ts";
import type { ColumnUse } from "./requirements.ts";
import { nameKey } from "../../types/names.ts";

export interface ScopeColumn {
  name: string;
  /** Lower case alias or name of the table that it comes from. */
  qualifier: string | undefined;
  type: string;
  /** Index in the relation's plan. */
  index: number;
  /** Of a column of the query around a correlated sub-query: its place among those that the sub-query uses. */
  outer?: number;
  /** USING has merged it with a column of the left side: it is found only with its table's name. */
  isMerged?: boolean;
  /** A system column: no star stands for it. */
  isSystem?: boolean;
  /** The value that it has in every row, where that is known. */
  known?: string | null;
  /** Of a stored column: its id, and where its uses are recorded. */
  stored?: { id: number; table: ColumnUse };
  /** What the client is told when a star stands for it: of a file that has columns that cannot be read. */
  notice?: string;
}

/** A source of rows with the names that it gives its columns. */
export interface Relation {
  plan: Plan;
  /** Visible columns; the plan may have more (a timestamp that the query did not select). */
  columns: ScopeColumn[];
  /** Is it a table as stored, so that only its designated timestamp will do for LATEST ON? */
  isTable: boolean;
  /** Is it known to have no rows? */
  isEmpty?: boolean;
  /** Index in the plan of the column that time joins and SAMPLE BY go by, or -1. */
  timestamp: number;
}

/** A one-row source for SELECT without FROM. */
export function nothing(): Relation {
  return {
    plan: { node: "values", columns: [], timestamp: -1, order: "none", rows: [[]] },
    columns: [],
    isTable: false,
    timestamp: -1,
  };
}

const SCHEMAS = new Set(["public", "pg_catalog", "information_schema"]);

/** Columns that `path` may mean. A generated name with a dot has double quotes as part of it, and is found without them. */
export function candidates(columns: readonly ScopeColumn[], path: readonly Name[]): ScopeColumn[] {
  const name = nameKey(path[path.length - 1].text);
  const quoted = `"${name}"`;
  const qualifier = path.length === 1 ? undefined : path.slice(0, -1).map((part) => part.text).join(".").toLowerCase();
  const called = byName(columns);
  const named = [...called.get(name) ?? [], ...called.get(quoted) ?? []];
  const everywhere = qualifier === undefined
    ? named.filter(({ isMerged }) => isMerged !== true)
    : named.filter((column) => column.qualifier === qualifier);
  // The sub-query's own columns hide those around it.
  const own = everywhere.filter(({ outer }) => outer === undefined);
  const found = spelled(own.length > 0 ? own : everywhere, path[path.length - 1].text);
  // `pg_catalog.pg_class.oid`: sources are known by their names without the schema.
  const isOfSchema = found.length === 0 && path.length === 3 && SCHEMAS.has(path[0].text.toLowerCase());
  if (isOfSchema) return candidates(columns, path.slice(1));
  return found.length === 0 && path.length > 1 ? fields(columns, path) : found;
}

/** Columns with a dot in their names, as fields of structs in files have: `struct.field`, `table.struct.field`. */
function fields(columns: readonly ScopeColumn[], path: readonly Name[]): ScopeColumn[] {
  const parts = path.map((part) => part.text.toLowerCase());
  const whole = byName(columns).get(parts.join("."));
  if (whole !== undefined || path.length === 2) return whole ?? [];
  return (byName(columns).get(parts.slice(1).join(".")) ?? []).filter((column) => column.qualifier === parts[0]);
}

/** Columns of older roots may be the same in one Unicode form: their spelling tells them apart. */
function spelled(found: ScopeColumn[], text: string): ScopeColumn[] {
  if (found.length < 2) return found;
  const lower = text.toLowerCase();
  const alike = found.filter(({ name }) => name.toLowerCase() === lower);
  return alike.length > 0 ? alike : found;
}

const namesOf = new WeakMap<readonly ScopeColumn[], Map<string, ScopeColumn[]>>();

/** Columns by their names. A scope stands still once somebody looks for a name in it. */
function byName(columns: readonly ScopeColumn[]): Map<string, ScopeColumn[]> {
  let names = namesOf.get(columns);
  if (names === undefined) namesOf.set(columns, names = Map.groupBy(columns, ({ name }) => nameKey(name)));
  return names;
}

export function lookUp(columns: readonly ScopeColumn[], path: readonly Name[], at: number): ScopeColumn {
  const found = candidates(columns, path);
  const text = path.map((part) => part.text).join(".");
  if (found.length === 0) throw unknownColumn(text, at, known(columns, path), path.length === 1 && path[0].quoted);
  if (found.length > 1) throw ambiguousColumn(text, at);
  markUsed(found[0], at, text);
  return found[0];
}

/** Records that the statement uses the column. */
export function markUsed({ stored, name }: ScopeColumn, at: number, text = name): void {
  stored?.table.use(stored.id, text, at);
}

/** The same of the column that time joins, SAMPLE BY and LATEST BY use without naming it. */
export function markTimestampUsed({ columns, timestamp }: Relation, at: number): void {
  const column = columns.find(({ index }) => index === timestamp);
  if (column !== undefined) markUsed(column, at);
}

/** What `path` may have meant: where its table is unknown, columns of its name in other tables. */
function known(columns: readonly ScopeColumn[], path: readonly Name[]): readonly { name: string }[] {
  if (path.length === 1) return columns;
  const qualifier = path.slice(0, -1).map((part) => part.text).join(".").toLowerCase();
  const own = columns.filter((column) => column.qualifier === qualifier);
  return (own.length > 0 ? own : columns).map(({ qualifier, name }) => ({ name: `${qualifier}.${name}` }));
}

/** A name of a result column to be: an alias, what an expression is called, or a column that a star stands for. */
export type WantedName = { alias: Name } | { text: string; isStar: boolean };

/**
 * Makes result columns' names unique. A second `x` that was written out becomes `x_2`, also before an alias `x`; one that
 * clashes with a column of a star, or is one, becomes `x1`.
 * @throws at an alias that is there twice.
 */
export function uniqueNames(wanted: readonly WantedName[]): string[] {
  const own = writtenNames(wanted);
  const taken = new TakenNames(wanted.flatMap((name) => "alias" in name ? [name.alias.text.toLowerCase()] : []));
  return wanted.map((name, i) => "alias" in name ? name.alias.text : taken.free(own[i] ?? name.text, "", 1));
}

/** The names that stars have no part in; undefined for columns of a star. */
function writtenNames(wanted: readonly WantedName[]): (string | undefined)[] {
  const taken = new TakenNames();
  for (const name of wanted) {
    if (!("alias" in name)) continue;
    const key = name.alias.text.toLowerCase();
    if (taken.has(key)) {
      throw new SqlError(`two columns are called ${name.alias.text}`, name.alias.at, SQLSTATE.duplicateColumn);
    }
    taken.add(key);
  }
  return wanted.map((name) => "alias" in name || name.isStar ? undefined : taken.free(name.text, "_", 2));
}

/** Names in lower case. */
class TakenNames extends Set<string> {
  /** The number to try next: a statement may give one name to thousands of columns. */
  private readonly next = new Map<string, number>();

  /** The name itself, or with the first number that makes it unique; it is taken from then on. */
  free(name: string, separator: string, first: number): string {
    const key = name.toLowerCase();
    let unique = name;
    let n = this.next.get(key) ?? first;
    for (; this.has(unique.toLowerCase()); n++) unique = `${name}${separator}${n}`;
    this.next.set(key, n);
    this.add(unique.toLowerCase());
    return unique;
  }
}
