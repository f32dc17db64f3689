import type { Statement } from "../ast.ts";
import { at } from "../tree-nodes.ts";
import { sessionKind, type SessionName, sessionName } from "./session-kind.ts";

interface RollbackTo extends Statement {
  kind: "rollbackTo";
  name: SessionName;
}

export const rollbackTo = sessionKind<RollbackTo>({
  kind: "rollbackTo",
  form: {
    words: ["ROLLBACK"],
    grammar: `\n  rollbackTo = "ROLLBACK" ("WORK" | "TRANSACTION")? "TO" ("SAVEPOINT" &name)? name`,
    actions: {
      rollbackTo: (first, _work, _to, _savepoint, _ahead, name): RollbackTo => ({
        kind: "rollbackTo",
        at: at(first),
        name: sessionName(name),
      }),
    },
  },
  reference: {
    syntax: "ROLLBACK TO [SAVEPOINT] name",
    summary: "Undoes the changes since the savepoint. A failed transaction goes on from there.",
  },
  category: "transaction",
  async run({ name }, run) {
    await run.savepoints.rollbackTo(name.text, name.at);
    return "ROLLBACK";
  },
});
