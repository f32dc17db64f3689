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
    words: ["CHECKPOINT", "SNAPSHOT PREPARE", "SNAPSHOT COMPLETE"],
    grammar: String.raw`
  checkpoint = "CHECKPOINT" ("CREATE" | "RELEASE")     -- now
             | "SNAPSHOT" ("PREPARE" | "COMPLETE")     -- former`,
    actions: {
      checkpoint_now(checkpoint, action): Checkpoint {
        return { kind: "checkpoint", at: at(checkpoint), action: word(action) as Checkpoint["action"] };
      },
      checkpoint_former(snapshot, action): Checkpoint {
        return { kind: "checkpoint", at: at(snapshot), action: word(action) === "prepare" ? "create" : "release" };
      },
    },
  },
  reference: {
    syntax: `CHECKPOINT CREATE
CHECKPOINT RELEASE`,
    summary:
      "Keeps the files of the database unchanged until RELEASE, so that they can be copied. Older scripts say SNAPSHOT PREPARE and SNAPSHOT COMPLETE.",
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
