/** What a plan reads: its scans in the order the engine counts them, and about how much work it is. */
import { inputsOf, scanMarks } from "../sql/mod.ts";
import type { AggregateNode, Plan, ScanNode } from "../sql/plan.ts";
import type { Catalogue, ScanSource } from "../storage/contract.ts";

type Reading = Pick<ScanNode, "tableId" | "columnIds" | "intervals">;

/** The scans in depth-first order, left before right: `QueryContext.sources[k]` is the k-th one's. */
export function scansOf(plan: Plan): Reading[] {
  if (plan.node === "packed") return plan.scans;
  return plan.node === "scan" ? [plan] : inputsOf(plan).flatMap(scansOf);
}

/** The current snapshots' segments for every scan. */
export function resolveSources(plan: Plan, catalogue: Catalogue): ScanSource[] {
  return sourcesOf(scansOf(plan), catalogue);
}

function sourcesOf(scans: Reading[], catalogue: Catalogue): ScanSource[] {
  return scans.map((scan) => catalogue.tableById(scan.tableId)!.source(scan.columnIds, scan.intervals));
}

/** What EXPLAIN says of each scan. */
export function marksOf(scans: Reading[], catalogue: Catalogue): string[][] {
  const sources = sourcesOf(scans, catalogue);
  return scans.map((scan, index) => scanMarks(scan, { sources, catalogue }, index));
}

/** count() over a whole table: it adds the segments' row counts, and reads no row. */
function countsRows({ input, keys }: AggregateNode): boolean {
  return keys.length === 0 && input.node === "scan" && input.columnIds.length === 0 && !input.predicate &&
    !input.intervals;
}

/** A row of more columns counts for several. */
const COLUMNS_A_ROW = 16;

/** An upper bound of the rows that come out of a node, and of those that any node below handles: what decides where a query runs. */
export function workOf(plan: Plan, sources: ScanSource[]): number {
  let next = 0;
  let work = 0;
  const rows = (node: Plan): number => {
    const out = rowsOf(node);
    work += out * Math.max(1, node.columns.length / COLUMNS_A_ROW);
    return out;
  };
  const rowsOf = (node: Plan): number => {
    switch (node.node) {
      case "scan":
        return sources[next++].rowCount;
      case "parquet":
      case "packed":
        return Infinity;
      case "values":
        return node.rows.length;
      case "metadata":
        return 100;
      case "sequence":
        return node.count;
      case "join": {
        const left = rows(node.left), right = rows(node.right);
        return Math.max(left * right, left, right);
      }
      case "timeJoin":
      case "set":
        return rows(node.left) + rows(node.right);
      case "sample": {
        // A fill makes any number of rows of few.
        const input = rows(node.input);
        return node.fills.length > 0 ? Infinity : input;
      }
      case "aggregate":
        if (countsRows(node)) {
          next++;
          return 1;
        }
        return Math.max(1, rows(node.input));
      default:
        return rows(node.input);
    }
  };
  rows(plan);
  return work;
}
