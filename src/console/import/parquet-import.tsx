/**
 * Imports a Parquet file: the server stores it and returns its columns and first rows, and a statement copies them into
 * a table.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { FormButtons } from "../app/form-buttons.tsx";
import { useModal } from "../app/modal.ts";
import { textOf } from "../results/cells.ts";
import { countText } from "../results/summary.ts";
import { type Column, type ImportReport, query, removeUpload, uploadFile } from "../server/client.ts";
import { runStatement } from "../server/results.ts";
import { literal, refreshSchema } from "../store/schema.ts";
import { importStatement, type Mapping, renamed } from "./mapping.ts";
import { MappingTable } from "./mapping-table.tsx";
import { tableNameOf } from "./preview.ts";
import { Report } from "./report.tsx";
import { exists, type Target, TargetFields } from "./target-fields.tsx";

interface Contents {
  /** Its name for read_parquet(). */
  file: string;
  columns: Column[];
  firstRows: unknown[][];
  rowCount: number;
  notices: readonly string[];
}

type State =
  | { phase: "sending"; share: number }
  /** `error`: why the last attempt was refused. What was chosen for it stays. */
  | { phase: "asking"; contents: Contents; error?: string }
  /** The form stays below, for another attempt. */
  | { phase: "storing"; contents: Contents; share?: number; text: string }
  | { phase: "done"; report: ImportReport };

const PREVIEW_ROWS = 5;

export function ParquetImport({ file, onClose }: { file: File; onClose(): void }) {
  const dialog = useModal();
  const running = useRef(new AbortController());
  const uploaded = useRef<string>(undefined);
  const [state, setState] = useState<State>({ phase: "sending", share: 0 });
  const fail = (error: string) =>
    setState({ phase: "done", report: { error, table: "", imported: 0, rejected: 0, columns: [] } });
  useEffect(() => {
    const send = async () => {
      const { signal } = running.current;
      const sent = await uploadFile(file, (share) => setState({ phase: "sending", share }), signal);
      if (sent.file === undefined) return fail(sent.error);
      uploaded.current = sent.file;
      if (signal.aborted) return removeUpload(sent.file);
      const contents = await contentsOf(sent.file);
      if (typeof contents === "string") fail(contents);
      else setState({ phase: "asking", contents });
    };
    send();
    return () => {
      running.current.abort();
      if (uploaded.current !== undefined) removeUpload(uploaded.current);
    };
  }, []);
  const store = async (contents: Contents, table: string, statement: string, columns: readonly Column[]) => {
    const { rowCount } = contents;
    setState({ phase: "storing", contents, text: "The server stores the rows …" });
    try {
      const { error, changed } = await runStatement(statement, {
        signal: running.current.signal,
        onUpdate(_, progress) {
          const read = progress?.rowsRead ?? 0;
          setState({
            phase: "storing",
            contents,
            share: read / rowCount,
            text: `${countText(read)} of ${countText(rowCount)} read`,
          });
        },
      });
      if (error !== undefined) return setState({ phase: "asking", contents, error: error.message });
      const stored = columns.map(({ name, type }) => ({ name, type, errors: 0 }));
      setState({
        phase: "done",
        report: { table, imported: changed ?? rowCount, rejected: 0, columns: stored },
      });
    } catch {
      return; // closed
    } finally {
      await refreshSchema();
    }
  };
  return (
    <dialog class="dialog import" ref={dialog} aria-labelledby="import-title" onClose={onClose}>
      <h2 id="import-title">Import {file.name}</h2>
      {state.phase === "sending" && (
        <Waiting share={state.share} text={`${Math.floor(state.share * 100)} % sent`} onCancel={onClose} />
      )}
      {(state.phase === "asking" || state.phase === "storing") && (
        <div hidden={state.phase !== "asking"}>
          <Form
            fileName={file.name}
            contents={state.contents}
            error={state.phase === "asking" ? state.error : undefined}
            onStore={(...chosen) => store(state.contents, ...chosen)}
            onCancel={onClose}
          />
        </div>
      )}
      {state.phase === "storing" && <Waiting share={state.share} text={state.text} onCancel={onClose} />}
      {state.phase === "done" && <Report report={state.report} onClose={onClose} />}
    </dialog>
  );
}

/** Returns a text with the error if the file cannot be read. */
async function contentsOf(file: string): Promise<Contents | string> {
  const source = `read_parquet(${literal(file)})`;
  const [first, count] = await Promise.all([
    query(`select * from ${source} limit ${PREVIEW_ROWS}`),
    query(`select count() from ${source}`),
  ]);
  if (first.rows === undefined) return first.error?.message.replaceAll(file, "the file") ?? "The file has no columns.";
  return {
    file,
    columns: first.rows.columns,
    firstRows: first.rows.dataset,
    rowCount: Number(count.rows?.dataset[0]?.[0] ?? 0),
    notices: (first.notices ?? []).map((notice) => notice.replaceAll(file, "the file")),
  };
}

function Waiting({ share, text, onCancel }: { share?: number; text: string; onCancel(): void }) {
  return (
    <>
      <progress max={1} value={share} aria-label={text} />
      <p role="status">{text}</p>
      <p class="buttons">
        <button type="button" onClick={onCancel}>Cancel</button>
      </p>
    </>
  );
}

interface FormProps {
  fileName: string;
  contents: Contents;
  error: string | undefined;
  onStore(table: string, statement: string, columns: readonly Column[]): void;
  onCancel(): void;
}

function Form({ fileName, contents, error, onStore, onCancel }: FormProps) {
  const { columns, firstRows, rowCount, notices, file } = contents;
  const [mappings, setMappings] = useState<readonly Mapping[]>(() =>
    columns.map(({ name, type }) => ({ source: name, found: type, name, type, isIncluded: true }))
  );
  const times = mappings.filter(({ type, isIncluded }) => isIncluded && /^TIMESTAMP/.test(type));
  const [target, setTarget] = useState<Target>({
    table: tableNameOf(fileName),
    timestamp: times[0]?.name ?? "",
    partitionBy: "DAY",
  });
  const isNew = !exists(target.table);
  const changeMappings = (next: readonly Mapping[]) => {
    setMappings(next);
    setTarget({ ...target, timestamp: renamed(target.timestamp, mappings, next) });
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const table = target.table.trim();
    const statement = importStatement({ ...target, file, table, isNew, mappings });
    onStore(table, statement, mappings.filter(({ isIncluded }) => isIncluded));
  };
  return (
    <form onSubmit={submit}>
      <p>{countText(rowCount)}, {columns.length} columns. {notices.join(" ")}</p>
      <MappingTable
        mappings={mappings}
        firstValues={(at) => firstRows.map((row) => textOf(row[at]))}
        onChange={changeMappings}
      />
      <TargetFields target={target} isNew={isNew} times={times.map(({ name }) => name)} onChange={setTarget} />
      {error !== undefined && <p class="error" role="alert">{error}</p>}
      <FormButtons
        confirm="Import"
        isDisabled={!mappings.some(({ isIncluded }) => isIncluded)}
        onCancel={onCancel}
      />
    </form>
  );
}
