/** The SQL editor. */
import { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { sql } from "@codemirror/lang-sql";
import { bracketMatching, defaultHighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { outcome, outcomeStart, run, setText, text } from "../store/session.ts";
import { statementAt } from "./statements.ts";

const nonce = document.querySelector<HTMLMetaElement>("meta[name=csp-nonce]")!.content;

/** The selected text, or else the statement at the cursor. */
function runAtCursor(view: EditorView): boolean {
  const { main } = view.state.selection;
  const whole = view.state.doc.toString();
  const statement = main.empty
    ? statementAt(whole, main.head)
    : { text: whole.slice(main.from, main.to), start: main.from };
  if (statement !== undefined) run(statement.text, statement.start);
  return true;
}

export function Editor() {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const view = new EditorView({
      parent: host.current!,
      doc: text.peek(),
      extensions: [
        EditorView.cspNonce.of(nonce),
        EditorView.contentAttributes.of({ "aria-label": "SQL" }),
        lineNumbers(),
        history(),
        bracketMatching(),
        closeBrackets(),
        autocompletion(),
        highlightSelectionMatches(),
        syntaxHighlighting(defaultHighlightStyle),
        sql(),
        keymap.of([
          { key: "Mod-Enter", run: runAtCursor },
          { key: "F9", run: runAtCursor },
          ...completionKeymap,
          ...searchKeymap,
          ...historyKeymap,
          ...defaultKeymap,
          indentWithTab,
        ]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) setText(update.state.doc.toString());
        }),
      ],
    });
    const stop = effect(() => showError(view));
    return () => {
      stop();
      view.destroy();
    };
  }, []);
  return <div class="editor" ref={host} />;
}

/** Underlines the word at the position of the last error. */
function showError(view: EditorView): void {
  const error = outcome.value?.error;
  const found: Diagnostic[] = [];
  if (error?.position !== undefined) {
    const from = Math.min(outcomeStart.value + error.position, view.state.doc.length);
    const rest = view.state.doc.sliceString(from, from + 200);
    const to = from + (/^(\w+|[^\s\w]|)/.exec(rest)?.[0].length ?? 0);
    found.push({ from, to, severity: "error", message: error.message });
  }
  view.dispatch(setDiagnostics(view.state, found));
}
