/**
 * Runs small queries on the main thread, from first to last within one call. A run of a known plan uses the operators, kernels,
 * buffers and encoder of an earlier one, also if the rows of its tables have changed, or the intervals of time that it reads and the
 * constants of its conditions: by parameters or by now(). The values that a run reads are never kept.
 */
import process from "node:process";
import type { Answer, ResultColumn } from "../api.ts";
import {
  CountedMemory,
  createOperator,
  flushKernelRows,
  type Operator,
  PlanChanges,
  type QueryContext,
  rowsLeft,
  scansOf,
  workAt,
} from "../engine/mod.ts";
import type { FunctionRegistry } from "../engine/contract.ts";
import { isImmutable } from "../sql/mod.ts";
import type { Plan, ScanNode, ScanReading } from "../sql/plan.ts";
import type { ScanSource } from "../storage/contract.ts";
import type { OnMiss, PoolLease, SharedHeap, SharedPool } from "../storage/mod.ts";
import { createOutput, type Output, type OutputOptions, type Piece } from "./output.ts";
import { seededRandom } from "./random.ts";
import { constantsReplaced, type ReplacedConstants } from "./same-plan.ts";
import { everyPair, hasSameDictionaries, isKept, isSameIntervals, isSameOutput } from "./same-run.ts";
import { KERNEL_ROW, workOf } from "./sources.ts";

/**
 * Few rows can take long too. A query that takes longer is run again in a worker, because it blocks this thread. The processor time of this
 * thread is asked only after `LOOK_MS`, and then the query has the rest of it: on a busy machine the thread may have waited for a core.
 */
const DIRECT_MS_MAX = 25, LOOK_MS = 15;
/** A plan that took longer twice in a row is run in workers for this time. */
const SLOW_MS = 1_000;
/** Results of more bytes, or of longer texts, may take too long within a single step. */
const DIRECT_BYTES_MAX = 32 << 20;
const DIRECT_TEXT_BYTES_MAX = 64 << 10;

/**
 * Most work of a query that does not wait for longer ones when all workers are busy: a worker does it in some ten
 * milliseconds. In rows, as `query.direct.rows.max`.
 */
const SMALL_WORK_MAX = 160_000;

/** Runs that are kept, and the shared memory of all of them. */
const KEPT_MAX = 256;
const KEPT_BYTES_MAX = 8 << 20;
/** Of a plan: for other encodings, windows and users. */
const VARIANTS_MAX = 4;
/** A run that takes more is not kept. */
const RUN_BYTES_MAX = 2 << 20;
/** Runs that were not used for this long are closed. */
const KEPT_IDLE_MS = 5_000;

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

export interface DirectOptions {
  output: OutputOptions;
  columns: ResultColumn[];
  user: string;
}

/** The rows of a query that has ended: an answer as it is. */
export class ReadyRows implements AsyncIterable<Piece> {
  readonly kind = "rows";
  explained: Extract<Answer, { kind: "rows" }>["explained"];

  constructor(
    readonly ready: readonly Piece[],
    private readonly rowCount: number,
    readonly columns: ResultColumn[],
    readonly timestamp: number,
  ) {}

  get chunks(): AsyncIterable<Piece> {
    return this;
  }

  totalRows(): number {
    return this.rowCount;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Piece, undefined> {
    yield* this.ready;
    return undefined;
  }
}

/** What statistics leave of a plan. Asked for at most a few times. */
export interface LeftPlan {
  plan(): Plan;
  /** Set if it is more work than main does. */
  isLarge?: boolean;
}

export interface DirectResources {
  heap: SharedHeap;
  pool: SharedPool;
  functions: FunctionRegistry;
  nowMicros(): bigint;
  /** Of the limits of time; undefined: Date.now, which takes a third of performance.now(). */
  nowMs?(): number;
  /** Processor time of this thread. */
  processorMs?(): number;
  /** A word of shared memory that stays 0: these queries are not cancelled. */
  neverCancelled: number;
  settings: { directRowsMax: number; queryMemoryLimitBytes: number };
}

/** The plan of a statement before the values of its parameters are known, and the clock. The same object in each execution. */
export type PlanKey = object;

export class DirectRuns {
  /** Of each plan the most recently used one last. A plan without one is forgotten when unused ones are closed. */
  private readonly kept = new Map<PlanKey, DirectRun[]>();
  private keptCount = 0;
  private keptBytes = 0;
  /** Plans whose last run here took too long, and until when they are run in workers. */
  private readonly slow = new WeakMap<PlanKey, number>();
  /** True if there may be some. Asking a weak map takes longer. */
  private hasSlow = false;
  /** Plans whose operators have to be made anew for other constants. */
  private readonly fixed = new WeakSet<PlanKey>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** How many runs had to make their operators. */
  madeCount = 0;
  /** The last plan was not run because a frame that it needs is not in memory. */
  lacksFrame = false;
  /** The rows of a run may be in a buffer that the next run of the plan overwrites. */
  lends = false;
  /** The last rows of the present call that are in such a buffer. */
  lent: ReadyRows | undefined;

