/** Runs the statement of a panel, with the rights of the viewer. */
import { drawnRows } from "../charts/drawn-rows.ts";
import { noteOf } from "../charts/chart-note.ts";
import { shapeOf, typeFor } from "../charts/shape.ts";
import { type Outcome, query, UNREACHABLE } from "../server/client.ts";
import { release, runStatement } from "../server/results.ts";
import type { Panel } from "./model.ts";
import { type Range, rangeEnds } from "./range.ts";

export interface PanelOutcome extends Outcome {
  /** What is not shown, or how. */
  note?: string;
}

/** Rows of a table. */
const ROWS_MAX = 20_000;
const BUCKETS_MAX = 1_000;

/** Errors and an abort are outcomes. */
export async function panelOutcome(
  panel: Panel,
  text: string,
  range: Range,
  signal: AbortSignal,
): Promise<PanelOutcome> {
  if (panel.kind === "chart") return await chartOutcome(panel, text, range, signal);
  const outcome = await query(text, { readOnly: true, limit: ROWS_MAX, signal });
  const isCut = panel.kind === "table" && outcome.rows?.dataset.length === ROWS_MAX;
  return isCut ? { ...outcome, note: `The first ${ROWS_MAX.toLocaleString("en")} rows.` } : outcome;
}

/** Of a range that was chosen, with samples as fine as can be seen. All rows are read, and reduced to those that can be drawn. */
async function chartOutcome(panel: Panel, text: string, range: Range, signal: AbortSignal): Promise<PanelOutcome> {
  try {
    let outcome = await withSamples(panel, text, range, signal);
    if (outcome?.rows === undefined) outcome = await runStatement(text, { signal, readOnly: true });
    const { rows } = outcome, shape = rows === undefined ? undefined : shapeOf(rows);
    if (rows === undefined || shape === undefined) return outcome;
    const type = typeFor(shape, panel.chartType);
    try {
      const drawn = await drawnRows(rows, shape, type, { signal });
      return { ...outcome, rows: drawn.rows, note: noteOf(drawn, rows, type) || undefined };
    } finally {
      if (rows.spool !== undefined) release(rows.spool.id);
    }
  } catch (error) {
    return { error: { message: signal.aborted ? UNREACHABLE : (error as Error).message }, durationMs: 0 };
  }
}

/** A SAMPLE BY of @interval has the finest buckets already. */
async function withSamples(
  { statement }: Panel,
  text: string,
  range: Range,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  if (!("from" in range) || !/\bsample\s+by\b/i.test(statement) || /@interval\b/i.test(statement)) return undefined;
  const [from, to] = rangeEnds(range);
  return await runStatement(text, { signal, readOnly: true, samples: { from, to, bucketsMax: BUCKETS_MAX } });
}
