/** Finds previously executed statements. */
import { history } from "../store/history.ts";
import { openTab } from "../store/tabs.ts";
import { countText, time } from "../results/summary.ts";
import { Chooser } from "./chooser.tsx";

export function HistoryPanel() {
  return (
    <Chooser
      label="Search the history"
      items={history.value}
      textOf={({ statement }) => statement}
      onChoose={({ statement }) => openTab(statement)}
      empty="Statements that you run are listed here."
      show={({ statement, at, durationMs, rows, failed }) => (
        <>
          <code>{statement.slice(0, 300)}</code>
          <small>
            {new Date(at).toLocaleString()} · {failed ? "failed" : rows === undefined ? "OK" : countText(rows)} ·{" "}
            {time(durationMs)}
          </small>
        </>
      )}
    />
  );
}