  private readonly nowMs: () => number;

  constructor(private readonly resources: DirectResources) {
    this.nowMs = resources.nowMs ?? Date.now;
  }

  /**
   * Undefined if the plan is for a worker: it reads many rows, takes long, or needs frames that are not in memory.
   * `left`: the plan without what statistics answer.
   */
  run(
    plan: Plan,
    sources: readonly ScanSource[],
    options: DirectOptions,
    left: LeftPlan,
    key: PlanKey = plan,
  ): ReadyRows | undefined {
    this.lacksFrame = false;
    if (this.resources.settings.directRowsMax < 0) return undefined;
    let run = this.takeSame(key, options, plan, sources);
    if (run === undefined && this.hasSlow && (this.slow.get(key) ?? 0) > this.nowMs()) return undefined;
    let isReusable = false;
    try {
      if (run === undefined) {
        const complete = left.plan();
        left.isLarge ??= !this.isDirect(complete, sources);
        if (left.isLarge) return undefined;
        run = this.rebound(key, complete, sources, options) ?? this.make(complete, sources, options);
        run.given = plan;
      }
      const lends = this.lends && options.output.kind === "rows", answer = run.run(lends, plan);
      if (lends) this.lent = answer;
      if (this.hasSlow) this.slow.delete(key);
      isReusable = isKept(options.output) && run.isImmutable && run.rewind();
      return answer;
    } catch (error) {
      if (!(error instanceof TakesLong)) throw error;
      const isMiss = error instanceof NotInMemory;
      this.lacksFrame = isMiss && error.why === "frame";
      if (!isMiss) {
        this.hasSlow = true;
        this.slow.set(key, this.slow.has(key) ? this.nowMs() + SLOW_MS : 0);
      }
      return undefined;
    } finally {
      if (isReusable) this.keep(key, run!);
      else run?.close();
    }
  }

  /** True if a worker needs milliseconds for the plan, as far as can be told without reading files. */
  isSmall(plan: Plan, sources: readonly ScanSource[]): boolean {
    const { heap, pool, functions } = this.resources, lease = pool.lease(notInMemory);
    const search = { heap, pool: lease, functions };
    const rows = (scan: ScanNode) => {
      try {
        return rowsLeft(scan, sources[scan.id]!, search);
      } catch (error) {
        if (error instanceof NotInMemory) return sources[scan.id]!.rowCount;
        throw error;
      }
    };
    try {
      return workOf(plan, sources, functions, rows, SMALL_WORK_MAX) <= SMALL_WORK_MAX;
    } finally {
      lease.release();
    }
  }

  /** Closes all kept runs. */
  close(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const key of [...this.kept.keys()]) this.forget(key);
  }

  /** True if the work is little. @throws {NotInMemory} */
  private isDirect(plan: Plan, sources: readonly ScanSource[]): boolean {
    const { heap, pool, functions, settings: { directRowsMax } } = this.resources;
    const lease = pool.lease(notInMemory);
    try {
      const search = { heap, pool: lease, functions };
      const rows = (scan: ScanNode) => rowsLeft(scan, sources[scan.id]!, search);
      return workOf(plan, sources, functions, rows, directRowsMax, true) <= directRowsMax;
    } finally {
      lease.release();
    }
  }

  private make(plan: Plan, sources: readonly ScanSource[], options: DirectOptions): DirectRun {
    this.madeCount++;
    return new DirectRun(plan, sources, options, this.resources);
  }

  /** A kept run of the same plan, over other intervals or sources, or with other constants in conditions. */
  private rebound(
    key: PlanKey,
    plan: Plan,
    sources: readonly ScanSource[],
    options: DirectOptions,
  ): DirectRun | undefined {
    let replaced: ReplacedConstants | undefined;
    const resembles = (kept: DirectRun) => (replaced = kept.differenceTo(plan, sources)) !== undefined;
    const run = this.take(key, options, (kept) => resembles(kept) && !replaced!.areOthers) ??
      (this.fixed.has(key) ? undefined : this.take(key, options, resembles));
    if (run === undefined) return undefined;
    if (run.rebind(plan, sources, replaced!)) return run;
    if (replaced!.areOthers) this.fixed.add(key);
    run.close();
  }

