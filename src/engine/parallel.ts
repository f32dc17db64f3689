/**
 * Runs morsels of one query on several workers. The leader opens a section in the query's slot, wakes idle workers, and takes
 * morsels itself. Workers without work look for open sections and join; the leader waits only for those that have joined. An
 * atomic counter hands out each morsel once.
 */
import { deserialize, serialize } from "node:v8";
import { SqlError } from "../errors.ts";
import { HeapFullError, SHARED_WORD, type SharedHeap } from "../storage/heap.ts";
import type { ParallelRunner, QueryContext } from "./contract.ts";
import { readLetter, type ReadRequest } from "./letter.ts";
import { workAt } from "./long-texts.ts";
import type { CountedMemory } from "./memory.ts";
import { type PostedError, postedError, revivedError } from "./posted-error.ts";
import { CANCEL, cancelError, SLOT, SLOT_COUNT, slotWord, STOPPED_BY_ANOTHER } from "./slot.ts";

/** One participant's part of a task, with its own state, made by `open`. */
export interface Participant {
  run(morsel: number): void;
  /** Returns plain JSON (numbers, texts, lists). The leader takes over blocks that it names. */
  finish(): unknown;
  /** Releases everything that is not part of the result, such as pins. Called once, also after a failure. */
  close?(): void;
}

export type Task = (data: unknown, context: QueryContext) => Participant;

const tasks = new Map<string, Task>();

/** Names a task, so that every worker can open it. Called when a module is loaded. */
export function registerTask(name: string, task: Task): void {
  tasks.set(name, task);
}

export function openTask(name: string, data: unknown, context: QueryContext): Participant {
  const task = tasks.get(name);
  if (!task) throw new Error(`no parallel task ${name}`);
  return task(data, context);
}

/** Runs a task on all workers of the query, or here if it has no others or there is one morsel. */
export function runTask(name: string, data: unknown, morselCount: number, context: QueryContext): unknown[] {
  if (context.parallel !== undefined && morselCount > 1) return context.parallel.run(name, data, morselCount);
  const participant = openTask(name, data, context);
  try {
    for (let morsel = 0; morsel < morselCount; morsel++) participant.run(morsel);
    return [participant.finish()];
  } finally {
    participant.close?.();
  }
}

/** Data for a helper in addition to the query's request. The leader leaves it in shared memory while the section is open. */
interface Invitation {
  task: string;
  data: unknown;
  /** The node for statistics. */
  node?: number;
}

type HelperResult = { value: unknown; blocks: [number, number][] } | {
  error: PostedError;
};

/** The part of a request that sections need. */
export type SectionsOwner = Pick<ReadRequest, "slot" | "timeoutMs">;

export class SectionRunner implements ParallelRunner {
  /** True if other threads have been asked. */
  hasRun = false;

  /** `request`: of the present query. `helperCount`: the most helpers; `wake` wakes this many idle workers. */
  constructor(
    private readonly heap: SharedHeap,
    public request: SectionsOwner,
    private readonly helperCount: number,
    private readonly wake: (count: number) => void,
    private readonly context: () => QueryContext & { memory: CountedMemory },
  ) {}

  get workerCount(): number {
    return this.helperCount + 1;
  }

