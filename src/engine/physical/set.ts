/** Chooses how UNION, EXCEPT and INTERSECT compare rows. */
import type { SetNode } from "../../sql/plan.ts";
import type { PlanFacts } from "./facts.ts";
import { hasVolatile } from "./functions.ts";
import type { PhysicalSet } from "./plan.ts";
import { hashPartitions } from "./spill.ts";

/** Without the inputs. */
export function chooseSet(id: number, node: SetNode, facts: PlanFacts): PhysicalSet {
  const { operator } = node;
  const way = operator === "union all" ? "chain" : operator === "union" ? "new rows" : "against right";
  // Whole rows are the keys.
  const spill = way === "chain" ? undefined : hashPartitions(node.columns, facts);
  const canRestart = spill !== undefined && !hasVolatile(node, facts);
  return { operator: "set", id, node, way, spill, canRestart, fused: [], inputs: [] };
}
