/** Copies that COPY has started: CSV files of the import directory into tables, and rows into Parquet files of the export directory. */
import { join } from "node:path";
import type { Answer, Client, Identity, ImportOptions, ImportReport, Session } from "../api.ts";
import { writeAll } from "../bytes.ts";
import { CorruptFileError, SqlError, SQLSTATE } from "../errors.ts";
import { isWithin } from "../paths.ts";
import { type CopyOrder, PARQUET_CODEC_DEFAULT } from "../sql/mod.ts";
import type { Value } from "../types/mod.ts";
import { VERSION } from "../version.ts";
import { ParquetAssembler, type ParquetEncoding } from "../wire/encode/mod.ts";
import type { Actor } from "./access/control.ts";

const COPIES_MAX = 8;
/** Prefix of files that are being written. */
export const UNFINISHED = ".unfinished-";
/** Events that the logs of imports and exports keep. */
const EVENTS_MAX = 1_000;
/** A copy ends when it is done or cancelled. */
const TIMEOUT_MS = 30 * 86_400_000;

type ImportOrder = Extract<CopyOrder, { action: "from" }>;
type ExportOrder = Extract<CopyOrder, { action: "to" }>;

export interface CopyOptions {
  importRoot: string;
  exportRoot: string;
  nowMicros(): bigint;
  log(level: "INFO" | "ERROR", message: string): void;
  importCsv(
    body: AsyncIterable<Uint8Array>,
    options: ImportOptions,
    identity: Identity,
    client: Client | undefined,
    signal: AbortSignal,
  ): Promise<ImportReport>;
  session(by: Actor): Session;
  /** True if the user may see and cancel the copies of others. */
  mayManage(identity: Identity): boolean;
}

interface Event {
  owner: string;
  row: Value[];
}

interface Running {
  owner: string;
  order: CopyOrder;
  startedMicros: bigint;
  abort: AbortController;
  ended: Promise<void>;
}

/** What an event says besides time, id and table. */
interface Outcome {
  status: "started" | "finished" | "failed" | "cancelled";
  message?: string;
  report?: ImportReport;
  path?: string;
}

export class Copies {
  private readonly running = new Map<string, Running>();
  private readonly imports: Event[] = [];
  private readonly exports: Event[] = [];

  constructor(private readonly options: CopyOptions) {}

  /** Starts a copy, and returns its id. @throws {SqlError} if it cannot be started. */
  async start(order: CopyOrder, by: Actor): Promise<string> {
    if (this.running.size >= COPIES_MAX) {
      throw new SqlError(`${COPIES_MAX} copies are running: COPY 'id' CANCEL ends one`, 0, SQLSTATE.objectNotInState);
    }
    const id = idOfCopy(), abort = new AbortController(), owner = ownerOf(by.identity);
    const work = order.action === "from"
      ? () => this.import(order, by, abort.signal)
      : await this.export(id, order, by, abort.signal);
    const note = (outcome: Outcome) => this.note(id, order, owner, outcome);
    note({ status: "started" });
    const run = async () => {
      try {
        note({ status: "finished", ...await work() });
      } catch (error) {
        const isCancelled = abort.signal.aborted, message = messageOf(error);
        note({ status: isCancelled ? "cancelled" : "failed", message: isCancelled ? undefined : message });
        if (!isCancelled) this.options.log("ERROR", `copy ${id} failed: ${message}`);
      } finally {
        this.running.delete(id);
      }
    };
    // After the answer: the copy must not hold it up.
    const ended = new Promise<void>((done) => setTimeout(() => run().then(done), 0));
    this.running.set(id, { owner, order, startedMicros: this.options.nowMicros(), abort, ended });
    return id;
  }

  /** Tells what became of the copy with this id. It is unknown to users who may not cancel it. */
  cancel(id: string, { identity }: Actor): "cancelled" | "unknown" {
    const copy = this.running.get(id.toLowerCase());
    if (copy === undefined || !this.isSeen(copy.owner, identity)) return "unknown";
    copy.abort.abort();
    return "cancelled";
  }

  importRows(identity: Identity): Value[][] {
    return this.seen(this.imports, identity);
  }

  exportRows(identity: Identity): Value[][] {
    return this.seen(this.exports, identity);
  }

  /** The rows of export_activity(): exports that are running. */
  activeExportRows(identity: Identity): Value[][] {
    return [...this.running].flatMap(([id, { owner, order, startedMicros }]) =>
      order.action === "to" && this.isSeen(owner, identity)
        ? [[id, null, owner, startedMicros, "writing", "copy", pathOf(order.file), order.text, null]]
        : []
    );
  }

  /** Cancels what is running, and waits for it. */
  async close(): Promise<void> {
    const running = [...this.running.values()];
    for (const { abort } of running) abort.abort();
    await Promise.all(running.map(({ ended }) => ended));
  }

  private seen(events: readonly Event[], identity: Identity): Value[][] {
    return events.filter(({ owner }) => this.isSeen(owner, identity)).map(({ row }) => row);
  }

  private isSeen(owner: string, identity: Identity): boolean {
    return owner === ownerOf(identity) || this.options.mayManage(identity);
  }

