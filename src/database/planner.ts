/**
 * The main thread's side of the planner's thread, which parses, binds and plans long statements. A statement of
 * thousands of words takes a second, during which the main thread could not serve others. The thread starts with the
 * first such statement and ends after a while without any. If it fails, only its current statement fails.
 */
import type { Client, Identity } from "../api.ts";
import { asClientFault, SqlError, SQLSTATE } from "../errors.ts";
import { CANCEL, cancelError, type PostedError, type PostedPlan, revivedError } from "../engine/mod.ts";
import type { ClientFacts, ExplainDetails, ExplainNode, ServerCall } from "../sql/mod.ts";
import type { BoundStatement, MetadataNode, Plan, ScanReading, View } from "../sql/plan.ts";
import type { Catalogue, ScanSource, TableSchema, TableSnapshot } from "../storage/mod.ts";
import type { Value } from "../types/mod.ts";
import type { Planned } from "./planning.ts";

/** A statement and the facts of its run that affect the plan. */
export interface StatementOrder {
  text: string;
  parameterTypes: (string | undefined)[];
  values: readonly Value[];
  user: string;
  /** It is a statement of the server itself. */
  isOwn?: boolean;
  client?: ClientFacts;
  nowMicros: bigint;
  /** The version of all schemas. Statements bound with another version are bound again. */
  schemaVersion: number;
}

/** The results that can be requested for a statement. */
export interface Wanted {
  /** Its plan is packed if it is long. */
  statement: Planned<PostedPlan>;
  /** The plan for one run. */
  plan: PostedPlan;
  /** The lines of EXPLAIN. */
  explain: ExplainNode[];
}

export type Order =
  | { [W in keyof Wanted]: StatementOrder & { want: W } }[keyof Wanted]
  /** The statements of a text. */
  | { want: "bounds"; text: string }
  /** The lines of EXPLAIN ANALYZE for a plan that has run. `text` is the statement. */
  | { want: "analysis"; text: string; analysis: PackedAnalysis };

export interface PackedAnalysis {
  statement: BoundStatement<PostedPlan>;
  details: Pick<ExplainDetails, "sources" | "marks" | "spills" | "statistics">;
}

export type TableFacts = Pick<TableSnapshot, "rowCount" | "timestampMin" | "timestampMax">;

/** Answers of the main thread to the planner's questions, by kind. */
export interface Answers {
  table: TableSchema | undefined;
  view: View | undefined;
  tables: TableSchema[];
  /** Facts about a table that few statements need, because the table must be opened for them. */
  facts: TableFacts;
  /** For EXPLAIN: the description of each scan, by its id, and whether operators may write to disk. */
  marks: { marks: string[][]; sources: ScanSource[]; spills: boolean };
  /** The node with its rows. */
  metadata: Plan;
  /** The result of a function that the database layer implements. */
  call: Value;
}

export type Question =
  | { kind: "table"; name: string }
  | { kind: "view"; name: string }
  | { kind: "tables" }
  | { kind: "facts"; tableId: number }
  | { kind: "marks"; scans: ScanReading[] }
  | { kind: "metadata"; node: MetadataNode }
  | { kind: "call"; call: ServerCall };

export type ToPlanner =
  | {
    kind: "start";
    control: SharedArrayBuffer;
    answers: MessagePort;
    importRoot: string;
    words: number;
    tokens: number;
    expressions: number;
  }
  | { kind: "order"; order: Order };

export type FromPlanner =
  | { kind: "question"; question: Question }
  | { kind: "done"; value: unknown }
  | { kind: "failed"; error: PostedError };

/** Indices of words in shared memory. */
export const CONTROL = {
  /** Set if no client waits for the current order any more. */
  cancel: 0,
  /** Number of answers. Waiters are notified of each. */
  answers: 1,
} as const;

export interface PlannerOptions {
  workerUrl: URL;
  importRoot: string;
  /** Longer statements are refused. */
  words: number;
  tokens: number;
  expressions: number;
  /** Default timeout of statements; 0 means none. */
  timeoutMs: number;
  /** `catalogue`: the tables as the statement's session sees them, if they differ from the committed ones. */
  answer(question: Question, catalogue: Catalogue | undefined, asker: Asker | undefined): Answers[keyof Answers];
  log(level: "INFO" | "CRITICAL", message: string): void;
  /** Called for an internal error. */
  onUnhandledError?: () => void;
  /** The thread ends after this time without orders. */
  idleMs?: number;
  /** The thread is replaced if it does not stop within this time after a cancellation. */
  stuckMs?: number;
}

/** The session that asks for a statement. */
export interface Asker {
  identity: Identity;
  client?: Pick<Client, "settings" | "pid" | "canWrite">;
}

export interface WaitOptions {
  signal?: AbortSignal;
  /** 0 or undefined: the configured timeout. */
  timeoutMs?: number;
  /** The tables as a session in a transaction sees them. */
  catalogue?: Catalogue;
  asker?: Asker;
}

