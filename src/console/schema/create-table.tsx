/** Creates a table: name, columns, time column and partitions. The statement is shown before it runs. */
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { FormButtons } from "../app/form-buttons.tsx";
import { useModal } from "../app/modal.ts";
import { query } from "../server/client.ts";
import { Denied } from "../sign-in/denied.tsx";
import { notify } from "../store/notices.ts";
import { language, quoted, refreshSchema } from "../store/schema.ts";
import { type TimeColumn, TimeColumnFields } from "./time-column-fields.tsx";

interface NewColumn {
  name: string;
  type: string;
}

export interface NewTable extends TimeColumn {
  name: string;
  columns: readonly NewColumn[];
}

const FIRST: NewTable = {
  name: "",
  columns: [{ name: "ts", type: "TIMESTAMP" }, { name: "value", type: "DOUBLE" }],
  timestamp: "ts",
  partitionBy: "DAY",
};

const isOpen = signal(false);

export const createTable = (): void => void (isOpen.value = true);

export const CreateTablePanel = () => isOpen.value ? <CreateTable onClose={() => isOpen.value = false} /> : null;

const isTime = ({ type }: NewColumn) => /^TIMESTAMP/.test(type);

function createStatement({ name, columns, timestamp, partitionBy }: NewTable): string {
  const lines = columns.map((column) => `  ${quoted(column.name)} ${column.type.toLowerCase()}`).join(",\n");
  const hasTime = columns.some((column) => isTime(column) && column.name === timestamp);
  const time = hasTime ? ` timestamp(${quoted(timestamp)}) partition by ${partitionBy.toLowerCase()}` : "";
  return `create table ${quoted(name)} (\n${lines}\n)${time};`;
}

function CreateTable({ onClose }: { onClose(): void }) {
  const dialog = useModal();
  const [table, setTable] = useState(FIRST);
  const [error, setError] = useState("");
  const { name, columns, timestamp, partitionBy } = table;
  const change = (news: Partial<NewTable>) => setTable({ ...table, ...news });
  const changeColumn = (at: number, news: Partial<NewColumn>) => {
    const next = columns.map((column, index) => index === at ? { ...column, ...news } : column);
    // The time column keeps its role under another name.
    const isTimeColumn = columns[at]?.name === timestamp;
    change({ columns: next, timestamp: isTimeColumn ? news.name ?? timestamp : timestamp });
  };
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setError("");
    const outcome = await query(createStatement(table));
    if (outcome.error !== undefined) return setError(outcome.error.message);
    await refreshSchema();
    notify(`The table ${name} was created.`);
    onClose();
  };
  const times = columns.filter(isTime).map((column) => column.name);
  return (
    <dialog class="dialog create-table" ref={dialog} aria-labelledby="create-title" onClose={onClose}>
      <form onSubmit={submit}>
        <h2 id="create-title">Create a table</h2>
        <label>
          Name
          <input
            name="table"
            required
            autocomplete="off"
            value={name}
            onInput={(event) => change({ name: event.currentTarget.value })}
          />
        </label>
        <fieldset>
          <legend>Columns</legend>
          {columns.map((column, at) => (
            <ColumnFields
              key={at}
              column={column}
              number={at + 1}
              onChange={(news) => changeColumn(at, news)}
              onRemove={columns.length === 1
                ? undefined
                : () => change({ columns: columns.filter((_, index) => index !== at) })}
            />
          ))}
          <button type="button" onClick={() => change({ columns: [...columns, { name: "", type: "DOUBLE" }] })}>
            Add a column
          </button>
        </fieldset>
        <div class="columns">
          <TimeColumnFields times={times} timestamp={timestamp} partitionBy={partitionBy} onChange={change} />
        </div>
        <pre tabIndex={0} aria-label="Statement">{createStatement({ ...table, name: name || "…" })}</pre>
        {error !== "" && <p class="error" role="alert">{error}</p>}
        <Denied message={error} />
        <FormButtons confirm="Create" onCancel={onClose} />
      </form>
    </dialog>
  );
}

interface FieldsProps {
  column: NewColumn;
  number: number;
  onChange(news: Partial<NewColumn>): void;
  /** Undefined for the only column. */
  onRemove?(): void;
}

function ColumnFields({ column: { name, type }, number, onChange, onRemove }: FieldsProps) {
  return (
    <div class="column-fields">
      <input
        aria-label={`Name of column ${number}`}
        required
        autocomplete="off"
        value={name}
        onInput={(event) => onChange({ name: event.currentTarget.value })}
      />
      <select
        aria-label={`Type of column ${number}`}
        onChange={(event) => onChange({ type: event.currentTarget.value })}
      >
        {[...new Set([type, ...language.value.types])].map((one) => (
          <option key={one} selected={one === type}>{one}</option>
        ))}
      </select>
      <button
        type="button"
        class="icon"
        aria-label={`Remove column ${number}`}
        hidden={onRemove === undefined}
        onClick={onRemove}
      >
        ×
      </button>
    </div>
  );
}
