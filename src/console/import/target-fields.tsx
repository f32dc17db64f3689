/** The table that a file is imported into: its name, and the time column and partitions of a new one. */
import { useEffect, useRef } from "preact/hooks";
import { type TimeColumn, TimeColumnFields } from "../schema/time-column-fields.tsx";
import { tables } from "../store/schema.ts";

/** `timestamp` and `partitionBy` are those of a new table. */
export interface Target extends TimeColumn {
  table: string;
}

export const exists = (table: string): boolean =>
  tables.value.some(({ name }) => name.toLowerCase() === table.trim().toLowerCase());

interface Props {
  target: Target;
  isNew: boolean;
  /** Columns that may be the time column. */
  times: readonly string[];
  onChange(target: Target): void;
}

export function TargetFields({ target, isNew, times, onChange }: Props) {
  const name = useRef<HTMLInputElement>(null);
  useEffect(() => name.current?.focus(), []);
  const { table, timestamp, partitionBy } = target;
  return (
    <>
      <label>
        Table {isNew ? "(will be created)" : "(rows will be added)"}
        <input
          ref={name}
          name="name"
          required
          value={table}
          onInput={(event) => onChange({ ...target, table: event.currentTarget.value })}
          autocomplete="off"
        />
      </label>
      {isNew && (
        <TimeColumnFields
          times={times}
          timestamp={timestamp}
          partitionBy={partitionBy}
          onChange={(news) => onChange({ ...target, ...news })}
        />
      )}
    </>
  );
}
