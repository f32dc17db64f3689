import type { Statement } from "../ast.ts";
import { at } from "../tree-nodes.ts";
import { sessionKind, type SessionName, sessionName } from "./session-kind.ts";

interface Savepoint extends Statement {
  kind: "savepoint";
  name: SessionName;
}

export const savepoint = sessionKind<Savepoint>({
  kind: "savepoint",
  form: {
    words: ["SAVEPOINT"],
    grammar: `\n  savepoint = "SAVEPOINT" name`,
    actions: {
      savepoint: (first, name): Savepoint => ({ kind: "savepoint", at: at(first), name: sessionName(name) }),
    },
  },
  reference: {
    syntax: "SAVEPOINT name",
    summary: "Marks a point in a transaction, over the PostgreSQL wire. `ROLLBACK TO` goes back to it.",
  },
  run({ name }, run) {
    run.savepoints.add(name.text);
    return "SAVEPOINT";
  },
});
