/**
 * Underlines errors of executed statements at their position. A suggestion from the server can be applied by a click.
 */
import { type Diagnostic, setDiagnostics } from "@codemirror/lint";
import type { EditorView } from "@codemirror/view";
import type { Run } from "../store/run.ts";

export function showErrors(view: EditorView, runs: readonly Run[]): void {
  view.dispatch(setDiagnostics(view.state, runs.flatMap((run) => diagnosticOf(view, run))));
}

function diagnosticOf({ state }: EditorView, { start, outcome }: Run): Diagnostic[] {
  const error = outcome?.error;
  if (error?.position === undefined) return [];
  const from = Math.min(start + error.position, state.doc.length);
  const word = /^(?:[\w$]+|"[^"]*"?|'[^']*'?|[^\s\w])/.exec(state.doc.sliceString(from, from + 200))?.[0] ?? "";
  const { suggestion } = error;
  const fix = suggestion === undefined ? [] : [{
    name: `Replace by ${suggestion}`,
    apply: (view: EditorView, at: number, to: number) =>
      view.dispatch({ changes: { from: at, to, insert: suggestion } }),
  }];
  return [{ from, to: from + word.length, severity: "error", message: error.message, actions: fix }];
}