  run(task: string, data: unknown, morselCount: number, node?: number): unknown[] {
    const { heap, request } = this;
    this.hasRun = true;
    const word = (offset: number) => slotWord(request.slot, offset);
    const helpersMax = Math.min(this.helperCount, morselCount - 1);
    const invitation = helpersMax > 0 ? leaveInvitation(heap, request.slot, { task, data, node }) : undefined;
    Atomics.store(heap.i32, word(SLOT.nextMorsel), 0);
    Atomics.store(heap.i32, word(SLOT.results), 0);
    Atomics.store(heap.i32, word(SLOT.morselCount), morselCount);
    Atomics.store(heap.i32, word(SLOT.helpersMax), helpersMax);
    if (invitation !== undefined) {
      // A unique section number, so that a helper that is late joins nothing else.
      const section = 1 + (Atomics.add(heap.i32, SHARED_WORD.sections, 1) & 0x3fffffff);
      Atomics.store(heap.i32, word(SLOT.section), section);
      this.wake(helpersMax);
    }
    const results: unknown[] = [];
    const failures: unknown[] = [];
    try {
      results.push(participate(heap, request.slot, { task, data, node }, morselCount, this.context()));
    } catch (error) {
      failures.push(error);
      Atomics.compareExchange(heap.i32, word(SLOT.cancel), CANCEL.none, CANCEL.helperFailed);
    }
    Atomics.store(heap.i32, word(SLOT.section), 0);
    for (
      let inside = Atomics.load(heap.i32, word(SLOT.helpers));
      inside > 0;
      inside = Atomics.load(heap.i32, word(SLOT.helpers))
    ) {
      Atomics.wait(heap.i32, word(SLOT.helpers), inside, 100);
    }
    if (invitation !== undefined) heap.free(...invitation, "batch");
    for (const result of this.takeResults()) {
      if ("error" in result) {
        failures.push(revivedError(result.error));
        continue;
      }
      results.push(result.value);
      for (const [address, sizeBytes] of result.blocks) {
        try {
          this.context().memory.adopt(address, sizeBytes, task);
        } catch (error) {
          failures.push(error); // over the limit, but adopted so that it is freed
        }
      }
    }
    // A participant that failed stopped the others through the cancel word, so their errors are not the cause.
    const reason = Atomics.compareExchange(heap.i32, word(SLOT.cancel), CANCEL.helperFailed, CANCEL.none);
    if (failures.length === 0 && reason !== CANCEL.none) failures.push(cancelError(reason, request.timeoutMs));
    if (failures.length > 0) throw failures.find((error) => !isStopped(error)) ?? failures[0];
    return results;
  }

  private takeResults(): HelperResult[] {
    const { heap } = this, results: HelperResult[] = [];
    for (let address = heap.u32[slotWord(this.request.slot, SLOT.results)]; address !== 0;) {
      const [next, sizeBytes] = heap.u32.subarray(address / 4);
      const text = heap.u8.slice(address + RESULT_HEAD_BYTES, address + sizeBytes);
      heap.free(address, sizeBytes, "batch");
      results.push(JSON.parse(new TextDecoder().decode(text)));
      address = next;
    }
    return results;
  }
}

/** Returns undefined if the memory is full: the leader then works alone. */
function leaveInvitation(
  heap: SharedHeap,
  slot: number,
  invitation: Invitation,
): [address: number, sizeBytes: number] | undefined {
  const bytes = serialize(invitation);
  try {
    const address = heap.allocate(bytes.length, "batch");
    heap.u8.set(bytes, address);
    heap.u32[slotWord(slot, SLOT.invitation)] = address;
    heap.u32[slotWord(slot, SLOT.invitationBytes)] = bytes.length;
    return [address, bytes.length];
  } catch (error) {
    if (error instanceof HeapFullError) return undefined;
    throw error;
  }
}

function readInvitation(heap: SharedHeap, slot: number): Invitation {
  const address = heap.u32[slotWord(slot, SLOT.invitation)];
  return deserialize(heap.u8.slice(address, address + heap.u32[slotWord(slot, SLOT.invitationBytes)]));
}

function participate(
  heap: SharedHeap,
  slot: number,
  { task, data, node }: Invitation,
  morselCount: number,
  given: QueryContext,
): unknown {
  const context = node === undefined ? given : given.analysis!.contextOf(node, given);
  workAt(context);
  const participant = openTask(task, data, context);
  try {
    for (
      let morsel = Atomics.add(heap.i32, slotWord(slot, SLOT.nextMorsel), 1);
      morsel < morselCount;
      morsel = Atomics.add(heap.i32, slotWord(slot, SLOT.nextMorsel), 1)
    ) {
      context.poll();
      participant.run(morsel);
    }
    return participant.finish();
  } finally {
    participant.close?.();
  }
}

function isStopped(error: unknown): boolean {
  return error instanceof SqlError && error.message === STOPPED_BY_ANOTHER;
}

/** The slot in which the next helper looks first, so that no query is always served before another one. */
let firstLookedAt = 0;

