/** The nodes of EXPLAIN, as lines and as a tree. */
import type { ExplainedNode } from "../api.ts";

/**
 * A node of the plan for users: one or more lines of EXPLAIN, and their contents as data. `depth` gives the nesting.
 */
export interface ExplainNode extends Omit<ExplainedNode, "inputs"> {
  depth: number;
  /** Notes and measurements as shown in the line. */
  marks: readonly string[];
}

export function explainLines(nodes: readonly ExplainNode[]): string[] {
  return nodes.flatMap(({ depth, text, details, marks }) => {
    const indent = "  ".repeat(depth);
    const head = `${indent}${text}${marks.length === 0 ? "" : ` [${marks.join("; ")}]`}`;
    return [head, ...details.map((line) => `${indent}    ${line}`)];
  });
}

/** Builds the tree from nodes in pre-order. */
export function explainTree(nodes: readonly ExplainNode[]): ExplainedNode {
  const above: ExplainedNode[] = [];
  for (const { depth, text, details, notes, isFused, measured } of nodes) {
    const node: ExplainedNode = { text, details, notes, isFused, measured, inputs: [] };
    above[depth - 1]?.inputs.push(node);
    above[depth] = node;
  }
  return above[0]!;
}
