/** The values of the variables, and the choice of others. */
import { useEffect, useRef } from "preact/hooks";
import type { ResolvedVariable } from "./choices.ts";
import { listOf } from "./model.ts";

interface Props {
  variables: readonly ResolvedVariable[];
  onChange(values: Record<string, string>): void;
}

export function VariablesBar({ variables, onChange }: Props) {
  if (variables.length === 0) return null;
  return (
    <div class="variables" role="group" aria-label="Variables">
      {variables.map((one) => {
        const change = (value: string) => onChange({ [one.name]: value });
        return (
          <div key={one.name} class="variable">
            {one.isList ? <List variable={one} onChange={change} /> : (
              <label>
                {one.name} <Value variable={one} onChange={change} />
              </label>
            )}
            {one.error !== undefined && <small class="error" role="alert">{one.error}</small>}
          </div>
        );
      })}
    </div>
  );
}

interface ValueProps {
  variable: ResolvedVariable;
  onChange(value: string): void;
}

function Value({ variable: { choices, value, hasAll, type, isLoading }, onChange }: ValueProps) {
  if (choices === undefined && !isLoading) {
    return (
      <input
        value={value}
        inputMode={type === "number" ? "decimal" : undefined}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  const known = choices ?? [];
  // A value that is no longer a choice stays visible.
  const all = [...hasAll ? [""] : [], ...known.includes(value) || value === "" && hasAll ? [] : [value], ...known];
  return (
    <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {all.map((choice) => <option key={choice} value={choice}>{choice === "" && hasAll ? "(all)" : choice}</option>)}
    </select>
  );
}

/** Any number of values. */
function List({ variable, onChange }: ValueProps) {
  const { name, choices = [] } = variable, chosen = listOf(variable);
  const box = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = ({ target }: Event) => {
      // Null while the page removes it.
      const { current } = box;
      if (current !== null && !current.contains(target as Node)) current.open = false;
    };
    addEventListener("pointerdown", close);
    addEventListener("focusin", close);
    return () => {
      removeEventListener("pointerdown", close);
      removeEventListener("focusin", close);
    };
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !box.current!.open) return;
    box.current!.open = false;
    box.current!.querySelector("summary")!.focus();
  };
  const shown = chosen.length === 0 ? "(all)" : chosen.length <= 2 ? chosen.join(", ") : `${chosen.length} values`;
  // Values that are no choices any more stay visible.
  const all = [...chosen.filter((one) => !choices.includes(one)), ...choices];
  return (
    <details ref={box} class="list" onKeyDown={onKeyDown}>
      <summary>
        {name} <span>{shown} ▾</span>
      </summary>
      <div role="group" aria-label={`Values of ${name}`}>
        <button type="button" onClick={() => onChange("[]")}>All</button>
        {all.map((choice) => (
          <label key={choice}>
            <input
              type="checkbox"
              checked={chosen.includes(choice)}
              onChange={({ currentTarget: { checked } }) =>
                onChange(JSON.stringify(all.filter((one) => one === choice ? checked : chosen.includes(one))))}
            />
            {choice === "" ? "(empty)" : choice}
          </label>
        ))}
      </div>
    </details>
  );
}
