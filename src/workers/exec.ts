/** Entry point of the query workers. Connects the engine with functions, pool and encoders. */
import { receiveMessageOnPort } from "node:worker_threads";
import { joinedBytes } from "../bytes.ts";
import { type LineWork, LineWorker } from "../database/line-work.ts";
import { createOutput, type OutputOptions, type Piece } from "../database/output.ts";
import { Analysis } from "../engine/analysis.ts";
import type { AnalysisShape } from "../engine/contract.ts";
import { collectWith, createOperator, createQueryMemory, QuerySpill, workAt } from "../engine/mod.ts";
import {
  answerError,
  answerResult,
  answerUnknownPlan,
  type Letter,
  LETTER_BYTES,
  readLetter,
  type ReadRequest,
} from "../engine/letter.ts";
import { MAIL, type Mail, Mailboxes } from "../engine/mailbox.ts";
import { help, SectionRunner } from "../engine/parallel.ts";
import { unpackSources } from "../engine/packed-sources.ts";
import { KnownPlans } from "../engine/plan-names.ts";
import { type PostedError, postedError } from "../engine/posted-error.ts";
import { ResultRoom, SMALL_CHUNK_BYTES } from "../engine/result-room.ts";
import type { FromWorker, PostedTask, WorkerStart } from "../engine/worker-messages.ts";
import { CANCEL, cancelError, SLOT, slotLong, slotWord } from "../engine/slot.ts";
import { serve } from "../engine/worker-loop.ts";
import { seededRandom } from "../database/random.ts";
import { createRegistry } from "../sql/functions/mod.ts";
import type { Plan } from "../sql/plan.ts";
import {
  createPool,
  EncodingWorker,
  MergeWorker,
  packAppendBatch,
  PackedMemory,
  realFiles,
  SHARED_WORD,
  SharedHeap,
  type SharedPool,
} from "../storage/mod.ts";
import { cancelWordOf, type Context, KeptQueries, type Lead } from "./kept-queries.ts";
import { yieldToOthers } from "./priority.ts";
import {
  collectAfterSending,
  collectGarbage,
  doChore,
  doUrgentChore,
  releaseAfterQuery,
  releaseWhenIdle,
  returnLargeBlocks,
} from "./memory-release.ts";
import { analyse, type AnalysisOptions, parseCsv, type ParseOptions as CsvOptions } from "../wire/csv/mod.ts";

/** Time that a query waits for its reader before it is parked. */
const READER_PATIENCE_MS = 20;

const functions = createRegistry();
const plans = new KnownPlans();
const kept = new KeptQueries(functions, (source) => ({ ...source, segments: pool.segments(source.segments) }));
const lines = new LineWorker();
let heap: SharedHeap;
let pool: SharedPool;
let room: ResultRoom;
let mailboxes: Mailboxes;
let seat: number;
/** Most workers that may help with a query that this one leads. */
let helperCount: number;
let workerCount: number;
let port: Parameters<typeof receiveMessageOnPort>[0];
/** Parked queries by slot: this worker leads them, and they wait for their readers. */
const parked = new Map<number, Lead>();
/** Resources of the queries that this thread takes part in. */
const open = new Set<Context>();

const postToMain = (message: FromWorker, transfer: Transferable[] = []) => self.postMessage(message, transfer);

self.onmessage = async ({ data }: MessageEvent<WorkerStart>) => {
  heap = new SharedHeap(data.memory);
  room = new ResultRoom(heap);
  pool = createPool(heap, data.further.map((buffer) => new PackedMemory(buffer)));
  mailboxes = Mailboxes.of(data.mailboxes);
  ({ seat, workerCount } = data);
  // The other workers run only short work.
  const runsLong = seat < workerCount;
  helperCount = Math.max(0, Math.min(workerCount, navigator.hardwareConcurrency) - 1);
  port = data.port as unknown as typeof port;
  if (runsLong) yieldToOthers();
  const encoding = new EncodingWorker(heap, seat, () => pool.codecs());
  const merging = new MergeWorker(heap, seat, pool);
  returnLargeBlocks();
  collectWith(collectGarbage);
  postToMain({ type: "ready" });
  await serve(mailboxes, seat, {
    handle,
    help: (onJoin) =>
      runsLong &&
      help(heap, {
        onJoin: () => (onJoin(), countBusy(1)),
        contextOf: helperContext,
        release: (context) => (release(context), doUrgentChore()),
        onLeave: () => countBusy(-1),
      }),
    // A commit waits for merges.
    busyMicros: data.busyMicros,
    chore: () => {
      kept.closeUnused();
      return (runsLong && (merging.step() || encoding.step())) || doChore();
    },
  });
  self.close();
};

function handle({ kind, slot }: Mail): void {
  switch (kind) {
    case MAIL.query:
      return whileBusy(() => begin(slot));
    case MAIL.resume:
      return whileBusy(() => resume(slot));
    case MAIL.task:
      return runTask(receive() as PostedTask);
    case MAIL.releaseMemory:
      kept.close();
      return releaseWhenIdle(heap, seat === 0, () => open.size > 0);
    case MAIL.crash:
      throw new Error(`simulated crash: ${receive()}`);
  }
}