/** What a helper does around its part of a section. */
export interface HelperDuties<Context> {
  /** Called before it joins. */
  onJoin(): void;
  contextOf(request: ReadRequest): Context;
  release(context: Context): void;
  /** Called after each `onJoin`, also if the section was closed before the helper was in it. */
  onLeave(): void;
}

/** The helper's side: joins an open section and leaves its result for the leader. Returns false if there is none. */
export function help<Context extends QueryContext & { memory: CountedMemory }>(
  heap: SharedHeap,
  duties: HelperDuties<Context>,
): boolean {
  for (let k = 0; k < SLOT_COUNT; k++) {
    const slot = (firstLookedAt + k) % SLOT_COUNT;
    if (!needsHelp(heap, slot)) continue;
    firstLookedAt = slot + 1;
    duties.onJoin();
    try {
      joinSection(heap, slot, duties);
    } finally {
      duties.onLeave();
    }
    return true;
  }
  return false;
}

function needsHelp(heap: SharedHeap, slot: number): boolean {
  const read = (offset: number) => Atomics.load(heap.i32, slotWord(slot, offset));
  return hasMorsels(heap, slot) && read(SLOT.helpers) < read(SLOT.helpersMax);
}

function hasMorsels(heap: SharedHeap, slot: number): boolean {
  const read = (offset: number) => Atomics.load(heap.i32, slotWord(slot, offset));
  return read(SLOT.section) !== 0 && read(SLOT.nextMorsel) < read(SLOT.morselCount) &&
    read(SLOT.cancel) === CANCEL.none;
}

function joinSection<Context extends QueryContext & { memory: CountedMemory }>(
  heap: SharedHeap,
  slot: number,
  { contextOf, release }: Pick<HelperDuties<Context>, "contextOf" | "release">,
): void {
  const word = (offset: number) => slotWord(slot, offset);
  const before = Atomics.add(heap.i32, word(SLOT.helpers), 1);
  let context: Context | undefined;
  try {
    // The leader may have closed the section, and opened another one, before it saw this helper. From here on it waits.
    if (before >= Atomics.load(heap.i32, word(SLOT.helpersMax)) || !hasMorsels(heap, slot)) return;
    try {
      const invitation = readInvitation(heap, slot);
      context = contextOf(readLetter(heap, slot).request);
      const morselCount = Atomics.load(heap.i32, word(SLOT.morselCount));
      const value = participate(heap, slot, invitation, morselCount, context);
      const blocks = context.memory.handOver();
      try {
        leaveResult(heap, slot, { value, blocks });
      } catch (error) {
        for (const [address, sizeBytes] of blocks) heap.free(address, sizeBytes, "query");
        throw error;
      }
    } catch (error) {
      // Set the word before this helper leaves: without its morsels the leader's answer would be wrong.
      Atomics.compareExchange(heap.i32, word(SLOT.cancel), CANCEL.none, CANCEL.helperFailed);
      leaveError(heap, slot, error);
    }
  } finally {
    try {
      if (context !== undefined) release(context);
    } finally {
      Atomics.sub(heap.i32, word(SLOT.helpers), 1);
      Atomics.notify(heap.i32, word(SLOT.helpers));
    }
  }
}

function leaveError(heap: SharedHeap, slot: number, error: unknown): void {
  try {
    leaveResult(heap, slot, { error: postedError(error) });
  } catch {
    // The memory is full. The cancel word has informed the leader.
  }
}

/** A result in shared memory begins with the address of the next one and its own size. */
const RESULT_HEAD_BYTES = 8;

/** Adds the result to the section's list when nothing can fail any more. */
function leaveResult(heap: SharedHeap, slot: number, result: HelperResult): void {
  const text = new TextEncoder().encode(JSON.stringify(result)), sizeBytes = RESULT_HEAD_BYTES + text.length;
  const address = heap.allocate(sizeBytes, "batch");
  heap.u8.set(text, address + RESULT_HEAD_BYTES);
  heap.u32[address / 4 + 1] = sizeBytes;
  const first = slotWord(slot, SLOT.results);
  do heap.u32[address / 4] = Atomics.load(heap.u32, first); while (
    Atomics.compareExchange(heap.u32, first, heap.u32[address / 4], address) !== heap.u32[address / 4]
  );
}
