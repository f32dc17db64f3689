/**
 * Main's side of the exec workers: assigns queries to workers and transfers results with flow control. A worker leads one query at a
 * time; queries that find all workers busy wait in order. Tasks (parsing) are assigned the same way. Requests and small results
 * are in shared memory (`mailbox.ts`, `letter.ts`); larger results are posted.
 */
import { CorruptFileError, SqlError, SQLSTATE } from "../errors.ts";
import { type PostedError, revivedError } from "./posted-error.ts";
import { type Awaited, failJobs, WakeLoop } from "../storage/mod.ts";
import type { SharedHeap } from "../storage/heap.ts";
import { ChunkQueue, type ResultChunk } from "./chunk-queue.ts";
import type { QueryRequest } from "./contract.ts";
import { Letters } from "./letter.ts";
import { MAIL, Mailboxes, type Notify } from "./mailbox.ts";
import { UNIT_BYTES } from "./memory.ts";
import { serializedPlan } from "./packed-plan.ts";
import { type PackedSources, packSources } from "./packed-sources.ts";
import { PlanNames, PlansSent } from "./plan-names.ts";
import { ResultRoom } from "./result-room.ts";
import { ANSWER, CANCEL, cancelError, clearSlot, SLOT, SLOT_COUNT, slotLong, slotWord } from "./slot.ts";
import { QueriesUnderway, type Underway } from "./underway.ts";
import type { FromWorker, PostedTask, WorkerStart } from "./worker-messages.ts";

export interface SchedulerOptions {
  heap: SharedHeap;
  /** Memories that only the pool of a worker needs. */
  further?: readonly { buffer: SharedArrayBuffer }[];
  workerCount: number;
  /** URL of the workers' entry module. */
  workerUrl: URL;
  log: (level: "DEBUG" | "INFO" | "ERROR" | "CRITICAL", message: string) => void;
  /** How long a worker looks for more work before it sleeps, in microseconds; 0 by default. */
  busyMicros?: number;
  /** Waits busily for the answer of a worker. */
  awaitAnswer?: Awaited["busily"];
  /** Called when workers return memory after a time of work. */
  onRest?: () => void;
  /** Called for an unexpected error, which may make the health check fail. */
  onUnhandledError?: () => void;
  /** Made with `createMailboxes`, if others use them, too. */
  mailboxes?: Mailboxes;
  /** For tests: loses wakes. */
  notify?: Notify;
  /** For tests: time without work that is a rest, in ms. */
  restMs?: number;
  /** For tests: see STALL_MS. */
  stallMs?: number;
}

/** A query without what the scheduler adds. */
export type QueryOrder = Omit<QueryRequest, "slot"> & {
  /** Asked when all workers are busy: a small query does not wait for long ones. */
  isSmall?: () => boolean;
};

/** Progress and memory of a query. */
export interface QueryStatistics {
  /** "waiting": for a worker; "sending": waits for its reader. */
  state: "waiting" | "running" | "sending" | "ended";
  /** The worker that leads it, or -1. */
  worker: number;
  rowsRead: number;
  /** Upper bound; 0 if no source provides it. */
  rowsToRead: number;
  memoryBytes: number;
}

export interface RunningQuery {
  /** See `ChunkQueue.whole`. */
  whole(): Promise<readonly ResultChunk[] | undefined>;
  chunks: AsyncIterable<ResultChunk>;
  totalRows(): number;
  cancel(): void;
  /** After the end, returns the final values. */
  statistics(): QueryStatistics;
  /** Resolves when no thread works on the query any more, so that its data may be freed. */
  ended: Promise<void>;
}

export interface Scheduler {
  /** `output`: how batches become bytes, for the entry module. */
  run(order: QueryOrder, output: unknown): RunningQuery;
  /**
   * Runs a named task of the entry module on a worker. The buffer of `body` is moved. Tasks are short and do not wait
   * for queries.
   */
  task(name: string, payload: unknown, body?: Uint8Array): Promise<unknown>;
  /** For tests: throws an error at the top of a worker that leads a query, or of any worker. */
  crash(text: string): void;
  /** Cancels running queries and ends the workers. */
  close(): Promise<void>;
}

