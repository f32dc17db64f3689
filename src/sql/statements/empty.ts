/** A statement with only blanks and comments. */
import type { Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { done, type StatementKind } from "./statement.ts";

export const empty: StatementKind<Statement & { kind: "empty" }, BoundStatement<never> & { kind: "empty" }> = {
  kind: "empty",
  form: {},
  category: "empty",
  requires: [],
  bind: () => ({ kind: "empty" }),
  execute: () => done("empty", ""),
};
