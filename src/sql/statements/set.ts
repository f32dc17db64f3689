/**
 * SET and similar statements. The PostgreSQL protocol handles those that it knows. The others are accepted without
 * effect.
 */
import type { Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at } from "../tree-nodes.ts";
import { done, type StatementKind } from "./statement.ts";

export const set: StatementKind<Statement & { kind: "set" }, BoundStatement<never> & { kind: "set" }> = {
  kind: "set",
  form: {
    words: ["SET", "RESET", "DISCARD", "DEALLOCATE", "CLOSE", "UNLISTEN"],
    grammar: String.raw`
  set = ("SET" | "RESET" | "DISCARD" | "DEALLOCATE" | "CLOSE" | "UNLISTEN") any*`,
    actions: {
      set(first, _rest) {
        return { kind: "set", at: at(first) };
      },
    },
  },
  reference: {
    syntax: "SET …, RESET …, DISCARD …, DEALLOCATE …, CLOSE …, UNLISTEN …",
    summary: "Over the PostgreSQL wire: session settings, prepared statements and cursors. Over HTTP without effect.",
  },
  category: "ddl",
  requires: [],
  bind: () => ({ kind: "set" }),
  execute: () => done("ddl", "SET"),
};
