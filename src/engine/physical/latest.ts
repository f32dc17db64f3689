/** Chooses how LATEST ON finds the last row of each key. */
import type { AggregateNode, Expr, LatestNode, ScanNode } from "../../sql/plan.ts";
import { layoutOf } from "../../types/mod.ts";
import { hasNulls, type PlanFacts, sourceOf } from "./facts.ts";
import { groupingOf } from "./grouping.ts";
import type { Grouping, LatestWay } from "./plan.ts";
import { chooseScan, columnAt, fusedWith, unnamedColumns } from "./reading.ts";
import { allowedSymbols } from "./symbols.ts";
import { LOOKUP_ROWS_SHARE } from "./thresholds.ts";

const LAST = "last(LONG)";

/** Uses the scan below if its rows are in order of the relevant time. */
export function latestWay(id: number, node: LatestNode, facts: PlanFacts): LatestWay {
  const { input: scan, time, keys } = node;
  if (scan.node !== "scan" || time.kind !== "column" || time.index !== scan.timestamp) return { kind: "all rows" };
  const source = sourceOf(scan, facts), symbols = symbolsOf(keys);
  if (!source.sorted) return { kind: "all rows" };
  if (scan.rowId) return { kind: "newest first", scan, symbols };
  const isWhole = scan.predicate === undefined && scan.intervals === undefined, [key] = symbols ?? [];
  if (isWhole && symbols?.length === 1) return { kind: "by symbol", scan, key: key!, reader: id };
  if (isLookedUp(scan, facts)) return { kind: "newest first", scan, symbols };
  const groups = groupsOf(id, node, scan, facts);
  return symbols === undefined ? { kind: "groups", scan, groups } : { kind: "newest first", scan, symbols, groups };
}

/** The same rows, newest first. */
export function newestFirst(scan: ScanNode): ScanNode {
  return { ...scan, reverse: true, order: "desc" };
}

function symbolsOf(keys: readonly Expr[]): number[] | undefined {
  const columns = keys.flatMap((key) => key.kind === "column" && layoutOf(key.type) === "symbol" ? [key.index] : []);
  return columns.length === keys.length ? columns : undefined;
}

/** True if rows of few symbols are wanted, which the postings of an index tell. */
function isLookedUp(scan: ScanNode, facts: PlanFacts): boolean {
  const { dictionaries } = sourceOf(scan, facts);
  return scan.predicate !== undefined &&
    allowedSymbols(scan.predicate, facts).some(({ column, values }) =>
      LOOKUP_ROWS_SHARE * values.length <= (dictionaries[column]?.count ?? 0)
    );
}

/** Groups of the scan's rows by the keys, with the id of the last row of each. */
function groupsOf(id: number, { keys }: LatestNode, scan: ScanNode, facts: PlanFacts): Grouping {
  const rowId = columnAt(scan.columns.length, "LONG");
  const input: ScanNode = { ...scan, rowId: true, columns: [...scan.columns, { name: "row id", type: "LONG" }] };
  const node: AggregateNode = {
    node: "aggregate",
    input,
    keys,
    aggregates: [{ function: LAST, args: [rowId], distinct: false, type: "LONG", at: 0 }],
    columns: unnamedColumns([...keys, rowId].map(({ type }) => type)),
    timestamp: -1,
    order: "none",
  };
  return groupingOf(node, fusedWith(chooseScan(id, input, facts), id), facts);
}

/** The most keys that rows of the scan can have. `symbols`: the keys, if all are columns of symbols. */
export function keysMax(scan: ScanNode, symbols: readonly number[] | undefined, facts: PlanFacts): number {
  if (symbols === undefined) return Infinity;
  const { dictionaries, segments } = sourceOf(scan, facts);
  const allowed = scan.predicate === undefined ? [] : allowedSymbols(scan.predicate, facts);
  return symbols.reduce((product, key) => {
    const ofKey = allowed.find(({ column }) => column === key), dictionary = dictionaries[key];
    if (ofKey !== undefined) return product * ofKey.values.length;
    return product * (dictionary === undefined ? Infinity : dictionary.count + (hasNulls(segments, key) ? 1 : 0));
  }, 1);
}
