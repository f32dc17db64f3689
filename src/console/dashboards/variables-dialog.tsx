/** Edits the variables of a dashboard. */
import { useState } from "preact/hooks";
import { FormButtons } from "../app/form-buttons.tsx";
import { useModal } from "../app/modal.ts";
import { listOf, type Variable, variableFault } from "./model.ts";

interface Props {
  variables: readonly Variable[];
  onDone(variables: Variable[]): void;
  onCancel(): void;
}

const SOURCES = ["any value", "a list", "a statement"] as const;
const sourceOf = ({ choices, statement }: Variable) =>
  statement !== undefined ? SOURCES[2] : choices !== undefined ? SOURCES[1] : SOURCES[0];

export function VariablesDialog({ variables, onDone, onCancel }: Props) {
  const dialog = useModal();
  const [list, setList] = useState<readonly Variable[]>(variables);
  const change = (at: number, changed: Partial<Variable>) =>
    setList(list.map((one, index) => index === at ? { ...one, ...changed } : one));
  const faults = list.map(({ name }, at) => variableFault(name, list.slice(0, at)));
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (faults.every((fault) => fault === undefined)) onDone([...list]);
  };
  return (
    <dialog class="dialog variables-dialog" ref={dialog} aria-labelledby="variables-title" onClose={onCancel}>
      <form onSubmit={submit}>
        <h2 id="variables-title">Variables</h2>
        <p class="hint">
          A statement uses the value as <code>@name</code>. With "all" the value may be empty:{" "}
          <code>where @name = '' or symbol = @name</code>. Several values are a list; if none is chosen, it has all of
          them: <code>where symbol in (@name)</code>
        </p>
        {list.map((one, at) => (
          <fieldset key={at}>
            <label>
              Name
              <input value={one.name} required onInput={(event) => change(at, { name: event.currentTarget.value })} />
            </label>
            <label>
              Type
              <select
                value={one.type}
                onChange={(event) => change(at, { type: event.currentTarget.value as Variable["type"] })}
              >
                <option>text</option>
                <option>number</option>
              </select>
            </label>
            <label>
              Values
              <select
                value={sourceOf(one)}
                onChange={(event) => change(at, sourceChange(one, event.currentTarget.value))}
              >
                {SOURCES.map((source) => <option key={source}>{source}</option>)}
              </select>
            </label>
            <button
              type="button"
              class="icon"
              aria-label={`Remove ${one.name}`}
              onClick={() => setList(list.filter((_, index) => index !== at))}
            >
              ×
            </button>
            {one.choices !== undefined && (
              <label class="wide">
                Values, with commas between them
                <input
                  value={one.choices.join(", ")}
                  onChange={(event) =>
                    change(at, { choices: event.currentTarget.value.split(",").map((text) => text.trim()) })}
                />
              </label>
            )}
            {one.statement !== undefined && (
              <label class="wide">
                Statement, whose first column has the values
                <input
                  value={one.statement}
                  required
                  onInput={(event) => change(at, { statement: event.currentTarget.value })}
                />
              </label>
            )}
            {sourceOf(one) !== "any value" && (
              <p class="checks">
                <label class="check">
                  <input
                    type="checkbox"
                    checked={one.isList === true}
                    onChange={(event) => change(at, listChange(one, event.currentTarget.checked))}
                  />
                  several values
                </label>
                {!one.isList && (
                  <label class="check">
                    <input
                      type="checkbox"
                      checked={one.hasAll === true}
                      onChange={(event) => change(at, { hasAll: event.currentTarget.checked })}
                    />
                    with "all"
                  </label>
                )}
              </p>
            )}
            {faults[at] !== undefined && one.name !== "" && <p class="error" role="alert">{faults[at]}</p>}
          </fieldset>
        ))}
        <button
          type="button"
          onClick={() => setList([...list, { name: "", type: "text", value: "" }])}
        >
          Add a variable
        </button>
        <FormButtons confirm="Done" onCancel={onCancel} />
      </form>
    </dialog>
  );
}

const sourceChange = (one: Variable, source: string): Partial<Variable> => ({
  choices: source === "a list" ? [] : undefined,
  statement: source === "a statement" ? "" : undefined,
  ...source === "any value" && listChange(one, false),
});

const listChange = (one: Variable, isList: boolean): Partial<Variable> => {
  const chosen = one.isList ? listOf(one) : one.value === "" ? [] : [one.value];
  return isList
    ? { isList, hasAll: undefined, value: JSON.stringify(chosen) }
    : { isList: undefined, value: chosen[0] ?? "" };
};
