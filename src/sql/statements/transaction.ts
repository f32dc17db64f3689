/** BEGIN, COMMIT, ROLLBACK. */
import type { Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, word } from "../tree-nodes.ts";
import { done, type StatementKind } from "./statement.ts";

const ACTIONS = {
  begin: "begin",
  start: "begin",
  commit: "commit",
  end: "commit",
  rollback: "rollback",
  abort: "rollback",
} as const;

type Action = typeof ACTIONS[keyof typeof ACTIONS];

interface TransactionStatement extends Statement {
  kind: "transaction";
  action: Action;
}

interface BoundTransaction extends BoundStatement<never> {
  kind: "transaction";
  action: Action;
}

export const transaction: StatementKind<TransactionStatement, BoundTransaction> = {
  kind: "transaction",
  form: {
    words: ["BEGIN", "COMMIT", "ROLLBACK", "END", "ABORT", "START"],
    grammar: String.raw`
  transaction = ("BEGIN" | "COMMIT" | "ROLLBACK" | "END" | "ABORT") ("WORK" | "TRANSACTION")? transactionMode*  -- word
              | "START" "TRANSACTION" transactionMode*   -- start
  transactionMode = "," | name`,
    actions: {
      transaction_word(first, _work, _modes): TransactionStatement {
        return { kind: "transaction", at: at(first), action: ACTIONS[word(first) as keyof typeof ACTIONS] };
      },
      transaction_start(start, _transaction, _modes): TransactionStatement {
        return { kind: "transaction", at: at(start), action: "begin" };
      },
    },
  },
  reference: {
    syntax: `BEGIN, START TRANSACTION
COMMIT, END
ROLLBACK, ABORT`,
    summary: "Begin and end a transaction, over the PostgreSQL wire.",
  },
  category: "transaction",
  requires: [],

  bind: ({ action }) => ({ kind: "transaction", action }),

  async execute({ action }, run) {
    let tag = action.toUpperCase();
    if (action === "begin") run.begin();
    else if (action === "commit") tag = await run.commit();
    else await run.rollback();
    return done("transaction", tag);
  },
};
