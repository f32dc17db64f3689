/** The entry of the workers that run queries: it wires the engine to functions, pool and encoders, and nothing else. */
import { createOutput, type OutputOptions } from "../database/output.ts";
import type { QueryContext } from "../engine/contract.ts";
import { type CountedMemory, createOperator, createQueryMemory } from "../engine/mod.ts";
import { help, type Invitation, SectionRunner } from "../engine/parallel.ts";
import { type PostedRequest, unpackSources } from "../engine/packed-sources.ts";
import { type FromWorker, postedError, type ToWorker } from "../engine/scheduler.ts";
import { CANCEL, cancelError, SLOT, slotWord } from "../engine/slot.ts";
import { seededRandom } from "../database/execution.ts";
import { createRegistry } from "../sql/functions/mod.ts";
import { createPool, SHARED_WORD, SharedHeap, type SharedPool } from "../storage/mod.ts";
import { type LinePrecision, type LineTable, parseLines } from "../wire/line/mod.ts";

/** Encoded chunks that may be on their way to the reader before the query waits. */
const CHUNKS_UNDERWAY_MAX = 4;

const functions = createRegistry();
let heap: SharedHeap;
let pool: SharedPool;
let peers: MessagePort[] = [];

const tell = (message: FromWorker, transfer: Transferable[] = []) => self.postMessage(message, transfer);

self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  switch (data.type) {
    case "attach":
      heap = new SharedHeap(data.memory);
      pool = createPool(heap);
      return;
    case "peer":
      return addPeer(data.port);
    case "query":
      return lead(data.id, data.request, data.output as OutputOptions);
    case "task":
      return runTask(data.id, data.name, data.payload);
  }
};

function addPeer(port: MessagePort): void {
  peers.push(port);
  port.onmessage = ({ data }: MessageEvent<Invitation>) => {
    Atomics.add(heap.i32, SHARED_WORD.workersBusy, 1);
    try {
      help(heap, data, contextOf);
    } finally {
      Atomics.sub(heap.i32, SHARED_WORD.workersBusy, 1);
    }
  };
  // A worker that was replaced closes its ports.
  port.addEventListener("close", () => peers = peers.filter((peer) => peer !== port));
}

/** Throws when the query was cancelled or has run out of time. */
function pollOf(request: PostedRequest): () => void {
  const word = slotWord(request.slot, SLOT.cancel);
  return () => {
    const reason = Atomics.load(heap.i32, word);
    if (reason !== CANCEL.none) throw cancelError(reason, request.timeoutMs);
  };
}

function contextOf(request: PostedRequest): QueryContext & { memory: CountedMemory } {
  return {
    heap,
    memory: createQueryMemory(heap, request.memoryLimitBytes, slotWord(request.slot, SLOT.memoryUnits)),
    pool,
    functions,
    sources: unpackSources(request.sources),
    nowMicros: request.nowMicros,
    random: seededRandom(),
    user: request.user,
    poll: pollOf(request),
    cancelWord: slotWord(request.slot, SLOT.cancel) * Int32Array.BYTES_PER_ELEMENT,
  };
}

/** Runs a query to its end, posting chunks as fast as their reader takes them. */
function lead(id: number, request: PostedRequest, outputOptions: OutputOptions): void {
  Atomics.add(heap.i32, SHARED_WORD.workersBusy, 1);
  const own = contextOf(request);
  const helpers = peers.slice(0, Math.max(0, navigator.hardwareConcurrency - 1));
  const context: QueryContext = helpers.length === 0
    ? own
    : { ...own, parallel: new SectionRunner(heap, request, helpers, () => own) };
  try {
    const output = createOutput(outputOptions, request.plan.columns, heap);
    const operator = createOperator(request.plan, context);
    try {
      for (let batch = operator.next(); batch; batch = operator.next()) {
        const chunk = output.encode(batch);
        if (chunk) send(id, request, chunk, context.poll);
        if (output.finished) break;
        context.poll();
      }
    } finally {
      operator.close();
    }
    tell({ type: "done", id, totalRows: output.totalRows });
  } catch (error) {
    tell({ type: "failed", id, error: postedError(error) });
  } finally {
    own.memory.release();
    Atomics.sub(heap.i32, SHARED_WORD.workersBusy, 1);
  }
}

function send(
  id: number,
  request: PostedRequest,
  { bytes, rows }: { bytes: Uint8Array; rows: number },
  poll: () => void,
): void {
  const word = slotWord(request.slot, SLOT.chunksUnderway);
  for (
    let underway = Atomics.load(heap.i32, word);
    underway >= CHUNKS_UNDERWAY_MAX;
    underway = Atomics.load(heap.i32, word)
  ) {
    Atomics.wait(heap.i32, word, underway, 100);
    poll();
  }
  Atomics.add(heap.i32, word, 1);
  tell({ type: "chunk", id, bytes, rows }, [bytes.buffer as ArrayBuffer]);
}

const TASKS: Record<string, (payload: unknown) => { value: unknown; transfer: Transferable[] }> = {
  lines: (payload) => {
    const { body, precision, nowMicros } = payload as { body: Uint8Array; precision: LinePrecision; nowMicros: bigint };
    const value = parseLines(body, precision, nowMicros);
    return { value, transfer: [...new Set(value.tables.flatMap(buffersOf))] };
  },
};

function buffersOf(table: LineTable): ArrayBuffer[] {
  const arrays = [
    table.times,
    table.timeNanos,
    table.timed,
    table.lines,
    ...table.columns.flatMap((
      column,
    ) => [column.kinds, column.slots, column.codes, column.heap, column.symbols, column.symbolHeap]),
  ];
  return arrays.filter((array) => array !== undefined).map((array) => array.buffer as ArrayBuffer);
}

function runTask(id: number, name: string, payload: unknown): void {
  try {
    const { value, transfer } = TASKS[name](payload);
    tell({ type: "result", id, value }, transfer);
  } catch (error) {
    tell({ type: "failed", id, error: postedError(error) });
  }
}
