/** Binds syntax trees: resolves names and types, and makes bound statements. */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { Requirement } from "../requirement.ts";
import type { Statement } from "./ast.ts";
import { type BindContext, Binding, UnknownColumn } from "./binder/context.ts";
import type { Language, Queries } from "./binder/query.ts";
import { QueryBinder } from "./binder/select.ts";
import { KEYWORDS } from "./grammar.ts";
import { parse, STATEMENT_WORDS } from "./parser.ts";
import type { BoundStatement } from "./plan.ts";
import { kindOf, STATEMENTS } from "./statements/mod.ts";
import type { QueryStatement } from "./statements/query.ts";

export interface Bound {
  statement: BoundStatement;
  /** Type tags of $1, $2 … */
  parameterTypes: string[];
  /**
   * For each parameter: the element type if PostgreSQL declares it as an array, as in `$1::oid[]`. Arrays are texts
   * here.
   */
  parameterArrays: (string | undefined)[];
  /**
   * Valid for the result columns and the parameters only: the statement must be bound again with values (see
   * `BindContext.parameterValues`).
   */
  boundByValues: boolean;
  requires: Requirement[];
  /** Notices to the client, besides the result. */
  notices: string[];
  /** Depends on the clock or on files at the time of binding, so it must be bound again for each run. */
  boundAnew: boolean;
  /** The time of binding, if the statement contains it: the `now()` of its run. Microseconds since 1970. */
  timeMicros?: bigint;
}

/** @throws {SqlError} for any mistake in the statement, with its position in the text. */
export function bind(statement: Statement, context: BindContext): Bound {
  const binding = new Binding(context, statement.at);
  const bound = bindReadable(statement, binding);
  const parameterTypes = Array.from(binding.parameterTypes, (type) => type ?? "STRING");
  return {
    statement: bound,
    parameterTypes,
    parameterArrays: binding.parameterArrays,
    boundByValues: binding.boundByValues,
    requires: binding.requires.list(),
    notices: [...binding.notices],
    boundAnew: binding.boundAnew,
    timeMicros: binding.timeMicros,
  };
}

/** Explains an unknown column that the file has with an unsupported type. */
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

function bindStatement(statement: Statement, queries: Queries): BoundStatement {
  // Plans from binders are never packed.
  return kindOf(statement).bind(statement, queries) as BoundStatement;
}

const LANGUAGE: Language = {
  statementWords: STATEMENT_WORDS,
  showForms: STATEMENTS.flatMap(({ reference }) => /^SHOW ([A-Z ]*[A-Z])/.exec(reference?.syntax ?? "")?.[1] ?? [])
    .map((words) => words.replace(/ FROM$/, "").toLowerCase()),
  keywords: [...KEYWORDS.keys()],
  bind: bindStatement,
  query(text, effort) {
    const statement = parse(text, effort);
    if (statement.kind !== "query") throw new SqlError("expected a query", statement.at);
    return (statement as QueryStatement).query;
  },
};
