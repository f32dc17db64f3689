/** The statements that Ctrl+Enter runs: the selection, or the statement at the cursor; with Shift all statements. */
import { closeCompletion } from "@codemirror/autocomplete";
import type { EditorView } from "@codemirror/view";
import { runAll } from "../store/runs.ts";
import { statementAt, statementsOf } from "./statements.ts";

export function runAtCursor(view: EditorView): boolean {
  const { state } = view;
  closeCompletion(view);
  const { from, to, head, empty } = state.selection.main;
  if (empty) runAll([statementAt(state.doc.toString(), head) ?? []].flat());
  else {
    const selected = statementsOf(state.sliceDoc(from, to));
    runAll(selected.map(({ text, start, end }) => ({ text, start: start + from, end: end + from })));
  }
  return true;
}

export function runWhole(view: EditorView): boolean {
  closeCompletion(view);
  runAll(statementsOf(view.state.doc.toString()));
  return true;
}
