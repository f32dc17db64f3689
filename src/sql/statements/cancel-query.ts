import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, given, token } from "../tree-nodes.ts";
import { done, type StatementKind } from "./statement.ts";

interface CancelQuery extends Statement {
  kind: "cancelQuery";
  id: number;
}

interface BoundCancelQuery extends BoundStatement<never> {
  kind: "cancelQuery";
  id: number;
  at: number;
}

export const cancelQuery: StatementKind<CancelQuery, BoundCancelQuery> = {
  kind: "cancelQuery",
  form: {
    words: ["CANCEL QUERY"],
    grammar: String.raw`
  cancelQuery = "CANCEL" "QUERY" "<number>"              -- number
              | "CANCEL" "QUERY" ~"<number>" any*        -- other`,
    actions: {
      cancelQuery_number(_cancel, _query, id): CancelQuery {
        const { text, at } = token(id);
        if (!/^\d+$/.test(text)) throw numberWanted(at);
        return { kind: "cancelQuery", at, id: Number(text) };
      },
      cancelQuery_other(_cancel, query, rest): CancelQuery {
        throw numberWanted(at(given(rest) ? rest.child(0) : query));
      },
    },
  },
  reference: {
    syntax: "CANCEL QUERY number",
    summary: "Cancels the statement with this number in `query_activity()`.",
  },
  category: "session",
  requires: [],

  bind: ({ id, at }) => ({ kind: "cancelQuery", id, at }),

  execute({ id, at }, { services, identity, client }) {
    const isFound = services.activity.cancel(id, { identity, canWrite: client?.canWrite ?? true }, at);
    if (!isFound) throw new SqlError(`query ${id} does not exist or has ended`, at, SQLSTATE.objectNotInState);
    return done("ddl", "CANCEL QUERY");
  },
};

function numberWanted(at: number): SqlError {
  return new SqlError("CANCEL QUERY needs the number of a query: see query_activity()", at);
}
