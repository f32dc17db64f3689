/** Runs plans: small ones on the calling thread, others in a worker, with the same operators and encoders. */
import type { Chunk, ExecuteOptions, ResultColumn } from "../api.ts";
import type { SpillPlace } from "../engine/contract.ts";
import {
  Analysis,
  answerFromStatistics,
  type PlanStatistics,
  type PostedPlan,
  type RunningQuery,
  type Scheduler,
  treeOf,
} from "../engine/mod.ts";
import type { Plan } from "../sql/plan.ts";
import type { Catalogue, ScanSource } from "../storage/contract.ts";
import type { SharedHeap } from "../storage/mod.ts";
import type { RunningStatement } from "./activity.ts";
import { type DirectResources, DirectRuns, type LeftPlan, type PlanKey, ReadyRows } from "./direct.ts";
import { FirstReads } from "./first-reads.ts";
import type { OutputOptions } from "./output.ts";
import { resolveSources } from "./sources.ts";

export interface ExecutionSettings {
  /** Plans of at most so much work run on the calling thread. */
  directRowsMax: number;
  queryMemoryLimitBytes: number;
  /** Where queries write what their memory does not hold, and how much of it; 0: nothing. */
  spillRoot: string;
  spillLimitBytes: number;
  queryTimeoutMs: number;
  useStatistics: boolean;
}

/** `ReadyRows`, or what a worker makes. */
export interface Run {
  chunks: AsyncIterable<Chunk>;
  /** All chunks, if it has ended already. */
  ready?: readonly Chunk[];
  /** Number of rows of the whole query, once the chunks have ended. */
  totalRows(): number;
}

export interface RunOptions {
  output: OutputOptions;
  columns: ResultColumn[];
  user: string;
  /** The tables as its session sees them. */
  catalogue: Catalogue;
  signal?: AbortSignal;
  timeoutMs?: number;
  /** What executions of the same statement share. Undefined: the plan itself. */
  key?: PlanKey;
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

export class Execution {
  readonly direct: DirectRuns;
  private readonly heap: SharedHeap;
  readonly nowMicros: () => bigint;
  private readonly firstReads: FirstReads<Run>;
  /** Plans whose last execution was much work. Not asked for what main runs again as it is. */
  readonly large = new WeakMap<PlanKey, LargePlan>();

  constructor(
    resources: DirectResources,
    private readonly scheduler: Scheduler,
    private readonly settings: ExecutionSettings,
  ) {
    this.heap = resources.heap;
    this.nowMicros = resources.nowMicros;
    this.direct = new DirectRuns(resources);
    this.firstReads = new FirstReads(resources.pool.frames);
  }

  /** Like `run`, but not always at once. A small result is there as a whole. */
  answer(given: PostedPlan, options: RunOptions): Run | Promise<Run> {
    const { key } = options;
    if (key === undefined || !this.firstReads.isUnderway(key)) {
      return begun(this.run(given, options));
    }
    const attempt = () => this.attempt(given, options);
    return attempt() ?? this.firstReads.wait(key, attempt).then((run) => {
      options.signal?.throwIfAborted();
      if (run !== undefined) return run;
      const other = this.run(given, options);
      if (this.direct.lacksFrame) this.firstReads.isNoHelp(key);
      return begun(other);
    });
  }

  /** Runs a plan on the calling thread. Undefined if that is impossible now. */
  private attempt(given: PostedPlan, options: RunOptions): Run | undefined {
    const sources = resolveSources(given, options.catalogue), tree = treeOf(given);
    return tree && this.direct.run(tree, sources, options, new Left(this, tree, sources, options.key), options.key);
  }

  run(given: PostedPlan, options: RunOptions): Run {
    const sources = resolveSources(given, options.catalogue);
    const tree = treeOf(given);
    if (tree === undefined) return this.runInWorker(given, sources, options);
    const isAnalyzed = options.analyzed !== undefined, left = new Left(this, tree, sources, options.key);
    const direct = isAnalyzed ? undefined : this.direct.run(tree, sources, options, left, options.key);
    return direct ?? this.runElsewhere(left, sources, options, !isAnalyzed && this.direct.lacksFrame);
  }

  private runElsewhere(left: Left, sources: ScanSource[], options: RunOptions, lacksFrame: boolean): Run {
    left.remember();
    const plan = left.plan(), isSmall = () => this.direct.isSmall(plan, sources);
    return this.runInWorker(plan, sources, options, isSmall, lacksFrame && isSmall() ? options.key : undefined);
  }

