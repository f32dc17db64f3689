/** Resolution of column names, and naming of result columns. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Name } from "../ast.ts";
import type { Plan, WindowJoinNode } from "../plan.ts";
import { ambiguousColumn, unknownColumn } from "./context.ts";
import { DOTTED_NAME_LENGTH_MAX, NAME_LENGTH_MAX } from "./text.ts";
import type { ColumnUse } from "./requirements.ts";
import { nameKey } from "../../types/names.ts";

export interface ScopeColumn {
  name: string;
  /** Alias or name of its table, in lower case. */
  qualifier: string | undefined;
  type: string;
  /** Index in the relation's plan. */
  index: number;
  /**
   * For a column of the query around a correlated sub-query: its index among the outer columns that the sub-query uses.
   */
  outer?: number;
  /** Merged with a column of the left side by USING: it can only be referred to with its table's name. */
  isMerged?: boolean;
  /** True for a system column, which `*` does not include. */
  isSystem?: boolean;
  /** The only column of a function in FROM: as in PostgreSQL, the function's alias names it too. */
  isSole?: boolean;
  /** True for an array in PostgreSQL's text form. */
  isTextArray?: boolean;
  /** Its value in every row, if known. */
  known?: string | null;
  /** For a stored column: its id, and the recorder of its uses. */
  stored?: { id: number; table: ColumnUse };
  /** A notice that the client gets if `*` includes the column, because other columns of the file cannot be read. */
  notice?: string;
}

/** A WINDOW JOIN without its left side and aggregates. */
export interface WindowJoin {
  node: Omit<WindowJoinNode, "left" | "aggregates" | "columns" | "timestamp" | "order">;
  /** The number of left columns in its residual. */
  leftCount: number;
  /** The index of its first right column in expressions of the query. */
  first: number;
}

/** A source of rows with the names of its columns. */
export interface Relation {
  plan: Plan;
  /** Visible columns. The plan may have more, such as a timestamp that the query did not select. */
  columns: ScopeColumn[];
  /** True for a stored table. LATEST ON accepts only its designated timestamp. */
  isTable: boolean;
  /** True if it is known to be empty. */
  isEmpty?: boolean;
  /** WINDOW JOINs over the plan, which has only the columns of their left side: their nodes need the query's aggregates. */
  windowJoins?: WindowJoin[];
  /** The plan is a HORIZON JOIN: its rows are grouped by all plain columns. */
  isHorizon?: boolean;
  /** Column indices first … end-1 cannot be used in WHERE. */
  unfiltered?: { first: number; end: number };
  /** Index in the plan of the timestamp for time joins and SAMPLE BY, or -1. */
  timestamp: number;
  /** That of the first source, if it is null in rows that a join has added. Only SAMPLE BY without FILL may use it. */
  partialTimestamp?: number;
}

