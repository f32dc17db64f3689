/** The values of the variables. */
import { useEffect, useState } from "preact/hooks";
import { query } from "../server/client.ts";
import { textOf } from "../results/cells.ts";
import type { Variable } from "./model.ts";
import type { Range } from "./range.ts";
import { fullStatement } from "./statement.ts";

const CHOICES_MAX = 1000;

interface Props {
  variables: readonly Variable[];
  range: Range;
  onChange(values: Record<string, string>): void;
}

export function VariablesBar({ variables, range, onChange }: Props) {
  if (variables.length === 0) return null;
  return (
    <div class="variables" role="group" aria-label="Variables">
      {variables.map((one) => (
        <label key={one.name}>
          {one.name}
          <Value variable={one} range={range} onChange={(value) => onChange({ [one.name]: value })} />
        </label>
      ))}
    </div>
  );
}

function Value({ variable, range, onChange }: { variable: Variable; range: Range; onChange(value: string): void }) {
  const { statement, value, hasAll, type } = variable;
  const [found, setFound] = useState<readonly string[]>(), [error, setError] = useState<string>();
  const { text } = statement === undefined ? { text: undefined } : fullStatement(statement, range, []);
  useEffect(() => {
    if (text === undefined) return;
    const controller = new AbortController();
    query(text, { readOnly: true, limit: CHOICES_MAX, signal: controller.signal }).then(({ rows, error }) => {
      if (controller.signal.aborted) return;
      setError(error?.message);
      if (rows !== undefined) setFound(rows.dataset.map(([first]) => textOf(first)));
    });
    return () => controller.abort();
  }, [text]);
  const choices = found ?? variable.choices;
  if (choices === undefined) {
    return (
      <input
        value={value}
        inputMode={type === "number" ? "decimal" : undefined}
        title={error}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  // A value that is no choice any more stays visible.
  const all = [...hasAll ? [""] : [], ...choices.includes(value) || value === "" && hasAll ? [] : [value], ...choices];
  return (
    <select value={value} title={error} onChange={(event) => onChange(event.currentTarget.value)}>
      {all.map((choice) => <option key={choice} value={choice}>{choice === "" && hasAll ? "(all)" : choice}</option>)}
    </select>
  );
}
