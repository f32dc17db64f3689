/** Entry point of the query workers. Connects the engine with functions, pool and encoders. */
import { createOutput, type Output, type OutputOptions, type Piece } from "../database/output.ts";
import { Analysis } from "../engine/analysis.ts";
import type { AnalysisShape } from "../engine/contract.ts";
import type { Operator, QueryContext } from "../engine/contract.ts";
import { collectWith, type CountedMemory, createOperator, createQueryMemory, workAt } from "../engine/mod.ts";
import { help, type Invitation, SectionRunner } from "../engine/parallel.ts";
import { type PostedRequest, unpackSources } from "../engine/packed-sources.ts";
import { unpackPlan } from "../engine/packed-plan.ts";
import { postedError } from "../engine/posted-error.ts";
import { type FromWorker, type ToWorker } from "../engine/scheduler.ts";
import { CANCEL, cancelError, SLOT, slotLong, slotWord } from "../engine/slot.ts";
import { seededRandom } from "../database/random.ts";
import { createRegistry } from "../sql/functions/mod.ts";
import {
  createPool,
  packAppendBatch,
  type PoolLease,
  SHARED_WORD,
  SharedHeap,
  type SharedPool,
} from "../storage/mod.ts";
import { yieldToOthers } from "./priority.ts";
import { collectGarbage, giveBackAfter, giveBackAll, returnLargeBlocks } from "./rest.ts";
import { analyse, type AnalysisOptions, parseCsv, type ParseOptions as CsvOptions } from "../wire/csv/mod.ts";
import { buffersOf, parseLines, type ParseOptions } from "../wire/line/mod.ts";

/** Maximum number of encoded chunks in transit to the reader. The query waits at this number. */
const CHUNKS_UNDERWAY_MAX = 4;

/** Time that a query waits for its reader before it is parked. */
const READER_PATIENCE_MS = 20;

const functions = createRegistry();
let heap: SharedHeap;
let pool: SharedPool;
/** Ports to the other workers, by worker index. */
const peers = new Map<number, MessagePort>();
/** Parked queries: this worker leads them, and they wait for their readers. */
const parked = new Map<number, Lead>();
/** Resources of the queries that this thread takes part in. */
const open = new Set<Context>();

type Context = QueryContext & { memory: CountedMemory; pool: PoolLease };

const tell = (message: FromWorker, transfer: Transferable[] = []) => self.postMessage(message, transfer);

self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  switch (data.type) {
    case "attach":
      heap = new SharedHeap(data.memory);
      pool = createPool(heap);
      if (data.runsQueries) yieldToOthers();
      returnLargeBlocks();
      collectWith(collectGarbage);
      return tell({ type: "ready" });
    case "peer":
      return addPeer(data.index, data.port);
    case "query":
      return whileBusy(() => begin(data.id, data.request, data.output as OutputOptions));
    case "resume":
      return whileBusy(() => resume(data.id));
    case "rest":
      return void rest(data.isFirst);
    case "task":
      return runTask(data.id, data.name, data.payload);
    case "crash":
      // Thrown outside of any try block, and before the next message resumes the query.
      queueMicrotask(() => {
        throw new Error(`simulated crash: ${data.text}`);
      });
  }
};

// An uncaught error ends this thread. The resources of its queries are in shared memory and must be released.
self.addEventListener("error", abandon);
self.addEventListener("unhandledrejection", abandon);

function abandon(): void {
  for (const context of [...open]) release(context);
}

function whileBusy(action: () => void): void {
  Atomics.add(heap.i32, SHARED_WORD.workersBusy, 1);
  try {
    action();
  } finally {
    Atomics.sub(heap.i32, SHARED_WORD.workersBusy, 1);
  }
}

async function rest(isFirst: boolean): Promise<void> {
  const isWanted = () => open.size > 0;
  if (isWanted()) return;
  collectGarbage();
  if (isFirst) await giveBackAll(heap, isWanted);
}

/** The port of a replacement takes the index of the worker that it replaces. */
function addPeer(index: number, port: MessagePort): void {
  peers.get(index)?.close();
  peers.set(index, port);
  port.onmessage = ({ data }: MessageEvent<Invitation>) => whileBusy(() => help(heap, data, contextOf, release));
}

/** Throws if the query was cancelled or has timed out. */
function pollOf(request: PostedRequest): () => void {
  const word = slotWord(request.slot, SLOT.cancel);
  return () => {
    const reason = Atomics.load(heap.i32, word);
    if (reason !== CANCEL.none) throw cancelError(reason, request.timeoutMs);
  };
}

function analysisOf({ address, nodes, scans }: AnalysisShape): Analysis {
  return new Analysis(heap, address, nodes, scans);
}

