/** How window functions see their rows. */
import type { SortKey, WindowNode } from "../../sql/plan.ts";
import { canStream } from "../operators/window-streaming.ts";
import type { WindowWay } from "./plan.ts";

/** Rows can go out as they come in where every call needs no more than the rows before, in the order in which they come. */
export function windowWay(node: WindowNode): WindowWay {
  const inOrder = node.calls.map((call) => isInInputOrder(call.orderBy, node));
  if (node.calls.every((call, k) => inOrder[k] && canStream(call))) return { kind: "streaming" };
  const hasRanks = node.calls.some((call) => /rank/.test(call.function));
  return { kind: "general", calls: inOrder.map((isSorted) => ({ isSorted, hasPeers: !isSorted || hasRanks })) };
}

/** True if the rows arrive in this order. */
function isInInputOrder(orderBy: readonly SortKey[], node: WindowNode): boolean {
  if (orderBy.length === 0) return true;
  const { timestamp, order } = node.input;
  if (orderBy.length > 1 || timestamp < 0 || order === "none") return false;
  const [{ expression, descending, nulls }] = orderBy;
  return expression.kind === "column" && expression.index === timestamp && descending === (order === "desc") &&
    nulls === undefined;
}
