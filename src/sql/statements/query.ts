/** SELECT and everything else that returns rows: a table's name, UNION, WITH, DECLARE. */
import type { PostedPlan } from "../../engine/contract.ts";
import { notSupported } from "../../errors.ts";
import type { Query, Statement } from "../ast.ts";
import { NO_NAMES } from "../binder/context.ts";
import { isTimestamp } from "../binder/types.ts";
import type { BoundStatement, Plan } from "../plan.ts";
import type { Prelude } from "../tree-queries.ts";
import { at } from "../tree-nodes.ts";
import type { StatementKind } from "./statement.ts";

export interface QueryStatement extends Statement {
  kind: "query";
  query: Query;
}

export interface BoundQueryStatement<P = PostedPlan> extends BoundStatement<P> {
  kind: "query";
  plan: P;
}

/** The rule for statements whose first word does not begin another kind. */
export const QUERY_RULE = "queryStatement";

/** The call that is all of a statement, `SELECT f(1, 'x')`, if its arguments are numbers and strings. */
export function soleCall(statement: Statement): { name: string; args: (number | string)[] } | undefined {
  if (statement.kind !== "query") return undefined;
  const { query } = statement as QueryStatement;
  if (query.kind !== "select" || query.bare || query.from !== undefined || query.items.length !== 1) return undefined;
  const { expression: call } = query.items[0]!;
  if (call.kind !== "call") return undefined;
  const args = call.args.flatMap((arg): (number | string)[] =>
    arg.kind === "number" ? [Number(arg.text)] : arg.kind === "string" ? [arg.value] : []
  );
  return args.length < call.args.length ? undefined : { name: call.name.toLowerCase(), args };
}

/** Index of the designated timestamp, otherwise of the one by which the rows are ordered, or -1. */
function answerTimestamp(plan: Plan): number {
  if (plan.timestamp >= 0) return plan.timestamp;
  switch (plan.node) {
    case "sort": {
      const { expression } = plan.keys[0]!;
      return expression.kind === "column" && isTimestamp(expression.type) ? expression.index : -1;
    }
    case "limit":
      return answerTimestamp(plan.input);
    case "project": {
      const timestamp = answerTimestamp(plan.input);
      return plan.expressions.findIndex((e) => e.kind === "column" && e.index === timestamp);
    }
    default:
      return -1;
  }
}

export const query: StatementKind<QueryStatement, BoundQueryStatement> = {
  kind: "query",
  form: {
    statements: { SELECT: QUERY_RULE, DECLARE: QUERY_RULE, WITH: "withStatement" },
    grammar: String.raw`
  queryStatement = query end
  withStatement = prelude afterWith end                  -- change
                | query end                              -- query`,
    actions: {
      queryStatement(query, _end): QueryStatement {
        return { kind: "query", at: at(query), query: query.tree() };
      },
      withStatement_change(prelude, body, _end): Statement {
        const { declares, ...names } = prelude.tree() as Prelude;
        if (declares.length > 0) throw notSupported("DECLARE before INSERT or UPDATE", declares[0]!.at);
        return { ...body.tree() as Statement, at: at(prelude), ...names };
      },
      withStatement_query(query, _end): QueryStatement {
        return { kind: "query", at: at(query), query: query.tree() };
      },
    },
  },
  reference: {
    syntax: `[WITH name AS (query), …] SELECT … [FROM source] [clauses]
table [clauses]
query UNION [ALL] query`,
    summary: "Reads rows. [SQL](sql.md) shows the clauses.",
  },
  category: "query",
  requires: ["SELECT"],

  bind({ query }, queries) {
    const { plan } = queries.bind(query, NO_NAMES);
    // Only of the answer: the rows of a query within another one are not known to ascend by it.
    return { kind: "query", plan: { ...plan, timestamp: answerTimestamp(plan) } };
  },
  rows: ({ plan }) => plan,
  execute: ({ plan }, run) => run.query(plan),
};
