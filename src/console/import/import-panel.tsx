/**
 * Imports a file: CSV dropped on the page or chosen, with a preview, progress and the server's report. Parquet is in a
 * separate file.
 */
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { FormButtons } from "../app/form-buttons.tsx";
import { useModal } from "../app/modal.ts";
import {
  type CsvForm,
  csvFormOf,
  importFile,
  type ImportParameters,
  type ImportReport,
  UNREACHABLE,
} from "../server/client.ts";
import { mayImport } from "../sign-in/permissions.ts";
import { returns } from "../store/connection.ts";
import { notify } from "../store/notices.ts";
import { refreshSchema } from "../store/schema.ts";
import { type MappedCsv, mappedCsv } from "./mapped-csv.ts";
import { type Mapping, renamed } from "./mapping.ts";
import { MappingTable } from "./mapping-table.tsx";
import { ParquetImport } from "./parquet-import.tsx";
import { Report } from "./report.tsx";
import { exists, type Target, TargetFields } from "./target-fields.tsx";
import { PREVIEW_BYTES, previewOf, tableNameOf } from "./preview.ts";

const chosenFile = signal<File | undefined>(undefined);
const isDraggedOver = signal(false);

export function chooseFile(): void {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = ".csv,.tsv,.txt,.parquet,.parq,.pq,text/csv";
  input.onchange = () => chosenFile.value = input.files?.[0];
  input.click();
}

/** Handles files that are dropped anywhere on the page. */
export function listenForDrops(): () => void {
  const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes("Files") === true;
  const onOver = (event: DragEvent) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    isDraggedOver.value = mayImport();
  };
  const onLeave = (event: DragEvent) => {
    if (event.relatedTarget === null) isDraggedOver.value = false;
  };
  const onDrop = (event: DragEvent) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    isDraggedOver.value = false;
    if (mayImport()) chosenFile.value = event.dataTransfer!.files[0];
    else notify("You may not import files: that needs CREATE TABLE, or INSERT on a table.");
  };
  // Handled before the editor, which would insert the text of the file.
  const options = { capture: true };
  addEventListener("dragover", onOver, options);
  addEventListener("dragleave", onLeave, options);
  addEventListener("drop", onDrop, options);
  return () => {
    removeEventListener("dragover", onOver, options);
    removeEventListener("dragleave", onLeave, options);
    removeEventListener("drop", onDrop, options);
  };
}

export function ImportPanel() {
  const { value: file } = chosenFile;
  return (
    <>
      {isDraggedOver.value && <p class="drop-here">Drop a CSV or Parquet file to import it</p>}
      {file !== undefined && (isParquet(file)
        ? <ParquetImport key={keyOf(file)} file={file} onClose={close} />
        : <ImportDialog key={keyOf(file)} file={file} />)}
    </>
  );
}

const keyOf = ({ name, lastModified }: File) => `${name}${lastModified}`;
const isParquet = ({ name }: File) => /\.(?:parquet|parq|pq)$/i.test(name);
const close = () => chosenFile.value = undefined;

/** `error`: why the last attempt was refused. What was chosen for it stays. */
type State = { phase: "asking"; error?: string } | { phase: "sending"; share: number } | {
  phase: "done";
  report: ImportReport;
};

function ImportDialog({ file }: { file: File }) {
  const dialog = useModal();
  const sending = useRef<AbortController>(undefined);
  const [state, setState] = useState<State>({ phase: "asking" });
  const close = () => {
    sending.current?.abort();
    chosenFile.value = undefined;
  };
  const send = async ({ file, schema, parameters: more }: MappedCsv, chosen: ImportParameters) => {
    const parameters = { ...chosen, ...more };
    sending.current = new AbortController();
    setState({ phase: "sending", share: 0 });
    const onProgress = (share: number) => setState({ phase: "sending", share });
    const report = await importFile(file, schema, parameters, onProgress, sending.current.signal);
    sending.current = undefined;
    setState(report.error === undefined ? { phase: "done", report } : { phase: "asking", error: report.error });
    await refreshSchema();
  };
  return (
    <dialog class="dialog import" ref={dialog} aria-labelledby="import-title" onClose={close}>
      <h2 id="import-title">Import {file.name}</h2>
      {state.phase !== "done" && (
        <div hidden={state.phase !== "asking"}>
          <Form
            file={file}
            error={state.phase === "asking" ? state.error : undefined}
            onSend={send}
            onCancel={close}
          />
        </div>
      )}
      {state.phase === "sending" && (
        <>
          <progress max={1} value={state.share} aria-label="Sent" />
          <p role="status">
            {state.share < 1 ? `${Math.floor(state.share * 100)} % sent` : "The server stores the rows …"}
          </p>
          <p class="buttons">
            <button type="button" onClick={close}>Cancel</button>
          </p>
        </>
      )}
      {state.phase === "done" && <Report report={state.report} onClose={close} />}
    </dialog>
  );
}