  /** Answers aggregates from statistics where possible. */
  answered(plan: Plan, sources: ScanSource[]): Plan {
    return this.settings.useStatistics ? answerFromStatistics(plan, sources) : plan;
  }

  /** Frees what is kept for further runs. */
  close(): void {
    this.direct.close();
  }

  /** True if the operators of queries may write to disk. */
  get spills(): boolean {
    return this.settings.spillLimitBytes > 0;
  }

  private spillPlace(): SpillPlace | undefined {
    const { spillRoot: root, spillLimitBytes: limitBytes } = this.settings;
    return this.spills ? { root, limitBytes } : undefined;
  }

  /** `isSmall`: asked while it waits for a worker. Long plans count as large. */
  private runInWorker(
    plan: PostedPlan,
    sources: ScanSource[],
    options: RunOptions,
    isSmall = () => false,
    /** Set if main can run the plan when it has been run once. */
    readsFirst?: PlanKey,
  ): Run {
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
      spill: this.spillPlace(),
      user: options.user,
      analysis: analysis?.shape,
      isSmall,
    }, options.output);
    if (analysis !== undefined) {
      const statistics = run.ended.then(() => {
        const read = analysis.read();
        analysis.free();
        return read;
      });
      Object.assign(options.analyzed!, { plan, sources, statistics } satisfies Analyzed);
    }
    // Do not unpin when the reader leaves: threads may read the data until they have noticed the cancellation.
    run.ended.then(unpin);
    if (readsFirst !== undefined) this.firstReads.begin(readsFirst, run.ended);
    options.running?.attach(run);
    return new WorkerRun(run, plan, options);
  }
}

/** Passes the result of a worker on. When it has ended, failed or been abandoned, the signal is not listened to any more. */
class WorkerRun implements Run {
  private readonly signal: AbortSignal | undefined;
  private readonly cancel = (): void => this.query.cancel();

  constructor(
    private readonly query: RunningQuery,
    private readonly plan: PostedPlan,
    private readonly options: RunOptions,
  ) {
    this.signal = options.signal;
    this.signal?.addEventListener("abort", this.cancel, { once: true });
  }

  /** Resolves to the rows if they are few. */
  async begun(): Promise<Run> {
    let ready: readonly Chunk[] | undefined;
    try {
      ready = await this.query.whole();
    } catch (error) {
      this.end();
      throw this.errorOf(error);
    }
    if (ready === undefined) return this;
    this.end();
    const { columns, timestamp } = this.plan;
    return new ReadyRows(ready, this.query.totalRows(), columns, timestamp);
  }

  get chunks(): AsyncIterable<Chunk> {
    return finishing(this.query.chunks, () => this.end(), this.cancel, (error) => this.errorOf(error));
  }

  totalRows(): number {
    return this.query.totalRows();
  }

  private end(): void {
    this.signal?.removeEventListener("abort", this.cancel);
  }

  private errorOf(error: unknown): unknown {
    return this.options.running?.errorOf(error) ?? error;
  }
}

/** A small result of a worker as a whole; other runs as they are. */
function begun(run: Run): Run | Promise<Run> {
  return run instanceof WorkerRun ? run.begun() : run;
}

class Left implements LeftPlan {
  isLarge: boolean | undefined;
  private made: Plan | undefined;
  private isKnown = false;

  constructor(
    private readonly execution: Pick<Execution, "answered" | "large">,
    private readonly given: Plan,
    private readonly sources: ScanSource[],
    private readonly key: PlanKey = given,
  ) {}

  plan(): Plan {
    return this.made ??= this.find() ?? this.execution.answered(this.given, this.sources);
  }

  /** The plan of the last execution, if that was much work and read the same. */
  private find(): Plan | undefined {
    const known = this.execution.large.get(this.key);
    if (known?.isOf(this.given, this.sources) !== true) return undefined;
    this.isLarge = this.isKnown = true;
    return known.left;
  }

  /** To be called if a worker runs the plan. */
  remember(): void {
    if (this.isLarge !== true || this.isKnown) return;
    this.execution.large.set(this.key, new LargePlan(this.given, this.sources, this.plan()));
  }
}

/** A plan that was much work, so it will be if it reads the same. `left` is the same object then, which the workers know by a number. */
class LargePlan {
  /** Weak, so that older snapshots are not kept. */
  private readonly sources: readonly WeakRef<ScanSource>[];

  constructor(private readonly given: Plan, sources: readonly ScanSource[], readonly left: Plan) {
    this.sources = sources.map((source) => new WeakRef(source));
  }

  isOf(given: Plan, sources: readonly ScanSource[]): boolean {
    return given === this.given && sources.every((source, k) => source === this.sources[k]!.deref());
  }
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
