/**
 * Underlines errors of executed statements at their position. A suggestion from the server can be applied by a click.
 */
import { type Diagnostic, forEachDiagnostic, setDiagnostics } from "@codemirror/lint";
import type { EditorView } from "@codemirror/view";
import { signal } from "@preact/signals";
import { type PlacedRun, placedRuns } from "./marks.ts";

/** The suggestion that can be applied: undefined if there is none, or if its statement was edited since. */
export const suggestion = signal<string | undefined>(undefined);

export function showErrors(view: EditorView): void {
  const found = placedRuns(view).flatMap((one) => diagnosticOf(view, one));
  suggestion.value = placedRuns(view).find(({ run }) => run.outcome?.error?.suggestion !== undefined)
    ?.run.outcome?.error?.suggestion;
  view.dispatch(setDiagnostics(view.state, found));
}

/** Writes the suggestion in the place of the underlined word. */
export function applySuggestion(view: EditorView): void {
  let apply: (() => void) | undefined;
  forEachDiagnostic(view.state, ({ actions }, from, to) => {
    const [first] = actions ?? [];
    if (first !== undefined) apply ??= () => first.apply(view, from, to);
  });
  apply?.();
}

function diagnosticOf({ state }: EditorView, { run: { outcome }, from: start }: PlacedRun): Diagnostic[] {
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
