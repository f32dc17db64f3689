/** The table that a file is imported into: its name, and the time column and partitions of a new one. */
import { useEffect, useRef } from "preact/hooks";
import { tables } from "../store/schema.ts";

export interface Target {
  table: string;
  /** Name of the designated timestamp of a new table; "" if there is none. */
  timestamp: string;
  partitionBy: string;
}

const UNITS = ["DAY", "HOUR", "WEEK", "MONTH", "YEAR", "NONE"];

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
        <label>
          Time column
          <select name="timestamp" onChange={(event) => onChange({ ...target, timestamp: event.currentTarget.value })}>
            <option value="">none</option>
            {times.map((time, at) => <option key={at} selected={time === timestamp}>{time}</option>)}
          </select>
        </label>
      )}
      {isNew && timestamp !== "" && (
        <label>
          Partitions
          <select
            name="partitionBy"
            onChange={(event) => onChange({ ...target, partitionBy: event.currentTarget.value })}
          >
            {UNITS.map((unit) => <option key={unit} selected={unit === partitionBy}>{unit}</option>)}
          </select>
        </label>
      )}
    </>
  );
}
