/** Trees → bound statements. */
import { notSupported, SqlError, SQLSTATE } from "../errors.ts";
import type { Requirement } from "../requirement.ts";
import type { OtherStatement, Statement } from "./ast.ts";
import { KEYWORDS } from "./grammar.ts";
import { STATEMENT_WORDS } from "./parser.ts";
import type { BoundStatement, Column, OtherBound } from "./plan.ts";
import { isListed, kindOf } from "./statements/mod.ts";
import { bindDelete, bindInsert, bindUpdate } from "./binder/changes.ts";
import { type BindContext, Binding, NO_NAMES, UnknownColumn } from "./binder/context.ts";
import type { Language, Queries } from "./binder/query.ts";
import { QueryBinder } from "./binder/select.ts";
import { showPlan } from "./binder/show.ts";
import { bindAlter, bindCreateTable, bindDrop, bindRename } from "./binder/tables.ts";

export interface Bound {
  statement: BoundStatement;
  /** Of the answer; empty for statements that give no rows. */
  columns: Column[];
  /** Type tags of $1, $2 … */
  parameterTypes: string[];
  /** By parameter: the element type of an array of PostgreSQL that is a text here, as in `$1::oid[]`. */
  parameterArrays: (string | undefined)[];
  /** Holds only for its columns and parameters: bind it anew with the values, see `BindContext.parameterValues`. */
  boundByValues: boolean;
  requires: Requirement[];
  /** What the client is told besides the answer. */
  notices: string[];
  /** Depends on the clock or on files at the time of binding: it must be bound anew for each run. */
  boundAnew: boolean;
}

/** @throws {SqlError} for whatever the statement gets wrong, at its place in the text. */
export function bind(statement: Statement, context: BindContext): Bound {
  const binding = new Binding(context);
  const bound = bindReadable(statement, binding);
  const parameterTypes = Array.from(binding.parameterTypes, (type) => type ?? "STRING");
  return {
    statement: bound,
    columns: columnsOfStatement(bound),
    parameterTypes,
    parameterArrays: binding.parameterArrays,
    boundByValues: binding.boundByValues,
    requires: binding.requires.list(),
    notices: [...binding.notices],
    boundAnew: binding.boundAnew,
  };
}

/** A column may be unknown because a file has it in a type that is not read. */
function bindReadable(statement: Statement, binding: Binding): BoundStatement {
  try {
    return bindStatement(statement, new QueryBinder(binding, LANGUAGE));
  } catch (error) {
    if (!(error instanceof UnknownColumn)) throw error;
    const parts = error.column.toLowerCase().split(".");
    for (let k = 0; k < parts.length; k++) {
      const reason = binding.unreadable.get(parts.slice(k).join("."));
      if (reason !== undefined) throw new SqlError(reason, error.position, SQLSTATE.featureNotSupported);
    }
    throw error;
  }
}

const LANGUAGE: Language = {
  statementWords: STATEMENT_WORDS,
  keywords: [...KEYWORDS.keys()],
  bind: bindStatement,
};

function columnsOfStatement(statement: BoundStatement): Column[] {
  const bound = statement as OtherBound;
  if (bound.kind === "query") return bound.plan.columns;
  return bound.kind === "explain" ? [{ name: "QUERY PLAN", type: "STRING" }] : [];
}

const READS: ReadonlySet<OtherStatement["kind"]> = new Set([
  "query",
  "show",
  "insert",
  "update",
  "delete",
  "createTable",
]);

function bindStatement(statement: Statement, queries: Queries): BoundStatement {
  // Binders make no packed plans.
  if (isListed(statement)) return kindOf(statement).bind(statement, queries) as BoundStatement;
  return bindOther(statement as OtherStatement, queries);
}

function bindOther(statement: OtherStatement, queries: Queries): OtherBound {
  const { binding } = queries;
  switch (statement.kind) {
    case "query":
      return { kind: "query", plan: queries.bind(statement.query, NO_NAMES).plan };
    case "explain":
      if (statement.statement.kind === "explain") {
        throw new SqlError("EXPLAIN cannot be explained", statement.statement.at, SQLSTATE.syntax);
      }
      if (statement.analyze && !READS.has(statement.statement.kind as OtherStatement["kind"])) {
        throw notSupported("EXPLAIN ANALYZE of a statement that reads nothing", statement.statement.at);
      }
      return {
        kind: "explain",
        analyze: statement.analyze,
        statement: bindStatement(statement.statement, queries) as OtherBound,
      };
    case "createTable":
      return bindCreateTable(queries, statement);
    case "dropTable":
      return bindDrop(binding, statement);
    case "rename":
      return bindRename(binding, statement);
    case "alterTable":
      return bindAlter(binding, statement);
    case "insert":
      return bindInsert(queries, statement);
    case "update":
      return bindUpdate(queries, statement);
    case "delete":
      return bindDelete(queries, statement);
    case "show":
      return { kind: "query", plan: showPlan(binding, statement) };
    case "set":
      return { kind: "set", text: statement.text };
    case "transaction":
      return { kind: "transaction", action: statement.action };
    case "checkpoint":
      binding.requires.add("SNAPSHOT", statement.at);
      return { kind: "checkpoint", action: statement.action, at: statement.at };
    case "backup":
      binding.requires.add("BACKUP DATABASE", statement.at);
      return { kind: "backup", name: statement.name?.text, at: statement.name?.at ?? statement.at };
    case "cancelQuery":
      return { kind: "cancelQuery", id: statement.id, at: statement.at };
    case "empty":
      return { kind: "empty" };
  }
}
