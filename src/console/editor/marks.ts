/** Marks after executed statements: rows and time, or failure. They move with the text. */
import { type Range, StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";
import { outcomeText } from "../results/summary.ts";
import type { Run } from "../store/run.ts";

class Mark extends WidgetType {
  constructor(private readonly text: string, private readonly kind: string) {
    super();
  }
  override eq(other: Mark) {
    return other.text === this.text && other.kind === this.kind;
  }
  override toDOM() {
    const span = document.createElement("span");
    span.className = `run-mark ${this.kind}`;
    span.textContent = this.text;
    return span;
  }
}

export const setMarks = StateEffect.define<readonly Run[]>();

export const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(found, { changes, effects, newDoc }) {
    let next = found.map(changes);
    for (const effect of effects) {
      if (effect.is(setMarks)) next = Decoration.set(effect.value.map((run) => markOf(run, newDoc)), true);
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** The mark at the end of the statement's last line. */
function markOf({ end, outcome }: Run, text: Text): Range<Decoration> {
  const kind = outcome === undefined ? "waiting" : outcome.error === undefined ? "done" : "failed";
  const shown = outcome === undefined ? "…" : outcome.error === undefined ? outcomeText(outcome) : "failed";
  const line = text.lineAt(Math.min(end, text.length));
  return Decoration.widget({ widget: new Mark(shown, kind), side: 1 }).range(line.to);
}
