/** How far a running statement is, as the server tells. Asked only while one runs for longer than a moment. */
import { effect, signal } from "@preact/signals";
import { query } from "../server/client.ts";
import { isRunning, runs } from "./runs.ts";
import { literal } from "./schema.ts";

export interface Progress {
  seconds: number;
  rowsRead: number;
  /** Unknown for some statements. */
  rowsToRead: number | null;
  memoryBytes: number;
}

export const progress = signal<Progress | undefined>(undefined);
const PERIOD_MS = 700;

effect(() => {
  if (!isRunning.value) {
    progress.value = undefined;
    return;
  }
  const timer = setInterval(look, PERIOD_MS);
  return () => clearInterval(timer);
});

async function look(): Promise<void> {
  const statement = runs.value.find(({ outcome }) => outcome === undefined)?.statement;
  if (statement === undefined) return;
  const { rows } = await query(
    `select seconds, rows_read, rows_to_read, memory_bytes from query_activity() where query = ${
      literal(statement)
    } and wire = 'http' order by seconds limit 1`,
  );
  const [row] = rows?.dataset ?? [];
  if (row === undefined || !isRunning.value) return;
  const [seconds, rowsRead, rowsToRead, memoryBytes] = row;
  progress.value = {
    seconds: Number(seconds),
    rowsRead: Number(rowsRead),
    rowsToRead: rowsToRead === null ? null : Number(rowsToRead),
    memoryBytes: Number(memoryBytes),
  };
}
