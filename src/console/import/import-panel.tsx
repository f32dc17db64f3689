/** Import of a file: Parquet in a file of its own, CSV dropped on the page or chosen, with a preview, progress and the server's report. */
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { useModal } from "../app/modal.ts";
import { importFile, type ImportReport } from "../server/client.ts";
import { mayImport } from "../sign-in/permissions.ts";
import { notify } from "../store/notices.ts";
import { refreshSchema } from "../store/schema.ts";
import { ParquetImport } from "./parquet-import.tsx";
import { Report } from "./report.tsx";
import { type Preview, PREVIEW_BYTES, previewOf, tableNameOf } from "./preview.ts";

const chosenFile = signal<File | undefined>(undefined);
const isDraggedOver = signal(false);

export function chooseFile(): void {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = ".csv,.tsv,.txt,.parquet,.parq,.pq,text/csv";
  input.onchange = () => chosenFile.value = input.files?.[0];
  input.click();
}

/** Files that are dropped anywhere on the page. */
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
  // Before the editor, which would take the text of the file.
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

type State = { phase: "asking" } | { phase: "sending"; share: number } | { phase: "done"; report: ImportReport };

function ImportDialog({ file }: { file: File }) {
  const dialog = useModal();
  const sending = useRef<AbortController>(undefined);
  const [preview, setPreview] = useState<Preview>({ lines: [] });
  const [state, setState] = useState<State>({ phase: "asking" });
  useEffect(() => {
    file.slice(0, PREVIEW_BYTES).text().then((text) => setPreview(previewOf(text)));
  }, []);
  const close = () => {
    sending.current?.abort();
    chosenFile.value = undefined;
  };
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const parameters = Object.fromEntries([...form].map(([name, value]) => [name, String(value)]));
    sending.current = new AbortController();
    setState({ phase: "sending", share: 0 });
    const onProgress = (share: number) => setState({ phase: "sending", share });
    const report = await importFile(file, parameters, onProgress, sending.current.signal);
    sending.current = undefined;
    setState({ phase: "done", report });
    await refreshSchema();
  };
  return (
    <dialog class="dialog import" ref={dialog} aria-labelledby="import-title" onClose={close}>
      <h2 id="import-title">Import {file.name}</h2>
      {state.phase === "asking" && <Form fileName={file.name} preview={preview} onSubmit={submit} onCancel={close} />}
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
  fileName: string;
  preview: Preview;
  onSubmit(event: SubmitEvent): void;
  onCancel(): void;
}

function Form({ fileName, preview: { lines: [head = [], ...rows] }, onSubmit, onCancel }: FormProps) {
  const [timestamp, setTimestamp] = useState("");
  return (
    <form onSubmit={onSubmit}>
      <div class="preview" tabIndex={0} aria-label="First lines">
        <table>
          <thead>
            <tr>{head.map((name, at) => <th key={at} scope="col">{name}</th>)}</tr>
          </thead>
          <tbody>
            {rows.map((row, index) => <tr key={index}>{row.map((value, at) => <td key={at}>{value}</td>)}</tr>)}
          </tbody>
        </table>
      </div>
      <label>
        Table (rows are added if there is one)
        <input name="name" required defaultValue={tableNameOf(fileName)} autocomplete="off" />
      </label>
      <label>
        Time column of a new table
        <select name="timestamp" value={timestamp} onChange={(event) => setTimestamp(event.currentTarget.value)}>
          <option value="">none</option>
          {head.map((name, at) => <option key={at} value={name}>{name}</option>)}
        </select>
      </label>
      {timestamp !== "" && (
        <label>
          Partitions of a new table
          <select name="partitionBy">
            {["DAY", "HOUR", "WEEK", "MONTH", "YEAR", "NONE"].map((unit) => <option key={unit}>{unit}</option>)}
          </select>
        </label>
      )}
      <label>
        A value that does not fit its column
        <select name="atomicity">
          <option value="skipCol">becomes NULL</option>
          <option value="skipRow">leaves its row out</option>
          <option value="abort">ends the import, and nothing is kept</option>
        </select>
      </label>
      <label class="check">
        <input type="checkbox" name="overwrite" value="true" />A new table takes the place of the existing one
      </label>
      <p class="buttons">
        <button type="button" onClick={onCancel}>Cancel</button>
        <button type="submit" class="main">Import</button>
      </p>
    </form>
  );
}
