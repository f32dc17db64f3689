/** Runs plans: small ones on the calling thread, others in a worker, with the same operators and encoders. */
import type { Chunk, ExecuteOptions, ResultColumn } from "../api.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { FunctionRegistry, QueryContext } from "../engine/contract.ts";
import {
  Analysis,
  answerFromStatistics,
  CountedMemory,
  createOperator,
  isPacked,
  type PlanStatistics,
  type PostedPlan,
  type Scheduler,
  workAt,
} from "../engine/mod.ts";
import type { Plan } from "../sql/plan.ts";
import type { Catalogue, ScanSource } from "../storage/contract.ts";
import type { SharedHeap, SharedPool } from "../storage/mod.ts";
import type { RunningStatement } from "./activity.ts";
import { createOutput, type OutputOptions } from "./output.ts";
import { seededRandom } from "./random.ts";
import { resolveSources, workOf } from "./sources.ts";

export interface ExecutionSettings {
  /** Plans that process at most this many rows run on the calling thread. */
  directRowsMax: number;
  queryMemoryLimitBytes: number;
  queryTimeoutMs: number;
  useStatistics: boolean;
}

export interface Run {
  chunks: AsyncIterable<Chunk>;
  /** Number of rows of the whole query, once the chunks have ended. */
  totalRows: () => number;
}

export interface RunOptions {
  output: OutputOptions;
  columns: ResultColumn[];
  user: string;
  /** The tables as its session sees them. */
  catalogue: Catalogue;
  signal?: AbortSignal;
  timeoutMs?: number;
  /** The statement that the plan belongs to. */
  running?: RunningStatement;
  /** For EXPLAIN ANALYZE: receives the plan and its statistics. */
  analyzed?: Analyzed;
}

/** A plan that EXPLAIN ANALYZE has run. */
export interface Analyzed {
  /** The plan as it was run. */
  plan?: PostedPlan;
  sources?: ScanSource[];
  /** Available once the rows have ended. */
  statistics?: Promise<PlanStatistics>;
}

/**
 * Few rows can take long too. A direct query that takes longer is run again in a worker, because it blocks this thread.
 */
const DIRECT_MS_MAX = 25;

/** Results of more bytes, or of longer texts, may take too long within a single step. */
const DIRECT_BYTES_MAX = 32 << 20;
const DIRECT_TEXT_BYTES_MAX = 64 << 10;

class TakesLong extends Error {}

/** Memory of a query that runs on the main thread. */
class DirectMemory extends CountedMemory {
  override allocate(sizeBytes: number, operator: string): number {
    if (this.usedBytes + sizeBytes > DIRECT_BYTES_MAX) throw new TakesLong();
    return super.allocate(sizeBytes, operator);
  }

  override account(sizeBytes: number, operator: string): void {
    if (this.usedBytes + sizeBytes > DIRECT_BYTES_MAX) throw new TakesLong();
    super.account(sizeBytes, operator);
  }

  override need(sizeBytes: number): void {
    if (sizeBytes > DIRECT_TEXT_BYTES_MAX) throw new TakesLong();
  }
}

export class Execution {
  constructor(
    private readonly heap: SharedHeap,
    private readonly pool: SharedPool,
    private readonly functions: FunctionRegistry,
    private readonly scheduler: Scheduler,
    private readonly settings: ExecutionSettings,
    readonly nowMicros: () => bigint,
    /** A word of shared memory that stays 0: queries that run directly are not cancelled. */
    private readonly neverCancelled: number,
  ) {}

  run(given: PostedPlan, options: RunOptions): Run {
    const sources = resolveSources(given, options.catalogue);
    if (isPacked(given)) return this.runInWorker(given, sources, options);
    const plan = this.answered(given, sources);
    if (options.analyzed === undefined && workOf(plan, sources) <= this.settings.directRowsMax) {
      try {
        return this.runDirect(plan, sources, options);
      } catch (error) {
        if (!(error instanceof TakesLong)) throw error;
      }
    }
    return this.runInWorker(plan, sources, options);
  }

  /** Answers aggregates from statistics where possible. */
  answered(plan: Plan, sources: ScanSource[]): Plan {
    return this.settings.useStatistics ? answerFromStatistics(plan, sources) : plan;
  }

