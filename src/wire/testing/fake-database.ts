/**
 * A database for tests of the wires. The test determines the answer of a statement, and batches are encoded as by the
 * engine.
 */
import type {
  Answer,
  Chunk,
  ConnectionState,
  Database,
  ExecuteOptions,
  Identity,
  LineBody,
  Prepared,
  ResultColumn,
  Session,
  StatementCategory,
} from "../../api.ts";
import type { Value } from "../../types/mod.ts";
import { failedTransaction, SqlError } from "../../errors.ts";
import { createHeap, type SharedHeap } from "../../storage/heap.ts";
import { createEncoder } from "../encode/mod.ts";

/** One LONG column `x` of 1 … rowCount, or another kind of answer. */
export interface FakeStatement {
  rowCount?: number;
  columns?: ResultColumn[];
  parameters?: string[];
  done?: { category: Exclude<StatementCategory, "query">; tag: string; rows: number };
  /** Thrown before row `failAt`. */
  failAt?: number;
  prepareError?: SqlError;
  notices?: string[];
  /** Changes the state of the client's connection. */
  change?: (connection: ConnectionState) => void;
  /** A value of `$1` for the column instead of the row's number. */
  echo?: boolean;
  /** Called for each chunk asked for. */
  onChunk?: (signal: AbortSignal | undefined) => void | Promise<void>;
  chunkRows?: number;
}

export class FakeDatabase implements Database {
  readonly executed: { text: string; values: Value[]; options: ExecuteOptions }[] = [];
  readonly heap: SharedHeap = createHeap(64 << 20);
  lines: Uint8Array[] = [];
  writeFailure: Error | undefined;
  chunksReturned = 0;

  constructor(readonly statements: (text: string) => FakeStatement) {}

  session(identity: Identity): Session {
    return new FakeSession(this, identity);
  }

  async writeLines(body: LineBody): Promise<{ rows: number }> {
    if (this.writeFailure) throw this.writeFailure;
    const pieces: BlobPart[] = [];
    for await (const piece of body) pieces.push(piece.slice());
    this.lines.push(await new Blob(pieces).bytes());
    return { rows: 1 };
  }

  async takeLines(lines: Uint8Array): Promise<{ rows: number; doneBytes: number }> {
    if (this.writeFailure) throw this.writeFailure;
    this.lines.push(lines);
    return { rows: 1, doneBytes: lines.length };
  }

  importCsv(): Promise<never> {
    return Promise.reject(new SqlError("nothing can be imported", 0));
  }

  async append(): Promise<void> {}

  languageReference(): string {
    return "{}";
  }

  table(): undefined {
    return undefined;
  }

  get dashboards(): Database["dashboards"] {
    throw new Error("this database has no dashboards");
  }

  statistics(): Record<string, number> {
    return {};
  }

  async close(): Promise<void> {}
}

class FakeSession implements Session {
  transaction: Session["transaction"] = "idle";

  constructor(private readonly database: FakeDatabase, readonly identity: Identity) {}

  prepare(text: string, parameterTypes: (string | undefined)[] = []): Prepared {
    const { database } = this;
    const statement = database.statements(text.trim().replace(/;$/, ""));
    if (statement.prepareError) throw statement.prepareError;
    const columns = statement.done ? undefined : statement.columns ?? [{ name: "x", type: "LONG" }];
    return {
      columns,
      timestamp: -1,
      parameters: (statement.parameters ?? []).map((type, index) => parameterTypes[index] ?? type),
      parameterArrays: [],
      notices: statement.notices ?? [],
      category: statement.done?.category ?? "query",
      isRead: statement.done === undefined,
      compileNs: 1000,
      execute: async (values, options): Promise<Answer> => {
        database.executed.push({ text, values, options });
        const { done } = statement;
        const hasFailed = this.transaction === "failed";
        if (hasFailed && done?.category !== "transaction") throw failedTransaction();
        statement.change?.(options.connection!);
        if (done?.tag === "BEGIN") this.transaction = "open";
        if (done?.tag === "COMMIT" || done?.tag === "ROLLBACK") this.transaction = "idle";
        if (done) return { kind: "done", ...done, tag: hasFailed ? "ROLLBACK" : done.tag };
        const total = statement.rowCount ?? 1;
        return {
          kind: "rows",
          columns: columns!,
          timestamp: -1,
          chunks: chunksOf(database, statement, columns!, values, options),
          totalRows: () => total,
        };
      },
    };
  }

  split(text: string): { text: string; at: number }[] {
    const parts: { text: string; at: number }[] = [];
    for (const match of text.matchAll(/[^;\s][^;]*/g)) parts.push({ text: match[0], at: match.index });
    return parts;
  }

  readSpooled(): Promise<never> {
    return Promise.reject(new SqlError("nothing is read again", 0));
  }

  finerSamples(): undefined {
    return undefined;
  }

  beginRequest(): void {}

  async endRequest(): Promise<void> {}

  async fail(): Promise<void> {
    if (this.transaction === "open") this.transaction = "failed";
  }

  statistics(): Record<string, number> {
    return {};
  }

  async close(): Promise<void> {}

  async end(): Promise<void> {}
}

async function* chunksOf(
  database: FakeDatabase,
  statement: FakeStatement,
  columns: ResultColumn[],
  values: Value[],
  options: ExecuteOptions,
): AsyncGenerator<Chunk> {
  const { heap } = database;
  const encoder = createEncoder(options.encoding, columns, heap);
  const chunkRows = statement.chunkRows ?? 1000;
  const first = options.window?.first ?? 0;
  const end = Math.min(statement.rowCount ?? 1, first + (options.window?.count ?? Infinity));
  const address = heap.allocate(chunkRows * 8, "other");
  try {
    for (let row = first; row < end; row += chunkRows) {
      if (statement.failAt !== undefined && row >= statement.failAt) throw new SqlError("a row is broken", 7);
      await statement.onChunk?.(options.signal);
      const rowCount = Math.min(chunkRows, end - row);
      for (let index = 0; index < rowCount; index++) {
        heap.i64[address / 8 + index] = statement.echo ? BigInt(values[0] as bigint) : BigInt(row + index + 1);
      }
      const vectors = columns.map(({ type }) => ({ type, address }));
      yield { bytes: encoder.encode({ rowCount, columns: vectors }, 0, rowCount, row === first), rows: rowCount };
    }
  } finally {
    database.chunksReturned++;
    heap.free(address, chunkRows * 8, "other");
  }
}