/** The message that main has posted with a mailbox entry. */
function receive(): unknown {
  return receiveMessageOnPort(port)!.message;
}

// An uncaught error ends this thread. The resources of its queries are in shared memory and must be released.
self.addEventListener("error", abandon);
self.addEventListener("unhandledrejection", abandon);

function abandon(): void {
  for (const context of [...open]) release(context);
  kept.close();
}

function countBusy(by: number): void {
  Atomics.add(heap.i32, SHARED_WORD.workersBusy, by);
}

/** Runs a part of a query. `action` returns what sends the end of its answer, which waits until large memory is returned. */
function whileBusy(action: () => (() => void) | void): void {
  countBusy(1);
  try {
    const end = action();
    doUrgentChore();
    end?.();
  } finally {
    countBusy(-1);
  }
}

const helperContext = (request: ReadRequest) => contextOf(request, false);

function analysisOf({ address, nodes, scans }: AnalysisShape): Analysis {
  return new Analysis(heap, address, nodes, scans);
}

/** The caller must call `release`. `leads`: the thread that leads the query, and not one that helps. */
function contextOf(given: ReadRequest, leads: boolean): Context {
  const word = (offset: number) => slotWord(context.request.slot, offset);
  const count = (offset: number, rows: number) =>
    void Atomics.add(heap.i64, slotLong(context.request.slot, offset), BigInt(rows));
  const context: Context = {
    request: given,
    heap,
    leads,
    spill: given.spill && new QuerySpill(heap, realFiles, given.spill, given.slot),
    memory: createQueryMemory(
      heap,
      given.memoryLimitBytes,
      slotWord(given.slot, SLOT.memoryUnits),
      (sizeBytes) => pool.evict(sizeBytes),
    ),
    pool: pool.lease(),
    functions,
    sources: unpackSources(given.sent).map((source) => ({ ...source, segments: pool.segments(source.segments) })),
    analysis: given.analysis && analysisOf(given.analysis),
    nowMicros: given.nowMicros,
    random: seededRandom(),
    user: given.user,
    /** Throws if the query was cancelled or has timed out. */
    poll: () => {
      const reason = Atomics.load(heap.i32, word(SLOT.cancel));
      if (reason !== CANCEL.none) throw cancelError(reason, context.request.timeoutMs);
    },
    cancelWord: cancelWordOf(given),
    rowsToRead: 0,
    countRead: (rows) => count(SLOT.rowsRead, rows),
    countToRead: (rows) => {
      context.rowsToRead += rows;
      count(SLOT.rowsToRead, rows);
    },
  };
  open.add(context);
  return context;
}

function release(context: Context): void {
  if (!open.delete(context)) return;
  try {
    context.pool.release();
  } finally {
    try {
      context.memory.release();
    } finally {
      context.spill?.close(context.leads);
    }
  }
  releaseAfterQuery(heap, context.memory);
}

/** A small part of a result that takes longer is posted. */
const HELD_MS = 20;

function begin(slot: number): (() => void) | void {
  const letter = readLetter(heap, slot);
  const { request, freedPlans } = letter;
  for (const name of freedPlans) {
    plans.forget(name);
    kept.forget(name);
  }
  let own: Context | undefined;
  try {
    const plan = letter.plan ? plans.add(request.planName, letter.plan) : plans.get(request.planName);
    if (plan === undefined) {
      answerUnknownPlan(heap, slot);
      mailboxes.tellMain();
      return;
    }
    const lead = kept.take(plan, letter);
    if (lead !== undefined) {
      open.add(lead.context);
      return advance(lead);
    }
    own = contextOf(request, true);
    return advance(leadOf(plan, letter, own));
  } catch (error) {
    if (own !== undefined) release(own);
    const failure = postedError(error);
    return () => fail(slot, failure);
  }
}

function leadOf(plan: Plan, { request, output: options }: Letter, context: Context): Lead {
  workAt(context);
  const output = createOutput(options as OutputOptions, plan.columns, heap, context.memory);
  const wake = (count: number) => mailboxes.wakeIdle(seat, workerCount, count);
  const sections = helperCount > 0 ? new SectionRunner(heap, request, helperCount, wake, () => context) : undefined;
  // A section's tasks run without further ones.
  const operators = sections === undefined ? context : { ...context, parallel: sections };
  const operator = createOperator(plan, operators);
  const held = { pieces: [], bytes: 0, rows: 0, since: 0 };
  return { plan, context, operators, sections, options: options as OutputOptions, output, operator, held, usedMs: 0 };
}

function resume(slot: number): (() => void) | void {
  const lead = parked.get(slot);
  if (lead === undefined) throw new Error(`no query of slot ${slot} is here`);
  parked.delete(slot);
  return advance(lead);
}

/**
 * Continues a query and posts chunks at the reader's pace until the query ends or the reader falls behind. The query is then
 * parked, because a slow reader must not occupy a thread. Returns what sends the end of the answer.
 */