/** The caller must call `release`. */
function contextOf(request: PostedRequest): Context {
  const context = {
    heap,
    memory: createQueryMemory(heap, request.memoryLimitBytes, slotWord(request.slot, SLOT.memoryUnits)),
    pool: pool.lease(),
    functions,
    sources: unpackSources(request.sources),
    analysis: request.analysis && analysisOf(request.analysis),
    nowMicros: request.nowMicros,
    random: seededRandom(),
    user: request.user,
    poll: pollOf(request),
    cancelWord: slotWord(request.slot, SLOT.cancel) * Int32Array.BYTES_PER_ELEMENT,
    countRead: (rows: number) => void Atomics.add(heap.i64, slotLong(request.slot, SLOT.rowsRead), BigInt(rows)),
    countToRead: (rows: number) => void Atomics.add(heap.i64, slotLong(request.slot, SLOT.rowsToRead), BigInt(rows)),
  };
  open.add(context);
  return context;
}

function release(context: Context): void {
  if (!open.delete(context)) return;
  try {
    context.pool.release();
  } finally {
    context.memory.release();
  }
  giveBackAfter(heap, context.memory);
}

/** A query that this worker leads. */
interface Lead {
  id: number;
  request: PostedRequest;
  context: Context;
  output: Output;
  operator: Operator;
  /** Part of the last batch that has not been sent. */
  pieces?: Iterator<Piece, undefined>;
}

function begin(id: number, request: PostedRequest, outputOptions: OutputOptions): void {
  let own: Context | undefined;
  try {
    const context = own = contextOf(request);
    const helpers = [...peers.values()].slice(0, Math.max(0, navigator.hardwareConcurrency - 1));
    workAt(context);
    const plan = unpackPlan(request.plan);
    const output = createOutput(outputOptions, plan.columns, heap, context.memory);
    const operator = createOperator(
      plan,
      helpers.length === 0 ? own : { ...own, parallel: new SectionRunner(heap, request, helpers, () => context) },
    );
    advance({ id, request, context, output, operator });
  } catch (error) {
    if (own !== undefined) release(own);
    tell({ type: "failed", id, error: postedError(error) });
  }
}

function resume(id: number): void {
  const lead = parked.get(id);
  if (lead === undefined) throw new Error(`query ${id} is not here`);
  parked.delete(id);
  advance(lead);
}

/**
 * Continues a query and posts chunks at the reader's pace until the query ends or the reader falls behind. The query is then
 * parked, because a slow reader must not occupy a thread.
 */
function advance(lead: Lead): void {
  const { id, context, output, operator } = lead;
  let message: FromWorker;
  workAt(context);
  try {
    try {
      for (;;) {
        context.poll();
        if (!hasRoom(lead)) {
          parked.set(id, lead);
          return tell({ type: "parked", id });
        }
        const piece = lead.pieces?.next().value;
        if (piece !== undefined) {
          send(lead, piece);
          continue;
        }
        if (output.finished) break;
        const batch = operator.next();
        if (batch === undefined) break;
        lead.pieces = output.encode(batch);
      }
    } finally {
      if (!parked.has(id)) operator.close();
    }
    message = { type: "done", id, totalRows: output.totalRows };
  } catch (error) {
    message = { type: "failed", id, error: postedError(error) };
  }
  release(context);
  tell(message);
}

/** Waits briefly for the reader. */
function hasRoom({ request, context }: Lead): boolean {
  const word = slotWord(request.slot, SLOT.chunksUnderway);
  const deadline = performance.now() + READER_PATIENCE_MS;
  for (;;) {
    const underway = Atomics.load(heap.i32, word);
    if (underway < CHUNKS_UNDERWAY_MAX) return true;
    const left = deadline - performance.now();
    if (left <= 0) return false;
    Atomics.wait(heap.i32, word, underway, left);
    context.poll();
  }
}

function send({ id, request }: Lead, { bytes, rows }: Piece): void {
  Atomics.add(heap.i32, slotWord(request.slot, SLOT.chunksUnderway), 1);
  tell({ type: "chunk", id, bytes, rows }, [bytes.buffer as ArrayBuffer]);
}

const TASKS: Record<string, (payload: unknown) => { value: unknown; transfer: Transferable[] }> = {
  lines: (payload) => {
    const { body, options } = payload as { body: Uint8Array; options: ParseOptions };
    const value = parseLines(body, options);
    return { value, transfer: [body.buffer as ArrayBuffer, ...buffersOf(value.tables)] };
  },
  csvAnalysis: (payload) => {
    const { body, options } = payload as { body: Uint8Array; options: AnalysisOptions };
    return { value: { analysis: analyse(body, options), body }, transfer: [body.buffer as ArrayBuffer] };
  },
  csv: (payload) => {
    const { body, from, options } = payload as { body: Uint8Array; from: number; options: CsvOptions };
    const { columns, doneBytes, ...parsed } = parseCsv(body.subarray(from), options);
    const packed = packAppendBatch({ rowCount: parsed.rowCount, columns });
    const value = { ...parsed, packed, doneBytes: doneBytes + from, body };
    return { value, transfer: [body.buffer as ArrayBuffer, packed.buffer as ArrayBuffer] };
  },
};

function runTask(id: number, name: string, payload: unknown): void {
  try {
    const { value, transfer } = TASKS[name](payload);
    tell({ type: "result", id, value }, transfer);
  } catch (error) {
    tell({ type: "failed", id, error: postedError(error) });
  }
}
