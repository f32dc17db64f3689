/**
 * Main's side of the thread that reads, binds and plans long statements: a statement of thousands of words takes a second, in which
 * nobody else would be served. The thread is started for the first of them and ends when there have been none for a while. Whatever
 * becomes of it, only the statement that it was at fails.
 */
import type { Client, Identity } from "../api.ts";
import { asClientFault, SqlError, SQLSTATE } from "../errors.ts";
import { CANCEL, cancelError, type PostedError, type PostedPlan, revivedError } from "../engine/mod.ts";
import type { ClientFacts, ExplainDetails } from "../sql/mod.ts";
import type { BoundStatement, MetadataNode, Plan, ScanReading } from "../sql/plan.ts";
import type { Catalogue, ScanSource, TableSchema, TableSnapshot } from "../storage/mod.ts";
import type { Value } from "../types/mod.ts";
import type { Planned } from "./planning.ts";

/** A statement and its run, as far as they matter for the plan. */
export interface StatementOrder {
  text: string;
  parameterTypes: (string | undefined)[];
  values: readonly Value[];
  user: string;
  client?: ClientFacts;
  nowMicros: bigint;
  /** Of all tables: what was bound under another one is bound anew. */
  schemaVersion: number;
}

/** What is wanted of a statement, and what comes back. */
export interface Wanted {
  /** Its plan is packed if it is long. */
  statement: Planned<PostedPlan>;
  /** For one run. */
  plan: PostedPlan;
  /** The lines of EXPLAIN. */
  explain: string[];
}

export type Order =
  | { [W in keyof Wanted]: StatementOrder & { want: W } }[keyof Wanted]
  /** The statements of a text. */
  | { want: "parts"; text: string }
  /** The lines of EXPLAIN ANALYZE, for the plan that was run. `text` is that of the statement. */
  | { want: "analysis"; text: string; analysis: PackedAnalysis };

export interface PackedAnalysis {
  statement: BoundStatement<PostedPlan>;
  details: Pick<ExplainDetails, "sources" | "marks" | "statistics">;
}

export type TableFacts = Pick<TableSnapshot, "rowCount" | "timestampMin" | "timestampMax">;

/** What the thread asks main, by kind. */
export interface Answers {
  table: TableSchema | undefined;
  tables: TableSchema[];
  /** Of a table: what few statements ask for, as it has to be open for it. */
  facts: TableFacts;
  /** What EXPLAIN says of each scan, by its id. */
  marks: { marks: string[][]; sources: ScanSource[] };
  /** The node with its rows. */
  metadata: Plan;
  /** The result of a function that is answered by the database room. */
  call: Value;
}

export type Question =
  | { kind: "table"; name: string }
  | { kind: "tables" }
  | { kind: "facts"; tableId: number }
  | { kind: "marks"; scans: ScanReading[] }
  | { kind: "metadata"; node: MetadataNode }
  | { kind: "call"; name: string };

export type ToPlanner =
  | {
    kind: "start";
    control: SharedArrayBuffer;
    answers: MessagePort;
    importRoot: string;
    words: number;
    expressions: number;
  }
  | { kind: "order"; order: Order };

export type FromPlanner =
  | { kind: "question"; question: Question }
  | { kind: "done"; value: unknown }
  | { kind: "failed"; error: PostedError };

/** Words of shared memory. */
export const CONTROL = {
  /** Nobody waits any more for what the thread is at. */
  cancel: 0,
  /** Counts answers: woken with each. */
  answers: 1,
} as const;

export interface PlannerOptions {
  workerUrl: URL;
  importRoot: string;
  /** Longer statements are refused. */
  words: number;
  expressions: number;
  /** Of a statement whose client gives none; 0 is none. */
  timeoutMs: number;
  /** `catalogue`: the tables as the statement's session sees them, where that is not as all do. */
  answer(question: Question, catalogue: Catalogue | undefined, asker: Asker | undefined): Answers[keyof Answers];
  log(level: "INFO" | "CRITICAL", message: string): void;
  /** An error that is ours. */
  onUnhandledError?: () => void;
  /** The thread ends when there was nothing to do for so long. */
  idleMs?: number;
  /** It is replaced when it does not come back so long after nobody waits for it any more. */
  stuckMs?: number;
}

/** Whose statement it is: a session. */
export interface Asker {
  identity: Identity;
  client?: Pick<Client, "settings" | "pid">;
}

export interface WaitOptions {
  signal?: AbortSignal;
  /** 0 or undefined: the configured one. */
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
  /** Statements that it was given. */
  statementCount = 0;
  private thread: Thread | undefined;
  /** What the thread is at; stays until the thread says so, also when nobody waits any more. */
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

  /** The text's statements. */
  parts(text: string, options: WaitOptions = {}): Promise<{ text: string; at: number }[]> {
    return this.add({ want: "parts", text }, options) as Promise<{ text: string; at: number }[]>;
  }

  /** The lines of EXPLAIN ANALYZE. */
  analysis(text: string, analysis: PackedAnalysis, options: WaitOptions = {}): Promise<string[]> {
    return this.add({ want: "analysis", text, analysis }, options) as Promise<string[]>;
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

  /** Tells the thread that nobody waits any more for what it is at. */
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
    // The short ones first: one client's longest statements hold nobody else's up for long.
    const lengths = this.waiting.map(({ order }) => order.text.length);
    const [job] = this.waiting.splice(lengths.indexOf(Math.min(...lengths)), 1);
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
    const { workerUrl, importRoot, words, expressions } = this.options;
    const worker = new Worker(workerUrl, { type: "module", name: "planner" });
    const control = new SharedArrayBuffer(Object.keys(CONTROL).length * Int32Array.BYTES_PER_ELEMENT);
    const { port1, port2 } = new MessageChannel();
    const thread = { worker, control: new Int32Array(control), answers: port1 };
    worker.onmessage = ({ data }: MessageEvent<FromPlanner>) => {
      if (this.thread === thread) this.onMessage(data);
    };
    worker.onerror = (event) => {
      // Prevented, or the process would end with the thread.
      event.preventDefault();
      if (this.thread === thread) this.fail(event.message || "unknown error");
    };
    worker.postMessage(
      { kind: "start", control, answers: port2, importRoot, words, expressions } satisfies ToPlanner,
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

  /** The thread is of no use any more: its statement fails, the next one gets a new thread. */
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
