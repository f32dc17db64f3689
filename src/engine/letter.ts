/**
 * Requests and small results in shared memory. Each slot has a letter, a block that main allocates at the start and never frees. A
 * request is written into the letter of its slot, or into a block of its own if it is larger. The threads of the query read it
 * there. A result that fits is written over the letter by the worker, after all other threads have left the query.
 *
 * Main owns all of these blocks. It copies a result as soon as it is told of it, whether or not the client is still there, and
 * frees the block of a large request when the query ends in whichever way. So a worker or a client that is gone leaves nothing.
 *
 *     words   where the pages of segments are, see `packed-sources.ts`
 *     text    `Head` as JSON
 *     plan    serialised, if the worker does not know it
 */
import type { SharedHeap } from "../storage/heap.ts";
import { HeapFullError } from "../storage/heap.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { QueryRequest } from "./contract.ts";
import type { PackedSource, PackedSources, SentSources } from "./packed-sources.ts";
import type { PostedError } from "./posted-error.ts";
import { ANSWER, SLOT, SLOT_COUNT, slotLong, slotWord } from "./slot.ts";

/** Larger requests get a block, larger results are posted. */
export const LETTER_BYTES = 32 << 10;

/** A request as the threads of a query read it. */
export type ReadRequest = Omit<QueryRequest, "plan" | "sources"> & {
  /** See `unpackSources`. */
  sent: SentSources;
  /** The plan's number, see `plan-names.ts`. */
  planName: number;
};

/** The part of a request that is the same for all executions of a statement while its tables do not change. The rest is in words of the slot. */
interface Head {
  request: Omit<ReadRequest, "sent" | "nowMicros" | "slot" | "planName"> & { sources: PackedSource[] };
  output: unknown;
  /** Plans whose statements are gone. */
  freedPlans: number[];
}

/** Data for the leader in addition to the request. */
export interface Letter {
  request: ReadRequest;
  output: unknown;
  freedPlans: number[];
  /** The serialised plan, if it was sent. */
  plan?: Uint8Array<ArrayBuffer>;
}

const encoder = new TextEncoder(), decoder = new TextDecoder();
const TEXTS_MAX = 64;

/** Main's side. */
export class Letters {
  private readonly letters: number[];
  /** Blocks of large requests, by slot: address and size. */
  private readonly blocks: ([address: number, sizeBytes: number] | undefined)[] = [];
  /** The last texts of heads, by plan. */
  private readonly texts: ({ text: string; bytes: Uint8Array } | undefined)[] = new Array(TEXTS_MAX);

  constructor(private readonly heap: SharedHeap) {
    this.letters = Array.from({ length: SLOT_COUNT }, () => heap.allocate(LETTER_BYTES, "batch"));
  }

  /**
   * Writes a request into its slot, where another version of it may be.
   * @throws {SqlError} if the shared memory is full.
   */
  write({ slot, timeoutMs, memoryLimitBytes, spill, user, analysis, nowMicros }: QueryRequest, parts: {
    sources: PackedSources;
    planName: number;
    plan?: Uint8Array;
    output: unknown;
    freedPlans: number[];
  }): void {
    const { heap } = this, { sources, planName, plan, output, freedPlans } = parts;
    const request = { timeoutMs, memoryLimitBytes, spill, user, analysis, sources: sources.sources };
    const head: Head = { request, output, freedPlans };
    const text = this.encoded(planName, JSON.stringify(head));
    const { wordBytes } = sources, planBytes = plan?.length ?? 0;
    const address = this.reserve(slot, wordBytes + text.length + planBytes);
    sources.write(heap, address);
    heap.u8.set(text, address + wordBytes);
    if (plan !== undefined) heap.u8.set(plan, address + wordBytes + text.length);
    const word = (offset: number) => slotWord(slot, offset);
    heap.u32[word(SLOT.request)] = address;
    heap.u32[word(SLOT.requestWords)] = wordBytes;
    heap.u32[word(SLOT.requestText)] = text.length;
    heap.u32[word(SLOT.requestPlan)] = planBytes;
    heap.u32[word(SLOT.letter)] = this.letters[slot];
    heap.u32[word(SLOT.planName)] = planName;
    heap.i64[slotLong(slot, SLOT.nowMicros)] = nowMicros;
    Atomics.store(heap.i32, word(SLOT.answer), ANSWER.none);
  }

  /** Requests of a plan mostly have the same text. Encoding it takes longer than comparing it. */
  private encoded(planName: number, text: string): Uint8Array {
    const known = this.texts[planName % TEXTS_MAX];
    if (known?.text === text) return known.bytes;
    const bytes = encoder.encode(text);
    if (text.length <= HEAD_LENGTH_MAX) this.texts[planName % TEXTS_MAX] = { text, bytes };
    return bytes;
  }