interface Job {
  kind: "query" | "task";
  /** It takes milliseconds. */
  isSmall: () => boolean;
  /** The worker that has parked it; it can only continue there. */
  only?: Seat;
  /** Fails only before the worker knows of it. Returns the number of its mail. */
  start: (seat: Seat) => number;
  /** The worker has failed before it has taken the mail. False if the job cannot be given to another one. */
  takeBack: () => boolean;
  onMessage: (message: FromWorker) => void;
  /** The job cannot run. */
  onError: (error: unknown) => void;
  /** The worker that had it has failed, or none can be started. */
  onCrash: (reason: string) => void;
}

/** A worker's slot. The worker is replaced after a failure. */
interface Seat {
  index: number;
  worker: Worker;
  port: MessagePort;
  plans: PlansSent;
  /** The worker has attached and is alive. */
  isReady: boolean;
  /** What it runs. */
  job: Job | undefined;
  /** The mail that brought it. */
  mail: number;
  /** Queries that wait for their readers. */
  parked: Set<Job>;
  /** Number of consecutive workers that ended without finishing anything, and the reason of the last one. */
  failures: number;
  reason: string;
  retry?: ReturnType<typeof setTimeout>;
}

/** Delay before retrying to start a worker; it doubles each time. */
const RETRY_MS = 100;
const RETRY_MS_MAX = 60_000;
/** A slot with this many failures is not considered available. */
const FAILURES_MAX = 4;
/** A parked query continues when at most this many chunks are left to its reader. */
const CHUNKS_LEFT_MAX = 2;

/** After this time without queries, tasks and commits, the workers return memory to the system. */
const REST_MS = 5_000;

/** How often main looks for answers whose wake it has missed. */
const LOOK_MS = 1_000;

/**
 * Workers beside those for all queries. They run only what is short, so the system does not put them behind the other threads. Starting
 * a worker blocks main for 20 ms, and on a busy machine for far longer, so they are started before work waits for them: the first one after there were
 * tasks and queries, the second one after the first query that is not small. They load for 100 ms, which the first queries would lack on few cores, so this
 * waits until all workers are busy, or none was for a while.
 */
const EXTRA_SEATS = [
  ({ kind }: Job) => kind === "task",
  ({ kind, isSmall }: Job) => kind === "query" && isSmall(),
] as const;

const EXTRA_DELAY_MS = 500;

function accepts(seat: Seat, job: Job, workerCount: number): boolean {
  if (job.only !== undefined) return job.only === seat;
  return seat.index < workerCount || EXTRA_SEATS[seat.index - workerCount](job);
}

/** Of this many workers that run queries of any length. */
export function createMailboxes(workerCount: number, notify?: Notify): Mailboxes {
  return Mailboxes.create(workerCount + EXTRA_SEATS.length, notify);
}

/** Does not wait until the workers have loaded their modules; queries wait for the first worker that is ready. */
export function createScheduler(options: SchedulerOptions): Scheduler {
  const scheduler = new WorkerScheduler(options);
  scheduler.start();
  return scheduler;
}

