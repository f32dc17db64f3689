import type { Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, word } from "../tree-nodes.ts";
import { done, type StatementKind } from "./statement.ts";

interface Checkpoint extends Statement {
  kind: "checkpoint";
  action: "create" | "release";
}

interface BoundCheckpoint extends BoundStatement<never> {
  kind: "checkpoint";
  action: "create" | "release";
  at: number;
}

export const checkpoint: StatementKind<Checkpoint, BoundCheckpoint> = {
  kind: "checkpoint",
  form: {
    words: ["CHECKPOINT"],
    grammar: String.raw`
  checkpoint = "CHECKPOINT" ("CREATE" | "RELEASE")`,
    actions: {
      checkpoint(checkpoint, action): Checkpoint {
        return { kind: "checkpoint", at: at(checkpoint), action: word(action) as Checkpoint["action"] };
      },
    },
  },
  reference: {
    syntax: `CHECKPOINT CREATE
CHECKPOINT RELEASE`,
    summary: "Keeps the files of the database unchanged until RELEASE, so that they can be copied.",
  },
  category: "ddl",
  requires: ["SNAPSHOT"],
  notInTransaction: "CHECKPOINT",

  bind({ action, at }, { binding }) {
    binding.requires.add("SNAPSHOT", at);
    return { kind: "checkpoint", action, at };
  },

  async execute({ action, at }, { services: { backups } }) {
    if (action === "create") await backups.begin(at);
    else await backups.end();
    return done("ddl", "CHECKPOINT");
  },
};
