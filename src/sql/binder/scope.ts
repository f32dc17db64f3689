/**
 * Names of columns: where they are found and what result columns are called.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Name } from "../ast.ts";
import type { Plan } from "../plan.ts";
import { ambiguousColumn, unknownColumn } from "./context.ts";

export interface ScopeColumn {
  name: string;
  /** Lower case alias or name of the table that it comes from. */
  qualifier: string | undefined;
  type: string;
  /** Index in the relation's plan. */
  index: number;
}

/** A source of rows with the names that it gives its columns. */
export interface Relation {
  plan: Plan;
  /** Visible columns; the plan may have more (a timestamp that the query did not select). */
  columns: ScopeColumn[];
  /** Is it a table as stored, so that only its designated timestamp will do for LATEST ON? */
  isTable: boolean;
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

export function sameName(a: string, b: string): boolean {
  return a === b || a.toLowerCase() === b.toLowerCase();
}

/** Columns that `path` may mean. A generated name with a dot has double quotes as part of it, and is found without them. */
export function candidates(columns: readonly ScopeColumn[], path: readonly Name[]): ScopeColumn[] {
  const name = path[path.length - 1].text.toLowerCase();
  const quoted = `"${name}"`;
  const qualifier = path.length === 1 ? undefined : path.slice(0, -1).map((part) => part.text).join(".").toLowerCase();
  return columns.filter((column) => {
    const own = column.name.toLowerCase();
    return (own === name || own === quoted) && (qualifier === undefined || column.qualifier === qualifier);
  });
}

export function lookUp(columns: readonly ScopeColumn[], path: readonly Name[], at: number): ScopeColumn {
  const found = candidates(columns, path);
  const text = path.map((part) => part.text).join(".");
  if (found.length === 0) throw unknownColumn(text, at);
  if (found.length > 1) throw ambiguousColumn(text, at);
  return found[0];
}

/**
 * Makes result columns' names unique: a second `x` becomes `x_2`, but `x1` where a star is in the select list.
 * An alias that is taken is an error at the alias.
 */
export class OutputNames {
  private readonly taken = new Set<string>();

  constructor(private readonly withStar: boolean) {}

  alias(alias: Name): string {
    const key = alias.text.toLowerCase();
    if (this.taken.has(key)) {
      throw new SqlError(`two columns are called ${alias.text}`, alias.at, SQLSTATE.duplicateColumn);
    }
    this.taken.add(key);
    return alias.text;
  }

  generated(name: string): string {
    let unique = name;
    for (let n = this.withStar ? 1 : 2; this.taken.has(unique.toLowerCase()); n++) {
      unique = this.withStar ? `${name}${n}` : `${name}_${n}`;
    }
    this.taken.add(unique.toLowerCase());
    return unique;
  }
}
