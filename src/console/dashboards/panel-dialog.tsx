/** Edits a panel. The input is kept until it is confirmed or cancelled, even if the page is reloaded. */
import { useState } from "preact/hooks";
import { FormButtons } from "../app/form-buttons.tsx";
import { useModal } from "../app/modal.ts";
import { savedOfUser } from "../store/saved.ts";
import { CHART_TYPES, HEIGHTS, KINDS, type Panel, UNITS, WIDTHS } from "./model.ts";

interface Props {
  panel: Omit<Panel, "id">;
  /** Identifies the form among those of all dashboards. */
  formKey: string;
  onDone(panel: Omit<Panel, "id">): void;
  onCancel(): void;
}

const BEST = "what fits best";

/** The last unfinished form. */
const left = savedOfUser<{ key: string; panel: Omit<Panel, "id"> }>("panel", { key: "", panel: {} as Panel }, isLeft);

function isLeft(value: unknown): boolean {
  const { key, panel } = value as Partial<typeof left.value>;
  return typeof key === "string" && typeof panel === "object";
}

export function PanelDialog({ panel: given, formKey, onDone, onCancel }: Props) {
  const dialog = useModal();
  const [panel] = useState(() => left.peek().key === formKey ? { ...given, ...left.peek().panel } : given);
  const forget = () => left.value = { key: "", panel: {} as Panel };
  const read = (element: HTMLFormElement): Omit<Panel, "id"> => {
    const form = new FormData(element);
    const of = (name: string) => String(form.get(name) ?? "").trim();
    const chartType = CHART_TYPES.find((type) => type === of("chartType"));
    return {
      title: of("title"),
      statement: of("statement").replace(/;\s*$/, ""),
      kind: of("kind") as Panel["kind"],
      chartType,
      width: WIDTHS[of("width") as keyof typeof WIDTHS],
      height: of("height") as Panel["height"],
      unit: of("unit") as Panel["unit"],
    };
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    forget();
    onDone(read(event.currentTarget as HTMLFormElement));
  };
  const cancel = () => {
    forget();
    onCancel();
  };
  const widths = Object.keys(WIDTHS) as (keyof typeof WIDTHS)[];
  return (
    <dialog class="dialog panel-dialog" ref={dialog} aria-labelledby="panel-title" onClose={onCancel}>
      <form
        onSubmit={submit}
        onInput={(event) => left.value = { key: formKey, panel: read(event.currentTarget) }}
      >
        <h2 id="panel-title">{given.statement === "" ? "Add a panel" : "Edit the panel"}</h2>
        <label>
          Title
          <input name="title" required defaultValue={panel.title} autocomplete="off" />
        </label>
        <label>
          Statement; @from, @to and @interval stand for the time range, @name for a variable
          <textarea name="statement" required rows={8} spellcheck={false} defaultValue={panel.statement} />
        </label>
        <div class="columns">
          <Choice label="Shown as" name="kind" choices={KINDS} value={panel.kind} />
          <Choice label="Chart" name="chartType" choices={[BEST, ...CHART_TYPES]} value={panel.chartType ?? BEST} />
          <Choice label="Unit" name="unit" choices={UNITS} value={panel.unit} />
          <Choice
            label="Width"
            name="width"
            choices={widths}
            value={widths.find((name) => WIDTHS[name] === panel.width)!}
          />
          <Choice label="Height" name="height" choices={Object.keys(HEIGHTS)} value={panel.height} />
        </div>
        <FormButtons confirm="Done" onCancel={cancel} />
      </form>
    </dialog>
  );
}

interface ChoiceProps {
  label: string;
  name: string;
  choices: readonly string[];
  value: string;
}

function Choice({ label, name, choices, value }: ChoiceProps) {
  return (
    <label>
      {label}
      <select name={name}>
        {choices.map((choice) => <option key={choice} selected={choice === value}>{choice}</option>)}
      </select>
    </label>
  );
}