interface FormProps {
  file: File;
  error: string | undefined;
  onSend(mapped: MappedCsv, parameters: ImportParameters): void;
  onCancel(): void;
}

interface Found {
  form: CsvForm;
  rows: string[][];
  /** Why the form is not known: the server decides when it has all. */
  fault?: string;
}

const isTime = (type: string) => /^TIMESTAMP/.test(type);
const UNKNOWN: CsvForm = { delimiter: ",", hasHeader: true, headBytes: 0, columns: [] };

/** What the server finds in the first lines. */
async function foundIn(file: File, isHeaderForced: boolean): Promise<Found> {
  const head = file.slice(0, PREVIEW_BYTES);
  const form = await csvFormOf(head, head.size === file.size, isHeaderForced);
  if (typeof form === "string") return { form: UNKNOWN, rows: [], fault: form };
  const lines = previewOf(await head.text(), form.delimiter);
  return { form, rows: form.hasHeader ? lines.slice(1) : lines };
}

function Form({ file, error, onSend, onCancel }: FormProps) {
  const [isHeaderForced, forceHeader] = useState(false);
  const [found, setFound] = useState<Found>();
  const [mappings, setMappings] = useState<readonly Mapping[]>([]);
  const [target, setTarget] = useState<Target>({ table: tableNameOf(file.name), timestamp: "", partitionBy: "DAY" });
  const [isReplaced, setReplaced] = useState(false);
  useEffect(() => {
    foundIn(file, isHeaderForced).then((next) => {
      setFound(next);
      const time = next.form.columns.find(({ type, isInstant }) => isInstant || isTime(type));
      setTarget((before) => ({ ...before, timestamp: time?.name ?? "" }));
      setMappings(next.form.columns.map(({ name, type }) => ({
        ...{ source: name, found: type, name, type },
        isIncluded: true,
      })));
    });
  }, [isHeaderForced, found?.fault === UNREACHABLE ? returns.value : undefined]);
  if (found === undefined) return <p role="status">The first lines are read …</p>;
  const { form, rows, fault } = found;
  const isNew = isReplaced || !exists(target.table), included = mappings.filter(({ isIncluded }) => isIncluded);
  const times = mappings.filter(({ type, isIncluded }, at) =>
    isIncluded && (isTime(type) || form.columns[at]?.isInstant)
  );
  const changeMappings = (next: readonly Mapping[]) => {
    setMappings(next);
    setTarget({ ...target, timestamp: renamed(target.timestamp, mappings, next) });
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const entries = [...new FormData(event.currentTarget as HTMLFormElement)];
    const parameters = Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
    const types = isNew ? mappings : mappings.map((one) => ({ ...one, type: one.found }));
    onSend(mappedCsv(file, form, types), {
      ...parameters,
      name: target.table,
      ...isHeaderForced && { forceHeader: "true" },
    });
  };
  return (
    <form onSubmit={submit}>
      {fault === undefined
        ? (
          <MappingTable
            mappings={mappings}
            firstValues={(at) => rows.map((row) => row[at] ?? "")}
            hasTypes={!isNew}
            onChange={changeMappings}
          />
        )
        : <p class="error" role="alert">{fault}</p>}
      {(isHeaderForced || !form.hasHeader) && (
        <label class="check">
          <input
            type="checkbox"
            checked={isHeaderForced}
            onChange={(event) => forceHeader(event.currentTarget.checked)}
          />
          The first line has the names
        </label>
      )}
      <TargetFields target={target} isNew={isNew} times={times.map(({ name }) => name)} onChange={setTarget} />
      <label>
        A value that does not fit its column
        <select name="atomicity">
          <option value="skipCol">becomes NULL</option>
          <option value="skipRow">leaves its row out</option>
          <option value="abort">ends the import, and nothing is kept</option>
        </select>
      </label>
      <label class="check">
        <input
          type="checkbox"
          name="overwrite"
          value="true"
          checked={isReplaced}
          onChange={(event) => setReplaced(event.currentTarget.checked)}
        />
        A new table takes the place of the existing one
      </label>
      {error !== undefined && <p class="error" role="alert">{error}</p>}
      <FormButtons
        confirm="Import"
        isDisabled={fault === undefined && included.length === 0}
        onCancel={onCancel}
      />
    </form>
  );
}
