/** SET and its like: accepted, but without effect here. The PostgreSQL wire answers those that it knows. */
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
    summary: "Accepted for PostgreSQL's clients. Over HTTP they have no effect.",
  },
  category: "ddl",
  requires: [],
  bind: () => ({ kind: "set" }),
  execute: () => done("ddl", "SET"),
};