  /** @throws {TakesLong} before any output, so that a worker can run the plan from the start. */
  private runDirect(plan: Plan, sources: ScanSource[], options: RunOptions): Run {
    const memory = new DirectMemory(this.heap, this.settings.queryMemoryLimitBytes);
    const pool = this.pool.lease();
    let deadline = Infinity;
    const poll = () => {
      if (performance.now() > deadline) throw new TakesLong();
    };
    const context: QueryContext = {
      heap: this.heap,
      memory,
      pool,
      functions: this.functions,
      sources,
      nowMicros: this.nowMicros(),
      random: seededRandom(),
      user: options.user,
      poll,
      cancelWord: this.neverCancelled,
    };
    workAt(context);
    const chunks: Chunk[] = [];
    const output = createOutput(options.output, options.columns, this.heap, memory);
    try {
      const operator = createOperator(plan, context);
      deadline = performance.now() + DIRECT_MS_MAX;
      try {
        for (let batch = operator.next(); batch && !output.finished; batch = operator.next()) {
          const pieces = output.encode(batch);
          for (let piece = pieces.next(); !piece.done; piece = pieces.next()) {
            chunks.push(piece.value);
            poll();
          }
        }
      } finally {
        operator.close();
      }
    } finally {
      pool.release();
      memory.release();
    }
    return { chunks: listed(chunks), totalRows: () => output.totalRows };
  }

  private runInWorker(plan: PostedPlan, sources: ScanSource[], options: RunOptions): Run {
    options.signal?.throwIfAborted();
    const analysis = options.analyzed && Analysis.create(this.heap, plan, sources.length);
    const unpin = options.catalogue.pin();
    const timeoutMs = options.timeoutMs || this.settings.queryTimeoutMs;
    const run = this.scheduler.run({
      plan,
      sources,
      nowMicros: this.nowMicros(),
      timeoutMs,
      memoryLimitBytes: this.settings.queryMemoryLimitBytes,
      user: options.user,
      analysis: analysis?.shape,
    }, options.output);
    if (analysis !== undefined) {
      const statistics = run.ended.then(() => {
        const read = analysis.read();
        analysis.free();
        return read;
      });
      Object.assign(options.analyzed!, { plan, sources, statistics } satisfies Analyzed);
    }
    // Not when the reader leaves: threads may read the data until they have noticed the cancellation.
    run.ended.then(unpin);
    const { running } = options;
    running?.attach(run);
    const cancel = () => run.cancel();
    options.signal?.addEventListener("abort", cancel, { once: true });
    const finish = () => options.signal?.removeEventListener("abort", cancel);
    return {
      chunks: finishing(run.chunks, finish, cancel, (error) => running?.errorOf(error) ?? error),
      totalRows: run.totalRows,
    };
  }
}

export async function* listed(chunks: Chunk[]): AsyncIterable<Chunk> {
  yield* chunks;
}

/**
 * Passes the chunks on. `finish` runs once, when they have ended, failed or been abandoned (then after `cancel`), even
 * before the first was requested.
 */
function finishing(
  chunks: AsyncIterable<Chunk>,
  finish: () => void,
  cancel: () => void,
  errorOf: (error: unknown) => unknown,
): AsyncIterable<Chunk> {
  const source = chunks[Symbol.asyncIterator]();
  let over = false;
  const end = (how?: () => void) => {
    if (over) return;
    over = true;
    how?.();
    finish();
  };
  const iterator: AsyncIterator<Chunk> & AsyncIterable<Chunk> = {
    [Symbol.asyncIterator]: () => iterator,
    async next() {
      try {
        const result = await source.next();
        if (result.done) end();
        return result;
      } catch (error) {
        end();
        throw errorOf(error);
      }
    },
    async return() {
      end(cancel);
      await source.return?.();
      return { done: true, value: undefined };
    },
  };
  return iterator;
}

/** Converts the options of `execute` to those of an output for clients. */
export function rowsOutput(options: ExecuteOptions): OutputOptions {
  const { encoding, window, countAll, chunkBytes } = options;
  return { kind: "rows", encoding, window, countAll, pieceBytes: chunkBytes };
}

/** The client has disconnected or cancelled the query. SQLSTATE 57014. */
export function cancelledByUser(): SqlError {
  return new SqlError("query cancelled by the user", 0, SQLSTATE.queryCanceled);
}
