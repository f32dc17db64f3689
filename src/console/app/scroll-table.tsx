/** A table that is scrolled across where it is wider than its place, by keys too. */
import type { ComponentChildren } from "preact";

interface Props {
  /** For people who do not see it. */
  label: string;
  columns: readonly string[];
  /** Those of the columns that have numbers. */
  numbers?: readonly string[];
  /** Class of its frame, besides `scroll`. */
  kind?: string;
  /** The rows. */
  children: ComponentChildren;
}

export function ScrollTable({ label, columns, numbers, kind = "", children }: Props) {
  return (
    <div class={`scroll ${kind}`} tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col" class={numbers?.includes(name) ? "number" : undefined}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
