/** The outcomes of the last run: a summary of each statement, and the rows of the selected one. */
import { chooseRun, chosenRun, isRunning, rerun, runs } from "../store/runs.ts";
import type { Run } from "../store/run.ts";
import type { Progress } from "../server/results.ts";
import { activeTab } from "../store/tabs.ts";
import { RowsView } from "./rows-view.tsx";
import { Denied } from "../sign-in/denied.tsx";
import { editor } from "../editor/editor.tsx";
import { suggestion } from "../editor/errors.ts";
import { bytesText, countText, outcomeDetails, outcomeText } from "./summary.ts";
import { Welcome } from "./welcome.tsx";

export function Results() {
  const run = chosenRun.value;
  const error = run?.outcome?.error;
  const rows = run?.outcome?.rows ?? run?.rowsSoFar;
  return (
    <section class="results" aria-label="Results" aria-busy={isRunning.value} data-run={run?.id}>
      {runs.value.length > 1 && <RunList />}
      <p class={error === undefined ? "summary" : "summary error"} role="status">{summaryOf(run)}</p>
      {error?.suggestion !== undefined && suggestion.value !== undefined && (
        <p class="fix">
          <button type="button" onClick={editor.applySuggestion}>Replace by {suggestion}</button>
        </p>
      )}
      {error !== undefined && <Denied message={error.message} />}
      {run === undefined && <Welcome />}
      {run?.outcome?.notices?.map((text, at) => <p key={at} class="summary">{text}</p>)}
      {run?.outcome?.isLost && (
        <p class="summary">
          <button type="button" class="main" onClick={rerun}>Run again</button>
        </p>
      )}
      {rows !== undefined && <RowsView key={run!.key} rows={rows} statement={run!.statement} />}
    </section>
  );
}

function RunList() {
  return (
    <div class="runs" role="tablist" aria-label="Statements">
      {runs.value.map(({ id, statement, outcome }) => (
        <button
          key={id}
          type="button"
          role="tab"
          aria-selected={chosenRun.value?.id === id}
          class={outcome?.error === undefined ? "" : "error"}
          title={statement.slice(0, 500)}
          onClick={() => chooseRun(id)}
        >
          {titleOf(statement)}
          <small>{outcome === undefined ? "…" : outcome.error === undefined ? outcomeText(outcome) : "failed"}</small>
        </button>
      ))}
    </div>
  );
}

/** The beginning of a statement, without comments. */
function titleOf(statement: string): string {
  const words = statement.replace(/--[^\n]*|\/\*[^]*?\*\//g, "").replace(/\s+/g, " ").trim();
  return words.slice(0, 28);
}

function summaryOf(run: Run | undefined): string {
  if (run === undefined) return "Run or Ctrl + Enter runs the statement at the cursor.";
  const { outcome, progress, rowsSoFar } = run;
  if (outcome === undefined) return `Running …${progressText(progress)}${soFar(rowsSoFar?.count)}`;
  if (outcome.isLost) return "This result was not kept when the page was left.";
  return outcome.error === undefined ? outcomeDetails(outcome) : outcome.error.message + placeOf(run);
}

function progressText(now: Progress | undefined): string {
  if (now === undefined) return "";
  const { seconds, rowsRead, rowsToRead, memoryBytes } = now;
  const share = rowsToRead === undefined ? "" : ` of ${countText(rowsToRead)}`;
  return ` ${seconds.toFixed(0)} s · ${countText(rowsRead)}${share} read · ${bytesText(memoryBytes)}`;
}

const soFar = (count: number | undefined) => count === undefined ? "" : ` · ${countText(count)} so far`;

function placeOf({ start, outcome }: Run): string {
  const position = outcome?.error?.position;
  if (position === undefined) return "";
  const lines = activeTab.value.text.slice(0, start + position).split("\n");
  return `\nat line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}