function advance(lead: Lead): (() => void) | void {
  const { context, output, operator } = lead, { slot } = context.request;
  let failure: PostedError | undefined, isKept = false, totalRows = 0;
  workAt(context);
  try {
    try {
      for (;;) {
        context.poll();
        const allowed = roomFor(lead);
        if (allowed === undefined) {
          postHeld(lead);
          parked.set(slot, lead);
          postToMain({ type: "parked" });
          return;
        }
        const piece = output.next(false, allowed === "short");
        if (piece !== undefined) {
          send(lead, piece);
          continue;
        }
        if (output.finished) break;
        const batch = operator.next();
        if (batch === undefined) break;
        output.begin(batch);
      }
      ({ totalRows } = output);
      isKept = kept.rewind(lead);
    } finally {
      if (!isKept && !parked.has(slot)) operator.close();
    }
  } catch (error) {
    failure = postedError(error);
  }
  const { held } = lead;
  if (isKept) keep(lead);
  else release(context);
  return endOf(slot, failure, held, totalRows);
}

function keep(lead: Lead): void {
  const { context } = lead;
  open.delete(context);
  releaseAfterQuery(heap, context.memory);
  kept.keep(lead);
}

/** A closure of its own refers to nothing else of the query. */
function endOf(slot: number, failure: PostedError | undefined, held: Lead["held"], totalRows: number): () => void {
  return () => {
    if (failure !== undefined) {
      return held === undefined ? postToMain({ type: "failed", error: failure }) : fail(slot, failure);
    }
    if (held === undefined) return postToMain({ type: "done", totalRows });
    answerResult(heap, slot, held.pieces, held.rows, totalRows);
    mailboxes.tellMain();
  };
}

/** Only before anything was posted: messages and answers may overtake each other. */
function fail(slot: number, error: PostedError): void {
  if (answerError(heap, slot, error)) mailboxes.tellMain();
  else postToMain({ type: "failed", error });
}

/** Whether the next piece may be posted, or else a short one. Waits briefly for the reader. */
function roomFor({ context, held, output }: Lead): "whole" | "short" | undefined {
  const { slot } = context.request, word = slotWord(slot, SLOT.chunksUnderway);
  const wholeBytes = output.nextBytes(false);
  if (held !== undefined && wholeBytes <= SMALL_CHUNK_BYTES) return "whole";
  const deadline = performance.now() + READER_PATIENCE_MS;
  for (;;) {
    const underway = Atomics.load(heap.i32, word);
    if (room.isFor(wholeBytes, underway)) return "whole";
    if (underway === 0 && room.isFor(output.nextBytes(true), 0)) return "short";
    const left = deadline - performance.now();
    if (left <= 0) {
      heap.i32[slotWord(slot, SLOT.nextChunkBytes)] = Math.min(output.nextBytes(true), 0x7fffffff);
      return undefined;
    }
    Atomics.wait(heap.i32, word, underway, left);
    context.poll();
  }
}

/** Keeps a small result together: it is answered in shared memory. */
function send(lead: Lead, piece: Piece): void {
  const { held } = lead, now = performance.now();
  if (held === undefined) return post(lead, piece);
  if (held.bytes === 0) held.since = now;
  const canJoin = held.bytes === 0 || lead.output.joinable;
  if (canJoin && held.bytes + piece.bytes.length <= LETTER_BYTES && now - held.since <= HELD_MS) {
    held.pieces.push(piece.bytes);
    held.bytes += piece.bytes.length;
    held.rows += piece.rows;
    return;
  }
  postHeld(lead);
  post(lead, piece);
}

function postHeld(lead: Lead): void {
  const { held } = lead;
  lead.held = undefined;
  if (held !== undefined && held.bytes > 0) post(lead, { bytes: joinedBytes(held.pieces), rows: held.rows });
}

function post({ context }: Lead, { bytes, rows }: Piece): void {
  collectAfterSending(bytes.length);
  Atomics.add(heap.i32, slotWord(context.request.slot, SLOT.chunksUnderway), 1);
  postToMain({ type: "chunk", bytes, rows }, [bytes.buffer as ArrayBuffer]);
}

const TASKS: Record<string, (payload: unknown, body: Uint8Array) => { value: unknown; transfer: Transferable[] }> = {
  lines: (work, body) => lines.run(body, work as LineWork),
  csvAnalysis: (options, body) => {
    return {
      value: { analysis: analyse(body, options as AnalysisOptions), body },
      transfer: [body.buffer as ArrayBuffer],
    };
  },
  csv: (payload, body) => {
    const { from, options } = payload as { from: number; options: CsvOptions };
    const { columns, doneBytes, ...parsed } = parseCsv(body.subarray(from), options);
    const packed = packAppendBatch({ rowCount: parsed.rowCount, columns });
    const value = { ...parsed, packed, doneBytes: doneBytes + from, body };
    return { value, transfer: [body.buffer as ArrayBuffer, packed.buffer as ArrayBuffer] };
  },
};

function runTask({ name, payload, buffer, at, length }: PostedTask): void {
  try {
    const { value, transfer } = TASKS[name]!(payload, new Uint8Array(buffer!, at, length));
    postToMain({ type: "result", value }, transfer);
  } catch (error) {
    postToMain({ type: "failed", error: postedError(error) });
  }
}