  /** Copies the last rows that were lent: they are not used at once. */
  own(): void {
    for (const piece of this.lent?.ready ?? []) piece.bytes = piece.bytes.slice();
    this.lent = undefined;
  }

  /** A kept run of the very plan over the very sources. */
  private takeSame(
    key: PlanKey,
    options: DirectOptions,
    plan: Plan,
    sources: readonly ScanSource[],
  ): DirectRun | undefined {
    const runs = this.kept.get(key);
    if (runs === undefined) return undefined;
    for (let k = 0; k < runs.length; k++) {
      if (runs[k]!.isFor(options) && runs[k]!.isOf(plan, sources)) return this.taken(runs, k);
    }
  }

  /** Nobody else has the run until it is kept again. */
  private take(key: PlanKey, options: DirectOptions, fits: (run: DirectRun) => boolean): DirectRun | undefined {
    const runs = this.kept.get(key);
    if (runs === undefined) return undefined;
    for (let k = 0; k < runs.length; k++) {
      const run = runs[k]!;
      if (run.isFor(options) && fits(run)) return this.taken(runs, k);
    }
  }

  private taken(runs: DirectRun[], k: number): DirectRun {
    const run = runs[k]!;
    for (; k + 1 < runs.length; k++) runs[k] = runs[k + 1]!;
    runs.pop();
    this.keptCount--;
    this.keptBytes -= run.usedBytes;
    return run;
  }

  private keep(key: PlanKey, run: DirectRun): void {
    const runs = this.kept.get(key);
    if (runs === undefined) this.kept.set(key, [run]);
    else {
      if (runs.length === VARIANTS_MAX) this.end(runs.shift()!);
      runs.push(run);
    }
    this.keptCount++;
    this.keptBytes += run.usedBytes;
    while (this.keptCount > KEPT_MAX || this.keptBytes > KEPT_BYTES_MAX) this.forgetOldest();
    if (this.timer !== undefined) return;
    this.timer = setTimeout(() => this.closeUnused(), KEPT_IDLE_MS);
    Deno.unrefTimer(this.timer as unknown as number);
  }

  private forgetOldest(): void {
    let oldest: PlanKey | undefined, oldestMs = Infinity;
    for (const [key, runs] of this.kept) {
      const { usedMs } = runs.at(-1) ?? { usedMs: -Infinity };
      if (usedMs < oldestMs) [oldest, oldestMs] = [key, usedMs];
    }
    this.forget(oldest!);
  }

  private forget(key: PlanKey): void {
    for (const run of this.kept.get(key) ?? []) this.end(run);
    this.kept.delete(key);
  }

  private end(run: DirectRun): void {
    this.keptCount--;
    this.keptBytes -= run.usedBytes;
    run.close();
  }

  private closeUnused(): void {
    this.timer = undefined;
    const before = this.nowMs() - KEPT_IDLE_MS;
    for (const [key, runs] of [...this.kept]) if (runs.every((run) => run.usedMs < before)) this.forget(key);
    if (this.kept.size === 0) return;
    this.timer = setTimeout(() => this.closeUnused(), KEPT_IDLE_MS);
    Deno.unrefTimer(this.timer as unknown as number);
  }
}

class NotInMemory extends TakesLong {
  constructor(readonly why: Parameters<OnMiss>[0]) {
    super();
  }
}

const notInMemory: OnMiss = (why) => {
  throw new NotInMemory(why);
};

/** The operators of a plan and their resources. */
class DirectRun {
  private readonly memory: DirectMemory;
  private readonly pool: PoolLease;
  private readonly context: QueryContext;
  private readonly output: Output;
  private readonly operator: Operator;
  private readonly nowMs: () => number;
  private readonly processorMs: () => number;
  private deadline = Infinity;
  private workedFromMs: number | undefined;
  private rowsLeft = 0;
  /** Start of the last run. */
  usedMs = 0;
  /** The plan of the execution. `plan` is what statistics have left of it. */
  given: Plan;
  /** Those of the last run, in the order of the plan. */
  private scans: readonly ScanReading[];
  /** Its functions give the same values in each run. */
  readonly isImmutable: boolean;