/** The timestamp of the left side after a join that adds rows without it. */
export function partialTimestamp({ timestamp, partialTimestamp }: Relation): number | undefined {
  return timestamp >= 0 ? timestamp : partialTimestamp;
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

const SCHEMAS = new Set(["public", "pg_catalog", "information_schema", "sys"]);

/**
 * The columns that `path` may refer to. Generated names with a dot contain double quotes, and can be referred to
 * without them.
 */
export function candidates(columns: readonly ScopeColumn[], path: readonly Name[]): ScopeColumn[] {
  const name = nameKey(path[path.length - 1]!.text);
  const quoted = `"${name}"`;
  const qualifier = path.length === 1 ? undefined : path.slice(0, -1).map((part) => part.text).join(".").toLowerCase();
  const called = byName(columns);
  const named = [...called.get(name) ?? [], ...called.get(quoted) ?? []];
  const everywhere = qualifier === undefined
    ? named.filter(({ isMerged }) => isMerged !== true)
    : named.filter((column) => column.qualifier === qualifier);
  // Columns of the sub-query hide those of the enclosing query.
  const own = everywhere.filter(({ outer }) => outer === undefined);
  const found = spelled(own.length > 0 ? own : everywhere, path[path.length - 1]!.text);
  // `pg_catalog.pg_class.oid`: the qualifier of a source does not include the schema.
  const isOfSchema = found.length === 0 && path.length === 3 && SCHEMAS.has(path[0]!.text.toLowerCase());
  if (isOfSchema) return candidates(columns, path.slice(1));
  if (found.length > 0) return found;
  const isAlias = path.length === 1 || (path.length === 2 && qualifier === name);
  const sole = isAlias ? columns.filter((column) => column.isSole === true && column.qualifier === name) : [];
  return sole.length === 0 && path.length > 1 ? fields(columns, path) : sole;
}

/** Columns with a dot in their names, such as fields of structs in files: `struct.field`, `table.struct.field`. */
function fields(columns: readonly ScopeColumn[], path: readonly Name[]): ScopeColumn[] {
  const parts = path.map((part) => part.text.toLowerCase());
  const whole = byName(columns).get(parts.join("."));
  if (whole !== undefined || path.length === 2) return whole ?? [];
  return (byName(columns).get(parts.slice(1).join(".")) ?? []).filter((column) => column.qualifier === parts[0]);
}

/**
 * Older databases may contain columns whose names are equal in Unicode normal form: they are distinguished by their
 * spelling.
 */
function spelled(found: ScopeColumn[], text: string): ScopeColumn[] {
  if (found.length < 2) return found;
  const lower = text.toLowerCase();
  const alike = found.filter(({ name }) => name.toLowerCase() === lower);
  return alike.length > 0 ? alike : found;
}

const namesOf = new WeakMap<readonly ScopeColumn[], Map<string, ScopeColumn[]>>();

/** Columns by name. Cached, because a scope does not change after its first look-up. */
function byName(columns: readonly ScopeColumn[]): Map<string, ScopeColumn[]> {
  let names = namesOf.get(columns);
  if (names === undefined) namesOf.set(columns, names = Map.groupBy(columns, ({ name }) => nameKey(name)));
  return names;
}

export function lookUp(columns: readonly ScopeColumn[], path: readonly Name[], at: number): ScopeColumn {
  const found = candidates(columns, path);
  const text = path.map((part) => part.text).join(".");
  if (found.length === 0) throw unknownColumn(text, at, known(columns, path), path.length === 1 && path[0]!.quoted);
  if (found.length > 1) throw ambiguousColumn(text, at);
  markUsed(found[0]!, at, text);
  return found[0]!;
}

/** Records that the statement uses the column. */
export function markUsed({ stored, name }: ScopeColumn, at: number, text = name): void {
  stored?.table.use(stored.id, text, at);
}

/** Records the use of the timestamp by time joins, SAMPLE BY and LATEST BY, which do not name it. */
export function markTimestampUsed({ columns, timestamp }: Relation, at: number): void {
  const column = columns.find(({ index }) => index === timestamp);
  if (column !== undefined) markUsed(column, at);
}

/** Columns for suggestions. If the table of `path` is unknown, columns of that name in other tables. */
function known(columns: readonly ScopeColumn[], path: readonly Name[]): readonly { name: string }[] {
  if (path.length === 1) return columns;
  const qualifier = path.slice(0, -1).map((part) => part.text).join(".").toLowerCase();
  const own = columns.filter((column) => column.qualifier === qualifier);
  return (own.length > 0 ? own : columns).map(({ qualifier, name }) => ({ name: `${qualifier}.${name}` }));
}

/** The wanted name of a result column: an alias, the text of an expression, or the name of a column of `*`. */
export type WantedName = { alias: Name } | { text: string; isStar: boolean };

/**
 * Makes the names of result columns unique. A second explicit `x` becomes `x_2`, also before an alias `x`. A name that
 * clashes with a column of `*`, or belongs to one, becomes `x1`. @throws at a repeated alias.
 */
export function uniqueNames(wanted: readonly WantedName[]): string[] {
  const own = writtenNames(wanted);
  const taken = new TakenNames(wanted.flatMap((name) => "alias" in name ? [name.alias.text.toLowerCase()] : []));
  return wanted.map((name, i) => "alias" in name ? name.alias.text : taken.free(own[i] ?? name.text, "", 1));
}

/** Unique names of explicit items; undefined for columns of `*`. */
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

/** The suffix of an explicit item goes inside the quotes of a generated name, and a long name is cut for it. */
function suffixed(name: string, suffix: string): string {
  if (!suffix.startsWith("_")) return name + suffix;
  if (!/^".*"$/s.test(name)) return name.slice(0, NAME_LENGTH_MAX - suffix.length).trimEnd() + suffix;
  return `"${name.slice(1, -1).slice(0, DOTTED_NAME_LENGTH_MAX - suffix.length)}${suffix}"`;
}

/** Names in lower case. */
class TakenNames extends Set<string> {
  /** The next number to try for each name, because a statement may use one name for thousands of columns. */
  private readonly next = new Map<string, number>();

  /** Returns the name, with the first number that makes it unique if it is taken, and marks it as taken. */
  free(name: string, separator: string, first: number): string {
    const key = name.toLowerCase();
    let unique = name;
    let n = this.next.get(key) ?? first;
    for (; this.has(unique.toLowerCase()); n++) unique = suffixed(name, `${separator}${n}`);
    this.next.set(key, n);
    this.add(unique.toLowerCase());
    return unique;
  }
}
