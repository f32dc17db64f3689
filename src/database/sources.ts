/** Finds what a plan reads and estimates its work. */
import { isPacked, type PostedPlan } from "../engine/mod.ts";
import { inputsOf, scanMarks } from "../sql/mod.ts";
import type { AggregateNode, Plan, ScanReading } from "../sql/plan.ts";
import type { Catalogue, ScanSource } from "../storage/contract.ts";

export function scansOf(plan: PostedPlan): ScanReading[] {
  if (isPacked(plan)) return plan.scans;
  if (plan.node !== "scan") return inputsOf(plan).flatMap(scansOf);
  const { id, tableId, columnIds, intervals } = plan;
  return [{ id, tableId, columnIds, intervals }];
}

/** The segments of the current snapshots for every scan, by its id. */
export function resolveSources(plan: PostedPlan, catalogue: Catalogue): ScanSource[] {
  return sourcesOf(scansOf(plan), catalogue);
}

function sourcesOf(scans: ScanReading[], catalogue: Catalogue): ScanSource[] {
  const sources: ScanSource[] = [];
  for (const { id, tableId, columnIds, intervals } of scans) {
    sources[id] = catalogue.tableById(tableId)!.source(columnIds, intervals);
  }
  return sources;
}

/** The descriptions of the scans for EXPLAIN, and their sources, by id. */
export function marksOf(
  scans: ScanReading[],
  catalogue: Catalogue,
  sources = sourcesOf(scans, catalogue),
): { marks: string[][]; sources: ScanSource[] } {
  const marks: string[][] = [];
  for (const scan of scans) marks[scan.id] = scanMarks(scan, { sources, catalogue });
  return { marks, sources };
}

/** count() over a whole table adds the segments' row counts and reads no row. */
function countsRows({ input, keys }: AggregateNode): boolean {
  return keys.length === 0 && input.node === "scan" && input.columnIds.length === 0 && !input.predicate &&
    !input.intervals;
}

/** A row counts once for each of this many columns. */
const COLUMNS_A_ROW = 16;

/** Rounds of a recursion mostly have few rows. If not, the time limit of direct queries moves them to a worker. */
const WORKING_ROWS = 100;

/** An upper bound of the rows that any node processes, which decides where a query runs. */
export function workOf(plan: Plan, sources: ScanSource[]): number {
  let work = 0;
  const rows = (node: Plan): number => {
    const out = rowsOf(node);
    work += out * Math.max(1, node.columns.length / COLUMNS_A_ROW);
    return out;
  };
  const rowsOf = (node: Plan): number => {
    switch (node.node) {
      case "scan":
        return sources[node.id].rowCount;
      case "parquet":
        return Infinity;
      case "values":
        return node.rows.length;
      case "metadata":
        return 100;
      case "working":
        return WORKING_ROWS;
      case "sequence":
        return node.count;
      case "join": {
        const left = rows(node.left), right = rows(node.right);
        return Math.max(left * right, left, right);
      }
      case "timeJoin":
      case "set":
      case "recursion":
        return rows(node.left) + rows(node.right);
      case "sample": {
        // A fill may make any number of rows from few.
        const input = rows(node.input);
        return node.fills.length > 0 ? Infinity : input;
      }
      case "aggregate":
        return countsRows(node) ? 1 : Math.max(1, rows(node.input));
      default:
        return rows(node.input);
    }
  };
  rows(plan);
  return work;
}