  /** @throws {TakesLong} */
  constructor(
    /** Its intervals may be those of an earlier run. */
    private plan: Plan,
    private sources: readonly ScanSource[],
    private readonly options: DirectOptions,
    private readonly resources: DirectResources,
  ) {
    const { heap, pool, functions, nowMicros, neverCancelled, settings } = resources;
    this.given = plan;
    this.scans = scansOf(plan);
    this.isImmutable = isImmutable(plan);
    this.nowMs = resources.nowMs ?? Date.now;
    this.processorMs = resources.processorMs ?? processorMs;
    this.memory = new DirectMemory(heap, settings.queryMemoryLimitBytes);
    this.pool = pool.lease(notInMemory);
    this.context = {
      heap,
      memory: this.memory,
      pool: this.pool,
      functions,
      sources: [...sources],
      nowMicros: nowMicros(),
      random: seededRandom(),
      user: options.user,
      poll: () => {
        if (this.nowMs() > this.deadline && this.hasWorkedLong()) throw new TakesLong();
      },
      beforeText: (sizeBytes) => {
        if (sizeBytes > DIRECT_TEXT_BYTES_MAX) throw new TakesLong();
      },
      countRead: (rows) => {
        this.rowsLeft -= rows;
        if (this.rowsLeft < 0) throw new TakesLong();
      },
      cancelWord: neverCancelled,
    };
    workAt(this.context);
    try {
      this.output = createOutput(options.output, options.columns, heap, this.memory);
      this.operator = createOperator(plan, this.context);
    } catch (error) {
      this.release();
      throw error;
    }
  }

  get usedBytes(): number {
    return this.memory.usedBytes;
  }

  /** True if it can run as it is. */
  isOf(plan: Plan, sources: readonly ScanSource[]): boolean {
    return plan === this.given && everyPair(sources, this.sources, (a, b) => a === b);
  }

  /** What `rebind` has to replace. Undefined if it cannot run the plan. */
  differenceTo(plan: Plan, sources: readonly ScanSource[]): ReplacedConstants | undefined {
    return everyPair(sources, this.sources, hasSameDictionaries) ? constantsReplaced(this.plan, plan) : undefined;
  }

  /** Prepares a run of another plan. `replaced`: its difference. If it returns false, the run has to be closed. */
  rebind(plan: Plan, sources: readonly ScanSource[], { objects, areOthers }: ReplacedConstants): boolean {
    for (let k = 0; k < sources.length; k++) this.context.sources[k] = sources[k]!;
    const scans = scansOf(plan), changed = new Set<number>();
    for (const [k, { id, intervals }] of scans.entries()) {
      if (this.sources[id] !== sources[id] || !isSameIntervals(this.scans[k]!.intervals, intervals)) changed.add(id);
    }
    this.sources = sources;
    this.scans = scans;
    // The operators' constants are those of `plan`: replaced constants are found by identity.
    if (areOthers) this.plan = plan;
    const changes = new PlanChanges(scans, changed, areOthers ? objects : undefined);
    return this.operator.rebind?.(changes) === true && changes.areTaken;
  }

  /** True if it answers a request of these options. */
  isFor({ output, user }: DirectOptions): boolean {
    return user === this.options.user && isSameOutput(output, this.options.output);
  }

  /** Asked when the deadline is over. Sets the next one. */
  private hasWorkedLong(): boolean {
    const processorMs = this.processorMs();
    this.workedFromMs ??= processorMs;
    const leftMs = DIRECT_MS_MAX - LOOK_MS - (processorMs - this.workedFromMs);
    this.deadline = this.nowMs() + leftMs;
    return leftMs <= 0;
  }

  /** @throws {TakesLong} before any row is used, so that a worker can run the plan from the start. */
  run(lends: boolean, { timestamp }: Plan): ReadyRows {
    const { operator, output, context } = this;
    let pieces: Piece[] | undefined;
    workAt(context);
    this.usedMs = this.nowMs();
    this.deadline = this.usedMs + LOOK_MS;
    this.workedFromMs = undefined;
    this.rowsLeft = this.rowsMax();
    for (let batch = operator.next(); batch && !output.finished; batch = operator.next()) {
      output.begin(batch);
      for (let piece = output.next(lends); piece !== undefined; piece = output.next(lends)) {
        // Most answers are one piece. A list that grows allocates 17 elements.
        if (pieces === undefined) pieces = [piece];
        else pieces.push(piece);
        context.poll();
      }
    }
    return new ReadyRows(pieces ?? [], output.totalRows, this.options.columns, timestamp);
  }

  /** More rows than kernels read in the time of the rows that a direct query may have. */
  private rowsMax(): number {
    return Math.max(1, this.resources.settings.directRowsMax / KERNEL_ROW);
  }

  rewind(): boolean {
    flushKernelRows(this.resources.heap.i64);
    if (this.operator.rewind?.() !== true || this.usedBytes > RUN_BYTES_MAX) return false;
    this.output.rewind();
    this.pool.release();
    return true;
  }

  close(): void {
    try {
      this.operator.close();
    } finally {
      this.release();
    }
  }

  private release(): void {
    this.pool.release();
    this.memory.release();
  }
}

/** Takes some 30 us. */
function processorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
