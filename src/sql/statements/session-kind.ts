/** Common parts of the statements that change the state of a session, and not its data. */
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { name, type Node, token } from "../tree-nodes.ts";
import { done, type Form, type StatementKind, type StatementRun } from "./statement.ts";

interface SessionKind<Tree extends Statement> extends Pick<StatementKind<Tree>, "kind" | "reference"> {
  form: Omit<Form, "mayBeTable">;
  /** "session" by default. "transaction": also allowed in a failed transaction. */
  category?: "session" | "transaction";
  /** Returns the command tag. */
  run(tree: Tree, run: StatementRun): string | Promise<string>;
}

/** There is nothing to bind: the tree is the bound statement. */
export function sessionKind<Tree extends Statement>(
  { kind, form, reference, category = "session", run: change }: SessionKind<Tree>,
): StatementKind<Tree, Tree & BoundStatement<never>> {
  return {
    kind,
    form: { ...form, mayBeTable: true },
    reference,
    category,
    requires: [],
    bind: (tree) => tree,
    execute: async (tree, run) => done(category, await change(tree, run)),
  };
}

/** Of a savepoint, a prepared statement or a portal. As in PostgreSQL, it is in lower case unless it is quoted. */
export interface SessionName {
  text: string;
  at: number;
}

export function sessionName(node: Node): SessionName {
  const { text, at, quoted }: Name = name(node);
  return { text: quoted ? text : text.toLowerCase(), at };
}

/** Undefined for ALL. */
export function sessionNameOrAll(node: Node): SessionName | undefined {
  const { kind, text } = token(node);
  return kind === "word" && text.toUpperCase() === "ALL" ? undefined : sessionName(node);
}