interface Job {
  order: Order;
  catalogue: Catalogue | undefined;
  asker: Asker | undefined;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface Thread {
  worker: Worker;
  control: Int32Array;
  answers: MessagePort;
}

const IDLE_MS = 30_000;
const STUCK_MS = 10_000;

export class Planner {
  /** Number of statements that the thread was given. */
  statementCount = 0;
  private thread: Thread | undefined;
  /** The current order of the thread. Remains set until the thread has finished it, even after a cancellation. */
  private current: Job | undefined;
  private readonly waiting: Job[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isClosed = false;

  constructor(private readonly options: PlannerOptions) {}

  get isRunning(): boolean {
    return this.thread !== undefined;
  }

  want<W extends keyof Wanted>(want: W, order: StatementOrder, options: WaitOptions = {}): Promise<Wanted[W]> {
    if (want === "statement") this.statementCount++;
    return this.add({ ...order, want } as Order, options) as Promise<Wanted[W]>;
  }

  /** `boundsOf` the statements of a text. */
  bounds(text: string, options: WaitOptions = {}): Promise<Uint32Array> {
    return this.add({ want: "bounds", text }, options) as Promise<Uint32Array>;
  }

  /** The lines of EXPLAIN ANALYZE. */
  analysis(text: string, analysis: PackedAnalysis, options: WaitOptions = {}): Promise<ExplainNode[]> {
    return this.add({ want: "analysis", text, analysis }, options) as Promise<ExplainNode[]>;
  }

  close(): void {
    this.isClosed = true;
    for (const job of [...this.waiting, ...this.current ? [this.current] : []]) {
      job.reject(cancelError(CANCEL.shutdown, 0));
    }
    this.waiting.length = 0;
    this.end();
  }

  private add(order: Order, { signal, timeoutMs: given, catalogue, asker }: WaitOptions): Promise<unknown> {
    signal?.throwIfAborted();
    if (this.isClosed) throw cancelError(CANCEL.shutdown, 0);
    const timeoutMs = given || this.options.timeoutMs;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const job: Job = { order, catalogue, asker, resolve, reject };
    const onAbort = () => this.giveUp(job, cancelError(CANCEL.byUser, 0));
    signal?.addEventListener("abort", onAbort, { once: true });
    const timer = timeoutMs > 0 && timeoutMs < 2 ** 31
      ? setTimeout(() => this.giveUp(job, cancelError(CANCEL.timeout, timeoutMs)), timeoutMs)
      : undefined;
    this.waiting.push(job);
    this.next();
    return promise.finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    });
  }

  private giveUp(job: Job, error: SqlError): void {
    job.reject(error);
    const at = this.waiting.indexOf(job);
    if (at >= 0) this.waiting.splice(at, 1);
    if (job === this.current) this.stop();
  }

  /** Tells the thread that its current order was cancelled. */
  private stop(): void {
    const { control } = this.thread!;
    Atomics.store(control, CONTROL.cancel, 1);
    Atomics.notify(control, CONTROL.answers);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fail("it does not stop"), this.options.stuckMs ?? STUCK_MS);
  }

  private next(): void {
    if (this.current !== undefined) return;
    clearTimeout(this.timer);
    if (this.waiting.length === 0) {
      if (this.thread !== undefined) this.timer = setTimeout(() => this.end(), this.options.idleMs ?? IDLE_MS);
      return;
    }
    // Short statements go first, so that long ones delay other clients less.
    const lengths = this.waiting.map(({ order }) => order.text.length);
    const job = this.waiting.splice(lengths.indexOf(Math.min(...lengths)), 1)[0]!;
    this.current = job;
    try {
      this.thread ??= this.start();
      Atomics.store(this.thread.control, CONTROL.cancel, 0);
      this.thread.worker.postMessage({ kind: "order", order: job.order } satisfies ToPlanner);
    } catch (error) {
      this.finish();
      job.reject(error);
    }
  }

  private start(): Thread {
    const { workerUrl, importRoot, words, tokens, expressions } = this.options;
    const worker = new Worker(workerUrl, { type: "module", name: "planner" });
    const control = new SharedArrayBuffer(Object.keys(CONTROL).length * Int32Array.BYTES_PER_ELEMENT);
    const { port1, port2 } = new MessageChannel();
    const thread = { worker, control: new Int32Array(control), answers: port1 };
    worker.onmessage = ({ data }: MessageEvent<FromPlanner>) => {
      if (this.thread === thread) this.onMessage(data);
    };
    worker.onerror = (event) => {
      // Without this, the error would end the process.
      event.preventDefault();
      if (this.thread === thread) this.fail(event.message || "unknown error");
    };
    worker.postMessage(
      { kind: "start", control, answers: port2, importRoot, words, tokens, expressions } satisfies ToPlanner,
      [port2],
    );
    return thread;
  }

  private onMessage(message: FromPlanner): void {
    const job = this.current!;
    switch (message.kind) {
      case "question":
        return this.answer(message.question);
      case "done":
        job.resolve(message.value);
        return this.finish();
      case "failed":
        job.reject(this.revive(message.error));
        return this.finish();
    }
  }

  private answer(question: Question): void {
    const { control, answers } = this.thread!;
    try {
      answers.postMessage({ answer: this.options.answer(question, this.current!.catalogue, this.current!.asker) });
    } catch (error) {
      this.current!.reject(error);
      return this.stop();
    }
    Atomics.add(control, CONTROL.answers, 1);
    Atomics.notify(control, CONTROL.answers);
  }

  private finish(): void {
    this.current = undefined;
    this.next();
  }

  private revive(posted: PostedError): unknown {
    const error = asClientFault(revivedError(posted));
    if (!(error instanceof SqlError) && posted.name === "Error") {
      this.options.log("CRITICAL", `planning failed unexpectedly: ${posted.stack ?? posted.message}`);
    }
    return error;
  }

  /** Called if the thread is unusable: its statement fails, and the next one gets a new thread. */
  private fail(reason: string): void {
    this.options.log("CRITICAL", `the planner's thread failed and is replaced: ${reason}`);
    this.options.onUnhandledError?.();
    const job = this.current;
    this.end();
    job?.reject(new SqlError(`the thread that planned the statement failed: ${reason}`, 0, SQLSTATE.internal));
    this.finish();
  }

  private end(): void {
    clearTimeout(this.timer);
    this.thread?.worker.terminate();
    this.thread?.answers.close();
    this.thread = undefined;
  }
}