class WorkerScheduler implements Scheduler {
  private readonly seats: Seat[] = [];
  /** By index in EXTRA_SEATS. */
  private readonly extraSeats: (Seat | undefined)[] = EXTRA_SEATS.map(() => undefined);
  private readonly waiting: Job[] = [];
  /** The last one is used next, so that few letters have pages. */
  private readonly freeSlots = Array.from({ length: SLOT_COUNT }, (_, k) => SLOT_COUNT - 1 - k);
  private readonly waitingForSlot: (() => void)[] = [];
  private readonly underway: QueriesUnderway;
  private closed = false;
  private readonly mailboxes: Mailboxes;
  private readonly letters: Letters;
  private readonly room: ResultRoom;
  private readonly planNames = new PlanNames((name) => this.allSeats().forEach(({ plans }) => plans.free(name)));
  /** By slot: takes the answer of the query that has it. No longer than the slots in use require. */
  private readonly answerTakers: (((answer: number) => void) | undefined)[] = [];
  /** Takes answers while a worker has work. */
  private readonly loop: WakeLoop;
  /** The kinds of work since the start. */
  private readonly hasSeen = { task: false, query: false, longQuery: false };
  private lookTimer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly options: SchedulerOptions) {
    this.mailboxes = options.mailboxes ?? createMailboxes(options.workerCount, options.notify);
    this.letters = new Letters(options.heap);
    this.room = new ResultRoom(options.heap);
    this.underway = new QueriesUnderway(() => this.waitingForSlot.length, options.stallMs);
    this.loop = new WakeLoop({
      wakes: () => this.mailboxes.answers(),
      nextWake: (answers) => this.mailboxes.nextAnswer(answers),
      take: () => {
        this.takeAnswers();
        return !this.closed && this.allSeats().some(({ job }) => job !== undefined);
      },
      busily: options.awaitAnswer,
    });
  }

  start(): void {
    for (let index = 0; index < this.options.workerCount; index++) this.seats.push(this.newSeat(index));
    this.releaseMemoryWhenIdle();
    this.lookTimer = setInterval(() => this.takeAnswers(), LOOK_MS);
    Deno.unrefTimer(this.lookTimer as unknown as number);
  }

  private newSeat(index: number): Seat {
    const seat = { index, isReady: false, job: undefined, mail: 0, parked: new Set<Job>(), failures: 0, reason: "" };
    return this.spawn(seat);
  }

  /** Starts a worker for the seat. */
  private spawn(vacant: Omit<Seat, "worker" | "port" | "plans">): Seat {
    const { index } = vacant;
    this.mailboxes.reset(index);
    const worker = new Worker(this.options.workerUrl, { type: "module", name: `exec-${index}` });
    const { port1, port2 } = new MessageChannel();
    const seat: Seat = Object.assign(vacant, { worker, port: port1, plans: new PlansSent() });
    const isCurrent = () => seat.worker === worker && !this.closed;
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      if (this.closed || isCurrent()) this.onMessage(seat, data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      worker.onerror = (again) => again.preventDefault();
      if (isCurrent()) this.onFailure(seat, event.message || "unknown error");
    };
    const { heap: { memory }, further = [], workerCount, busyMicros = 0 } = this.options;
    const { buffer } = this.mailboxes;
    const memories = { memory, further: further.map(({ buffer }) => buffer) };
    const start: WorkerStart = { ...memories, mailboxes: buffer, seat: index, workerCount, busyMicros, port: port2 };
    worker.postMessage(start, [port2]);
    return seat;
  }

  private onMessage(seat: Seat, message: FromWorker): void {
    if (message.type === "ready") {
      seat.isReady = true;
      return this.next();
    }
    const { job } = seat;
    job?.onMessage(message);
    if (message.type === "chunk") return;
    if (message.type === "parked") {
      seat.parked.add(job!);
      seat.job = undefined;
    } else this.vacate(seat);
    this.next();
  }

  private takeAnswers(): void {
    const { i32 } = this.options.heap;
    for (let slot = 0; slot < this.answerTakers.length; slot++) {
      if (Atomics.load(i32, slotWord(slot, SLOT.answer)) === ANSWER.none) continue;
      this.answerTakers[slot]?.(Atomics.exchange(i32, slotWord(slot, SLOT.answer), ANSWER.none));
    }
  }

  /** The worker has finished its job. */
  private vacate(seat: Seat): void {
    seat.failures = 0;
    seat.job = undefined;
  }

  /** After an uncaught error in a worker: its queries fail, and a new worker replaces it. */
  private onFailure(seat: Seat, reason: string): void {
    this.takeAnswers();
    const { job } = seat, lost = [...seat.parked, ...(job ? [job] : [])];
    const returned = job && !this.mailboxes.isTaken(seat.index, seat.mail) && job.takeBack() ? [job] : [];
    // A worker with a job had started successfully; the requester gets the reason of its failure.
    if (lost.length > returned.length) seat.failures = 0;
    else seat.failures++;
    const waitMs = seat.failures === 0 ? 0 : Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** (seat.failures - 1));
    this.options.log(
      "CRITICAL",
      `query worker ${seat.index} failed and is replaced${waitMs > 0 ? ` in ${waitMs} ms` : ""}: ${reason}`,
    );
    this.options.onUnhandledError?.();
    seat.worker.terminate();
    seat.port.close();
    failJobs(this.options.heap, seat.index);
    Object.assign(seat, { isReady: false, job: undefined, reason });
    seat.parked.clear();
    for (const job of lost) if (!returned.includes(job)) job.onCrash(reason);
    this.waiting.unshift(...returned);
    for (let k = this.waiting.length - 1; k >= 0; k--) if (this.waiting[k].only === seat) this.waiting.splice(k, 1);
    seat.retry = setTimeout(() => this.spawn(seat), waitMs);
    this.next();
  }

  private next(): void {
    if (this.closed) return;
    if (this.waiting.length > 0) this.giveWaiting();
    this.planExtraSeats();
    if (this.waiting.length === 0) return;
    const isLost = ({ isReady, failures }: Seat) => !isReady && failures >= FAILURES_MAX;
    if (this.seats.every(isLost)) this.failWaiting();
  }

  private giveWaiting(): void {
    // Workers with parked queries go last, because a query can only continue where it was started.
    const seats = this.seats.toSorted((a, b) => a.parked.size - b.parked.size);
    const [taskSeat, smallSeat] = this.extraSeats;
    for (const seat of [taskSeat, ...seats, smallSeat]) {
      if (this.waiting.length === 0) break;
      if (!seat?.isReady || seat.job) continue;
      const at = this.waiting.findIndex((job) => accepts(seat, job, seats.length));
      if (at >= 0) this.give(seat, this.waiting.splice(at, 1)[0]);
    }
  }

  private extraTimer: ReturnType<typeof setInterval> | undefined;

  /** After the work that needs them has been given to other workers. */
  private planExtraSeats(): void {
    if (!this.extraSeats.some((seat, k) => seat === undefined && this.needsExtra(k))) return;
    const areBusy = this.seats.every(({ job }) => job !== undefined);
    if (areBusy || this.waiting.length > 0) this.startExtraSeats();
    else this.extraTimer ??= this.startWhenIdle();
  }

  private startWhenIdle(): ReturnType<typeof setInterval> {
    let given = this.jobsGiven;
    return setInterval(() => {
      const isIdle = given === this.jobsGiven && this.allSeats().every(({ job }) => job === undefined);
      given = this.jobsGiven;
      if (isIdle) this.startExtraSeats();
    }, EXTRA_DELAY_MS);
  }

  private startExtraSeats(): void {
    clearInterval(this.extraTimer);
    this.extraTimer = undefined;
    for (const k of EXTRA_SEATS.keys()) {
      if (this.needsExtra(k)) this.extraSeats[k] ??= this.newSeat(this.seats.length + k);
    }
  }

  private needsExtra(k: number): boolean {
    const { task, query, longQuery } = this.hasSeen;
    return k === 0 ? task && query : longQuery;
  }

  private idleTimer: ReturnType<typeof setInterval> | undefined;
  private jobsGiven = 0;

  /** Releases memory once after each time of work. Commits count as work, because many are made without the workers. */
  private releaseMemoryWhenIdle(): void {
    let seen = this.work(), isReleased = true;
    this.idleTimer = setInterval(() => {
      const isBusy = ({ job, parked }: Seat) => job !== undefined || parked.size > 0;
      const work = this.work();
      if (work !== seen || this.allSeats().some(isBusy)) isReleased = false;
      else if (!isReleased) {
        isReleased = true;
        for (const { index } of this.allSeats()) this.mailboxes.post(index, MAIL.releaseMemory);
        this.options.onRest?.();
      }
      seen = work;
    }, this.options.restMs ?? REST_MS);
    Deno.unrefTimer(this.idleTimer as unknown as number);
  }

  /** Changes with each piece of work. */
  private work(): number {
    return this.jobsGiven + this.options.heap.counter("commits");
  }

  private allSeats(): Seat[] {
    return [...this.seats, ...this.extraSeats.filter((seat) => seat !== undefined)];
  }

  private give(seat: Seat, job: Job): void {
    this.jobsGiven++;
    if (job.kind === "query" && !this.hasSeen.longQuery) this.hasSeen.longQuery = !job.isSmall();
    seat.parked.delete(job);
    job.only = undefined;
    seat.job = job;
    try {
      seat.mail = job.start(seat);
    } catch (error) {
      seat.job = undefined;
      job.onError(error);
      return this.next();
    }
    void this.loop.run();
  }

  /** No worker can be started: fail instead of waiting forever. */
  private failWaiting(): void {
    const { reason } = this.seats[0];
    for (const job of this.waiting.splice(0)) job.onCrash(`no query worker can be started, ${reason}`);
  }

  private enqueue(job: Job): void {
    this.hasSeen[job.kind] = true;
    this.waiting.push(job);
    this.next();
  }

  task(name: string, payload: unknown, body?: Uint8Array): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.enqueue({
        kind: "task",
        isSmall: () => true,
        // Its body has been moved to the worker.
        takeBack: () => false,
        start: ({ index, port }) => {
          const buffer = body?.buffer as ArrayBuffer | undefined;
          const posted: PostedTask = { name, payload, buffer, at: body?.byteOffset, length: body?.length };
          port.postMessage(posted, buffer === undefined ? [] : [buffer]);
          return this.mailboxes.post(index, MAIL.task);
        },
        onMessage: (message) => {
          if (message.type === "result") resolve(message.value);
          else if (message.type === "failed") reject(this.revive(message.error));
        },
        onError: reject,
        onCrash: (reason) => reject(workerFailed("parsed the request", reason)),
      });
    });
  }

  crash(text: string): void {
    const seat = this.seats.find(({ job, parked }) => job !== undefined || parked.size > 0) ?? this.seats[0];
    if (seat === undefined) return;
    seat.port.postMessage(text);
    this.mailboxes.post(seat.index, MAIL.crash);
  }

  run(order: QueryOrder, output: unknown): RunningQuery {
    const { heap } = this.options;
    const queue = new ChunkQueue();
    const { promise, resolve } = Promise.withResolvers<void>();
    let slot = -1, ended = false, totalRows = 0, cancelled: number = CANCEL.none, hasStarted = false;
    const cancel = (reason: number) => {
      if (ended || cancelled !== CANCEL.none) return;
      cancelled = reason;
      if (!hasStarted) {
        remove(this.waiting, job);
        remove(this.waitingForSlot, start);
        return end(cancelError(reason, order.timeoutMs));
      }
      // The worker of a parked query may be busy with a long one. It releases the memory later, and the reader is told now.
      if (parkedAt !== undefined || job.only !== undefined) queue.fail(cancelError(reason, order.timeoutMs));
      Atomics.compareExchange(heap.i32, word(SLOT.cancel), CANCEL.none, reason);
      Atomics.notify(heap.i32, word(SLOT.chunksUnderway));
      resumeIfWanted();
    };
    const end = (error?: unknown, whole?: readonly ResultChunk[]) => {
      if (ended) return;
      ended = true;
      last = { ...statistics(), state: "ended", memoryBytes: 0 };
      this.underway.delete(underway);
      if (slot >= 0) this.giveSlot(slot);
      if (error !== undefined) queue.fail(error);
      else if (whole !== undefined) queue.endWith(whole);
      else queue.end();
      resolve();
    };
    const word = (offset: number) => slotWord(slot, offset);
    const chunksUnderway = () => Atomics.load(heap.i32, word(SLOT.chunksUnderway));
    let last: QueryStatistics | undefined;
    const statistics = (): QueryStatistics => {
      if (last !== undefined) return last;
      if (!hasStarted) return { state: "waiting", worker: -1, rowsRead: 0, rowsToRead: 0, memoryBytes: 0 };
      const long = (offset: number) => Number(Atomics.load(heap.i64, slotLong(slot, offset)));
      const rowsToRead = long(SLOT.rowsToRead);
      return {
        state: parkedAt === undefined && job.only === undefined ? "running" : "sending",
        worker: this.allSeats().find((seat) => seat.job === job || seat.parked.has(job))?.index ?? -1,
        // A segment is counted each time that it is opened.
        rowsRead: rowsToRead > 0 ? Math.min(long(SLOT.rowsRead), rowsToRead) : long(SLOT.rowsRead),
        rowsToRead,
        memoryBytes: Atomics.load(heap.i32, word(SLOT.memoryUnits)) * UNIT_BYTES,
      };
    };
    let parkedAt: Seat | undefined, parkedOnce = false;
    const readAtMs = performance.now(), { timeoutMs } = order;
    // Waiting counts, so that no query waits for others without end.
    const deadlineMs = timeoutMs > 0 && timeoutMs < 2 ** 31 ? readAtMs + timeoutMs : Infinity;
    const resumeIfWanted = () => {
      if (parkedAt === undefined) return;
      if (cancelled === CANCEL.none) {
        const count = chunksUnderway();
        if (count > CHUNKS_LEFT_MAX || !this.room.isFor(heap.i32[word(SLOT.nextChunkBytes)], count)) return;
      }
      this.underway.parked.delete(underway);
      job.only = parkedAt;
      parkedAt = undefined;
      this.enqueue(job);
    };
    const underway: Underway = { cancel, chunksUnderway, resumeIfWanted, readAtMs, deadlineMs };
    this.underway.add(underway, readAtMs);
    const planName = this.planNames.nameOf(order.plan);
    let packed: PackedSources | undefined;
    /** `seat` is the worker that leads the query, also if it did not know the plan. */
    const send = (seat: Seat): number => {
      const isKnown = seat.plans.has(planName);
      packed ??= packSources(order.sources);
      this.letters.write({ ...order, slot }, {
        sources: packed,
        planName,
        plan: isKnown ? undefined : serializedPlan(order.plan),
        output,
        freedPlans: seat.plans.takeFreed(),
      });
      seat.plans.add(planName);
      return this.mailboxes.post(seat.index, MAIL.query, slot);
    };
    const takeAnswer = (answer: number) => {
      const seat = this.allSeats().find((seat) => seat.job === job);
      if (seat === undefined) return;
      if (answer === ANSWER.unknownPlan) {
        seat.plans.forget(planName);
        try {
          seat.mail = send(seat);
          return;
        } catch (error) {
          this.vacate(seat);
          end(error);
          return this.next();
        }
      }
      this.vacate(seat);
      if (answer === ANSWER.failed) end(this.revive(this.letters.readError(slot)));
      else {
        totalRows = Number(heap.i64[slotLong(slot, SLOT.totalRows)]);
        const bytes = this.letters.readAnswer(slot), rows = heap.i32[word(SLOT.answerRows)];
        end(undefined, bytes.length > 0 ? [{ bytes, rows }] : []);
      }
      this.next();
    };
    const job: Job = {
      kind: "query",
      isSmall: once(order.isSmall ?? (() => false)),
      start: (seat) => {
        if (parkedOnce) return this.mailboxes.post(seat.index, MAIL.resume, slot);
        const mail = send(seat);
        hasStarted = true;
        return mail;
      },
      takeBack: () => {
        if (parkedOnce || cancelled !== CANCEL.none) return false;
        hasStarted = false;
        return true;
      },
      onMessage: (message) => {
        if (message.type === "chunk") {
          this.room.add(message.bytes.length);
          queue.push({ bytes: message.bytes, rows: message.rows });
        } else if (message.type === "parked") {
          parkedOnce = true;
          parkedAt = this.allSeats().find((seat) => seat.job === job);
          this.underway.parked.add(underway);
          resumeIfWanted();
          this.underway.stopStalled();
        } else if (message.type === "done") {
          totalRows = message.totalRows;
          end();
        } else if (message.type === "failed") end(this.revive(message.error));
      },
      onError: end,
      onCrash: (reason) => end(workerFailed("ran the query", reason)),
    };
    const start = () => {
      slot = this.freeSlots.pop()!;
      clearSlot(heap, slot);
      this.answerTakers[slot] = takeAnswer;
      this.enqueue(job);
    };
    if (this.freeSlots.length > 0) start();
    else {
      this.waitingForSlot.push(start);
      this.underway.stopStalled();
    }
    queue.onFreed = (sizeBytes) => {
      this.room.subtract(sizeBytes);
      for (const { resumeIfWanted } of this.underway.parked) resumeIfWanted();
    };
    queue.onTaken = () => {
      if (ended) return;
      underway.readAtMs = performance.now();
      Atomics.sub(heap.i32, word(SLOT.chunksUnderway), 1);
      Atomics.notify(heap.i32, word(SLOT.chunksUnderway));
      resumeIfWanted();
    };
    return {
      whole: () => queue.whole(),
      chunks: queue,
      totalRows: () => totalRows,
      cancel: () => cancel(CANCEL.byUser),
      statistics,
      ended: promise,
    };
  }

  private giveSlot(slot: number): void {
    this.letters.free(slot);
    const { answerTakers } = this;
    answerTakers[slot] = undefined;
    while (answerTakers.length > 0 && answerTakers.at(-1) === undefined) answerTakers.pop();
    this.freeSlots.push(slot);
    this.waitingForSlot.shift()?.();
  }

  private revive(posted: PostedError): Error {
    const error = revivedError(posted);
    if (error instanceof SqlError || error instanceof CorruptFileError) return error;
    this.options.log("CRITICAL", `query failed unexpectedly: ${error.stack ?? error.message}`);
    this.options.onUnhandledError?.();
    return new SqlError(`internal error: ${error.message}`, 0, SQLSTATE.internal);
  }

  async close(): Promise<void> {
    for (const { cancel } of [...this.underway]) cancel(CANCEL.shutdown);
    const deadline = performance.now() + 2_000;
    while (this.allSeats().some(({ job, parked }) => job || parked.size > 0) && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    this.closed = true;
    this.underway.close();
    clearInterval(this.extraTimer);
    clearInterval(this.idleTimer);
    clearInterval(this.lookTimer);
    for (const { index, worker, port, retry } of this.allSeats()) {
      clearTimeout(retry);
      // A thread ends in its event loop only.
      this.mailboxes.post(index, MAIL.close);
      port.close();
      worker.terminate();
    }
    this.mailboxes.tellMain();
  }
}

function once(ask: () => boolean): () => boolean {
  let answer: boolean | undefined;
  return () => answer ??= ask();
}

function remove<T>(list: T[], item: T): void {
  const at = list.indexOf(item);
  if (at >= 0) list.splice(at, 1);
}

/** An internal error: SQLSTATE XX000. */
function workerFailed(what: string, reason: string): SqlError {
  return new SqlError(`the worker that ${what} failed: ${reason}`, 0, SQLSTATE.internal);
}