  private note(id: string, order: CopyOrder, owner: string, { status, message, report, path }: Outcome): void {
    const head = [this.options.nowMicros(), id, order.table ?? null];
    const events = order.action === "from" ? this.imports : this.exports;
    const row: Value[] = order.action === "from"
      ? [
        ...head,
        order.file,
        null,
        status,
        message ?? null,
        report === undefined ? null : BigInt(report.rowsImported + report.rowsRejected),
        report === undefined ? null : BigInt(report.rowsImported),
        BigInt(
          report === undefined
            ? 0
            : Math.max(report.rowsRejected, report.columns.reduce((sum, { errors }) => sum + errors, 0)),
        ),
      ]
      : [
        ...head,
        path ?? null,
        path === undefined ? null : 1,
        null,
        status,
        message ?? null,
        status === "failed" ? 1n : 0n,
      ];
    events.push({ owner, row });
    if (events.length > EVENTS_MAX) events.shift();
  }

  private async import(
    order: ImportOrder,
    { identity, client }: Actor,
    signal: AbortSignal,
  ): Promise<{ report: ImportReport }> {
    const path = await insideOf(this.options.importRoot, order.file);
    const file = await Deno.open(path);
    const { timestamp, format } = order;
    const options: ImportOptions = {
      table: order.table,
      overwrite: false,
      create: true,
      timestamp,
      partitionBy: order.partitionBy,
      atomicity: order.onError,
      forceHeader: order.hasHeader,
      delimiter: order.delimiter?.charCodeAt(0),
      omit: [],
      schema: format === undefined ? [] : [{ name: timestamp!, type: "TIMESTAMP", pattern: format }],
      faultsMax: 0,
    };
    // The stream closes the file.
    return { report: await this.options.importCsv(file.readable, options, identity, client, signal) };
  }

  /** Prepares the query at once, so that the statement fails if it cannot run. */
  private async export(
    id: string,
    order: ExportOrder,
    by: Actor,
    signal: AbortSignal,
  ): Promise<() => Promise<{ path: string }>> {
    const session = this.options.session(by);
    try {
      const prepared = await session.prepare(order.text);
      const encoding: ParquetEncoding = {
        name: "parquet",
        codec: (order.codec ?? PARQUET_CODEC_DEFAULT) as ParquetEncoding["codec"],
        level: order.level,
        pageSizeBytes: order.pageSize === undefined ? undefined : Math.max(1024, order.pageSize),
      };
      return async () => {
        try {
          const answer = await prepared.execute([], { encoding, signal, timeoutMs: TIMEOUT_MS });
          return { path: await this.write(id, order.file, answer) };
        } finally {
          session.close();
        }
      };
    } catch (error) {
      session.close();
      throw error;
    }
  }

  /** Writes the file under another name, and renames it when it is complete and on stable storage. */
  private async write(id: string, name: string, answer: Answer): Promise<string> {
    if (answer.kind === "done") throw new SqlError("only rows can be exported: expected a query", 0);
    const { exportRoot } = this.options;
    await Deno.mkdir(exportRoot, { recursive: true, mode: 0o700 });
    const target = join(exportRoot, pathOf(name)), folder = join(target, "..");
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    await checkInside(exportRoot, folder);
    await this.removeUnfinished();
    const unfinished = join(exportRoot, UNFINISHED + id);
    const file = await Deno.open(unfinished, { write: true, createNew: true, mode: 0o600 });
    let isWritten = false;
    try {
      const parquet = new ParquetAssembler(answer.columns, `Sundial ${VERSION}`);
      await writeAll(file, parquet.head);
      for await (const { bytes } of answer.chunks) await writeAll(file, parquet.group(bytes));
      await writeAll(file, parquet.footer());
      await file.sync();
      isWritten = true;
    } finally {
      file.close();
      if (!isWritten) await Deno.remove(unfinished);
    }
    await Deno.rename(unfinished, target);
    return target;
  }

  /** A process that was killed leaves its files. */
  private async removeUnfinished(): Promise<void> {
    const { exportRoot } = this.options;
    for await (const { name } of Deno.readDir(exportRoot)) {
      if (name.startsWith(UNFINISHED) && !this.running.has(name.slice(UNFINISHED.length))) {
        await Deno.remove(join(exportRoot, name));
      }
    }
  }
}

/** Of an exported file, within the export directory. */
function pathOf(name: string): string {
  return name.endsWith(".parquet") ? name : `${name}.parquet`;
}

function idOfCopy(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function ownerOf({ name, assumed }: Identity): string {
  return assumed ?? name;
}

/** The path of a file in a directory, which links must not lead out of. */
async function insideOf(root: string, name: string): Promise<string> {
  const path = join(root, name);
  try {
    await checkInside(root, path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new SqlError(`${name} does not exist in the import directory`, 0, SQLSTATE.invalidParameter);
  }
  return path;
}

async function checkInside(root: string, path: string): Promise<void> {
  const [base, real] = [await Deno.realPath(root), await Deno.realPath(path)];
  if (isWithin(base, real)) return;
  throw new SqlError(`${path} is a link to a place outside of the directory`, 0, SQLSTATE.insufficientPrivilege);
}

function messageOf(error: unknown): string {
  if (error instanceof SqlError || error instanceof CorruptFileError) return error.message;
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
