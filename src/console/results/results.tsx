/** The outcome of the last run: its summary and its rows. */
import { type Outcome, ROWS_SHOWN_MAX } from "../server/client.ts";
import { isRunning, outcome, outcomeStart, text } from "../store/session.ts";
import { Grid } from "./grid.tsx";

export function Results() {
  const { value } = outcome;
  const summary = isRunning.value ? "Running …" : value === undefined ? "" : summaryOf(value);
  return (
    <section class="results" aria-label="Results" aria-busy={isRunning.value}>
      <p class={value?.error !== undefined && !isRunning.value ? "summary error" : "summary"} role="status">
        {summary}
      </p>
      {value?.rows !== undefined && <Grid rows={value.rows} />}
    </section>
  );
}

function summaryOf({ error, rows, changed, durationMs, compileMs, executeMs }: Outcome): string {
  if (error !== undefined) return error.message + placeOf(error.position);
  const inside = compileMs === undefined || executeMs === undefined
    ? ""
    : ` (compile ${compileMs.toFixed(2)}, execute ${executeMs.toFixed(2)})`;
  const took = `${durationMs.toFixed(1)} ms${inside}`;
  if (rows === undefined) return changed === undefined ? `OK · ${took}` : `OK · ${counted(changed)} · ${took}`;
  const cut = rows.count > ROWS_SHOWN_MAX ? `, the first ${ROWS_SHOWN_MAX.toLocaleString("en")} are shown` : "";
  return `${counted(rows.count)}${cut} · ${took}`;
}

function placeOf(position: number | undefined): string {
  if (position === undefined) return "";
  const lines = text.value.slice(0, outcomeStart.value + position).split("\n");
  return `\nat line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}

const counted = (count: number) => `${count.toLocaleString("en")} ${count === 1 ? "row" : "rows"}`;
