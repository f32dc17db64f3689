/**
 * Converts a match of the grammar to the syntax tree: one action for each rule of grammar.ts, in the files tree-*.ts.
 */
import type * as ohm from "ohm-js";
import { grammar } from "./grammar.ts";
import { expressionActions } from "./tree-expressions.ts";
import { during, type Matched } from "./tree-nodes.ts";
import { queryActions } from "./tree-queries.ts";
import { STATEMENT_ACTIONS } from "./statements/mod.ts";

const semantics = grammar.createSemantics().addOperation<unknown>("tree", {
  ...queryActions,
  ...expressionActions,
  ...STATEMENT_ACTIONS,
});

/** The result of a successful match, without its text. */
export type MatchedNodes = ReturnType<typeof semantics>;

export function nodesOf(result: ohm.MatchResult): MatchedNodes {
  return semantics(result);
}

export function toTree(nodes: MatchedNodes, of: Matched): unknown {
  return during(of, () => nodes.tree());
}
