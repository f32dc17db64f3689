/** The SQL editor. Each tab keeps its text, cursor and undo history. */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput } from "@codemirror/language";
import { lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { formatted } from "./format.ts";
import type { Run } from "../store/run.ts";
import { runs } from "../store/runs.ts";
import { language } from "../store/schema.ts";
import { activeTab, keepText, replacedTexts, type Tab, tabs } from "../store/tabs.ts";
import { notify } from "../store/notices.ts";
import { complete } from "./completion.ts";
import { highlighting } from "./dialect.ts";
import { applySuggestion, showErrors } from "./errors.ts";
import { marks, setRuns } from "./marks.ts";
import { runAtCursor, runWhole } from "./running.ts";

const nonce = document.querySelector<HTMLMetaElement>("meta[name=csp-nonce]")!.content;
const dialect = new Compartment();

let view: EditorView | undefined;

/** The editor's functions for the page's actions. */
export const editor = {
  focus: () => view?.focus(),
  run: () => view !== undefined && runAtCursor(view),
  runAll: () => view !== undefined && runWhole(view),
  async format() {
    if (view === undefined) return;
    const before = view.state.doc.toString();
    try {
      const after = await formatted(before);
      if (view.state.doc.toString() !== before) return;
      view.dispatch({ changes: { from: 0, to: before.length, insert: after } });
    } catch (error) {
      notify(`The text cannot be formatted: ${(error as Error).message.split("\n")[0]}`);
    }
  },
  /** Writes the word that the server suggests in the place of the wrong one. */
  applySuggestion() {
    if (view === undefined) return;
    applySuggestion(view);
    view.focus();
  },
  /** Inserts a text at the cursor. */
  insert(text: string) {
    view?.dispatch(view.state.replaceSelection(text));
    view?.focus();
  },
};

export function Editor() {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const states = new Map<number, EditorState>();
    let shownTab = activeTab.peek().id, shownReplacements = replacedTexts.peek(), shownRuns: readonly Run[] | undefined;
    const own = view = new EditorView({ parent: host.current!, state: stateOf(activeTab.peek().text) });
    const showTab = ({ id, text }: Tab) => {
      if (id !== shownTab) states.set(shownTab, own.state);
      const kept = states.get(id);
      shownTab = id;
      shownRuns = undefined;
      own.setState(kept !== undefined && kept.doc.toString() === text ? kept : stateOf(text));
      own.dispatch({ effects: dialect.reconfigure(highlighting(language.peek())) });
      own.focus();
    };
    const stops = [
      // One effect, because runs belong to the text of their tab.
      effect(() => {
        const replaced = replacedTexts.value !== shownReplacements;
        shownReplacements = replacedTexts.value;
        if (activeTab.value.id !== shownTab || replaced) showTab(activeTab.value);
        if (runs.value === shownRuns) return;
        shownRuns = runs.value;
        own.dispatch({ effects: setRuns.of(shownRuns) });
        showErrors(own);
      }),
      effect(() => own.dispatch({ effects: dialect.reconfigure(highlighting(language.value)) })),
      effect(() => {
        const open = new Set(tabs.value.map(({ id }) => id));
        for (const id of states.keys()) if (!open.has(id)) states.delete(id);
      }),
    ];
    own.focus();
    return () => {
      stops.forEach((stop) => stop());
      own.destroy();
      view = undefined;
    };
  }, []);
  return <div class="editor" ref={host} />;
}

function stateOf(text: string): EditorState {
  // Lines of a narrow screen would be scrolled across word by word.
  const wrapping = matchMedia("(max-width: 640px)").matches ? EditorView.lineWrapping : [];
  return EditorState.create({ doc: text, extensions: [EXTENSIONS, wrapping] });
}

const EXTENSIONS: Extension = [
  EditorView.cspNonce.of(nonce),
  EditorView.contentAttributes.of({ "aria-label": "SQL", tabindex: "0" }),
  lineNumbers(),
  history(),
  drawSelection(),
  highlightActiveLine(),
  indentOnInput(),
  bracketMatching(),
  closeBrackets(),
  autocompletion({ override: [complete] }),
  highlightSelectionMatches(),
  dialect.of([]),
  marks,
  keymap.of([
    { key: "Mod-Enter", run: runAtCursor },
    { key: "F9", run: runAtCursor },
    { key: "Mod-Shift-Enter", run: runWhole },
    ...closeBracketsKeymap,
    ...completionKeymap,
    ...searchKeymap,
    ...historyKeymap,
    ...lintKeymap,
    ...defaultKeymap,
    indentWithTab,
  ]),
  EditorView.updateListener.of(({ docChanged, state, view }) => {
    if (!docChanged) return;
    keepText(activeTab.peek().id, state.doc.toString());
    showErrors(view);
  }),
];