  private reserve(slot: number, sizeBytes: number): number {
    this.free(slot);
    if (sizeBytes <= LETTER_BYTES) return this.letters[slot];
    try {
      const address = this.heap.allocate(sizeBytes, "batch");
      this.blocks[slot] = [address, sizeBytes];
      return address;
    } catch (error) {
      if (error instanceof HeapFullError) throw memoryFull(error);
      throw error;
    }
  }

  /** The query has ended. */
  free(slot: number): void {
    const block = this.blocks[slot];
    if (block === undefined) return;
    this.blocks[slot] = undefined;
    this.heap.free(...block, "batch");
  }

  /** Copies the worker's answer. */
  readAnswer(slot: number): Uint8Array<ArrayBuffer> {
    const at = this.letters[slot];
    return copied(this.heap, at, this.heap.u32[slotWord(slot, SLOT.answerBytes)]);
  }

  readError(slot: number): PostedError {
    return JSON.parse(decoder.decode(this.readAnswer(slot)));
  }
}

/** SQLSTATE 53200. */
function memoryFull({ message }: HeapFullError): SqlError {
  return new SqlError(
    `the request cannot be sent: the server's shared memory is full (${message})`,
    0,
    SQLSTATE.outOfMemory,
  );
}

/** For the leader. */
export function readLetter(heap: SharedHeap, slot: number): Letter {
  const word = (offset: number) => heap.u32[slotWord(slot, offset)];
  const wordsAt = word(SLOT.request), textAt = wordsAt + word(SLOT.requestWords), textBytes = word(SLOT.requestText);
  const planName = word(SLOT.planName);
  const { request: { sources, ...request }, output, freedPlans } = headOf(
    planName,
    decoder.decode(copied(heap, textAt, textBytes)),
  );
  const planBytes = word(SLOT.requestPlan);
  return {
    request: {
      ...request,
      planName,
      slot,
      sent: { sources, words: heap.f64.slice(wordsAt / 8, textAt / 8) },
      nowMicros: heap.i64[slotLong(slot, SLOT.nowMicros)],
    },
    output,
    freedPlans,
    plan: planBytes > 0 ? copied(heap, textAt + textBytes, planBytes) : undefined,
  };
}

const HEADS_MAX = 256;
/** Longer heads are not cached. */
const HEAD_LENGTH_MAX = 4_096;
/** The last head of each plan, the most recently used one last. */
const heads = new Map<number, { text: string; head: Head }>();

function headOf(planName: number, text: string): Head {
  if (text.length > HEAD_LENGTH_MAX) return JSON.parse(text);
  let known = heads.get(planName);
  if (known?.text !== text) known = { text, head: JSON.parse(text) };
  heads.delete(planName);
  heads.set(planName, known);
  if (heads.size > HEADS_MAX) heads.delete(heads.keys().next().value!);
  return known.head;
}

/** The leader's answer: pieces of at most LETTER_BYTES in all. Call `Mailboxes.tellMain` afterwards. */
export function answerResult(
  heap: SharedHeap,
  slot: number,
  pieces: readonly Uint8Array[],
  rows: number,
  totalRows: number,
): void {
  const at = heap.u32[slotWord(slot, SLOT.letter)];
  let sizeBytes = 0;
  for (const piece of pieces) {
    heap.u8.set(piece, at + sizeBytes);
    sizeBytes += piece.length;
  }
  heap.u32[slotWord(slot, SLOT.answerBytes)] = sizeBytes;
  heap.u32[slotWord(slot, SLOT.answerRows)] = rows;
  heap.i64[slotLong(slot, SLOT.totalRows)] = BigInt(totalRows);
  Atomics.store(heap.i32, slotWord(slot, SLOT.answer), ANSWER.result);
}

/** Returns false if the error does not fit. */
export function answerError(heap: SharedHeap, slot: number, error: PostedError): boolean {
  const bytes = encoder.encode(JSON.stringify(error));
  if (bytes.length > LETTER_BYTES) return false;
  heap.u8.set(bytes, heap.u32[slotWord(slot, SLOT.letter)]);
  heap.u32[slotWord(slot, SLOT.answerBytes)] = bytes.length;
  Atomics.store(heap.i32, slotWord(slot, SLOT.answer), ANSWER.failed);
  return true;
}

export function answerUnknownPlan(heap: SharedHeap, slot: number): void {
  Atomics.store(heap.i32, slotWord(slot, SLOT.answer), ANSWER.unknownPlan);
}

/** Decoders and sockets take no views of shared memory. */
function copied(heap: SharedHeap, address: number, sizeBytes: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(sizeBytes);
  bytes.set(heap.u8.subarray(address, address + sizeBytes));
  return bytes;
}
