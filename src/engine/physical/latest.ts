/** Chooses how LATEST ON finds the last row of each key. */
import type { LatestNode, ScanNode } from "../../sql/plan.ts";
import { layoutOf } from "../../types/mod.ts";
import { hasNulls, type PlanFacts, sourceOf } from "./facts.ts";
import type { LatestWay } from "./plan.ts";
import { allowedSymbols } from "./symbols.ts";

/** Uses the scan below if its rows are in order of the relevant time. */
export function latestWay(id: number, node: LatestNode, facts: PlanFacts): LatestWay {
  const { input: scan, time } = node;
  if (scan.node !== "scan" || time.kind !== "column" || time.index !== scan.timestamp) return { kind: "all rows" };
  const source = sourceOf(scan, facts);
  if (!source.sorted) return { kind: "all rows" };
  const key = symbolKey(node);
  const isWhole = scan.predicate === undefined && scan.intervals === undefined && !scan.rowId;
  if (isWhole && key !== undefined) return { kind: "by symbol", scan, key, reader: id };
  return { kind: "newest first", scan, key };
}

/** The same rows, newest first. */
export function newestFirst(scan: ScanNode): ScanNode {
  return { ...scan, reverse: true, order: "desc" };
}

function symbolKey({ keys }: LatestNode): number | undefined {
  const [key] = keys;
  return keys.length === 1 && key?.kind === "column" && layoutOf(key.type) === "symbol" ? key.index : undefined;
}

/** The most keys that rows of the scan can have. */
export function keysMax(scan: ScanNode, key: number | undefined, facts: PlanFacts): number {
  if (key === undefined) return Infinity;
  const { dictionaries, segments } = sourceOf(scan, facts), dictionary = dictionaries[key];
  const allowed = scan.predicate && allowedSymbols(scan.predicate, facts).find(({ column }) => column === key);
  if (allowed !== undefined) return allowed.values.length;
  if (dictionary === undefined) return Infinity;
  return dictionary.count + (hasNulls(segments, key) ? 1 : 0);
}
