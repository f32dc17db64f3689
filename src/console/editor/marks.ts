/**
 * Marks after executed statements: rows and time, or failure. They move with the text. A statement that is edited loses
 * its mark, because the outcome is that of another text.
 */
import { type ChangeSet, type Extension, StateEffect, StateField, type Text } from "@codemirror/state";
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

/** A run whose statement is in the text. */
export interface PlacedRun {
  run: Run;
  from: number;
  to: number;
}

export const setRuns = StateEffect.define<readonly Run[]>();

interface Marks {
  placed: readonly PlacedRun[];
  decorations: DecorationSet;
}

const field = StateField.define<Marks>({
  create: () => ({ placed: [], decorations: Decoration.none }),
  update(marks, { changes, docChanged, effects, newDoc }) {
    let { placed } = marks;
    if (docChanged) placed = placed.flatMap((one) => moved(one, changes));
    for (const effect of effects) if (effect.is(setRuns)) placed = placedIn(effect.value, placed, newDoc);
    if (placed === marks.placed) return marks;
    return { placed, decorations: Decoration.set(placed.map((one) => markOf(one, newDoc)), true) };
  },
  provide: (field) => EditorView.decorations.from(field, ({ decorations }) => decorations),
});

export const marks: Extension = field;

/** The runs whose statements are still in the text, with their places. */
export const placedRuns = ({ state }: EditorView): readonly PlacedRun[] => state.field(field).placed;

function moved({ run, from, to }: PlacedRun, changes: ChangeSet): PlacedRun[] {
  let isEdited = false;
  changes.iterChanges((first, end, _first, _end, inserted) => {
    const text = inserted.toString();
    const isInside = first < to && end > from;
    // Words right beside the statement become a part of it, but for lines above it and what follows a semicolon.
    isEdited ||= isInside || first === to && /^\s*[^\s;]/.test(text) || end === from && /[^\s;][^\S\n]*$/.test(text);
  });
  return isEdited ? [] : [{ run, from: changes.mapPos(from, 1), to: changes.mapPos(to, -1) }];
}

/** A run keeps its place. New ones are where their statements were found, if these are still there. */
function placedIn(runs: readonly Run[], before: readonly PlacedRun[], text: Text): PlacedRun[] {
  const places = new Map(before.map((one) => [one.run.id, one]));
  return runs.flatMap((run) => {
    const { id, start, end, statement } = run, place = places.get(id);
    if (place !== undefined) return [{ ...place, run }];
    return text.sliceString(start, end) === statement ? [{ run, from: start, to: end }] : [];
  });
}

/** The mark at the end of the statement's last line. */
function markOf({ run: { outcome }, to }: PlacedRun, text: Text) {
  const kind = outcome === undefined ? "waiting" : outcome.error === undefined ? "done" : "failed";
  const shown = outcome === undefined ? "…" : outcome.error === undefined ? outcomeText(outcome) : "failed";
  return Decoration.widget({ widget: new Mark(shown, kind), side: 1 }).range(text.lineAt(Math.min(to, text.length)).to);
}
