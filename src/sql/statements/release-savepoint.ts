import type { Statement } from "../ast.ts";
import { at } from "../tree-nodes.ts";
import { sessionKind, type SessionName, sessionName } from "./session-kind.ts";

interface ReleaseSavepoint extends Statement {
  kind: "releaseSavepoint";
  name: SessionName;
}

export const releaseSavepoint = sessionKind<ReleaseSavepoint>({
  kind: "releaseSavepoint",
  form: {
    words: ["RELEASE"],
    grammar: `\n  releaseSavepoint = "RELEASE" ("SAVEPOINT" &name)? name`,
    actions: {
      releaseSavepoint: (first, _savepoint, _ahead, name): ReleaseSavepoint => ({
        kind: "releaseSavepoint",
        at: at(first),
        name: sessionName(name),
      }),
    },
  },
  reference: {
    syntax: "RELEASE [SAVEPOINT] name",
    summary: "Forgets the savepoint and later ones, and keeps the changes since.",
  },
  run({ name }, run) {
    run.savepoints.release(name.text, name.at);
    return "RELEASE";
  },
});
