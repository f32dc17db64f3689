/**
 * Runs morsels of one query on several workers. The leader opens a section, notifies the other workers through their ports, and takes
 * morsels itself. Idle workers join; the leader waits only for those that have joined. An atomic counter hands out each morsel once.
 */
import { SqlError } from "../errors.ts";
import { SHARED_WORD, type SharedHeap } from "../storage/heap.ts";
import type { ParallelRunner, QueryContext } from "./contract.ts";
import { workAt } from "./long-texts.ts";
import type { CountedMemory } from "./memory.ts";
import type { PostedRequest } from "./packed-sources.ts";
import { type PostedError, postedError, revivedError } from "./posted-error.ts";
import { CANCEL, cancelError, HELPERS_MAX, SLOT, slotWord, STOPPED_BY_ANOTHER } from "./slot.ts";

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

/** The message to a helper: enough to make its own context. */
export interface Invitation {
  request: PostedRequest;
  section: number;
  task: string;
  data: unknown;
  morselCount: number;
}

type HelperResult = { value: unknown; blocks: [number, number][] } | {
  error: PostedError;
};

export class SectionRunner implements ParallelRunner {
  constructor(
    private readonly heap: SharedHeap,
    private readonly request: PostedRequest,
    private readonly helpers: readonly { postMessage(message: unknown): void }[],
    private readonly context: () => QueryContext & { memory: CountedMemory },
  ) {}

  get workerCount(): number {
    return this.helpers.length + 1;
  }

  run(taskName: string, data: unknown, morselCount: number, node?: number): unknown[] {
    const { heap } = this;
    const request = node === undefined ? this.request : inNode(this.request, node);
    const word = (offset: number) => slotWord(request.slot, offset);
    // A unique section number, so that an invitation that is read late has no effect.
    const section = 1 + (Atomics.add(heap.i32, SHARED_WORD.sections, 1) & 0x3fffffff);
    Atomics.store(heap.i32, word(SLOT.nextMorsel), 0);
    Atomics.store(heap.i32, word(SLOT.results), 0);
    Atomics.store(heap.i32, word(SLOT.section), section);
    const invited = this.helpers.slice(0, Math.min(HELPERS_MAX, morselCount - 1));
    for (const helper of invited) {
      helper.postMessage({ request, section, task: taskName, data, morselCount } satisfies Invitation);
    }
    const results: unknown[] = [];
    const failures: unknown[] = [];
    try {
      results.push(participate(heap, request, taskName, data, morselCount, this.context()));
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
    for (let k = 0, count = Atomics.load(heap.i32, word(SLOT.results)); k < count; k++) {
      const result = this.takeResult(k);
      if ("error" in result) {
        failures.push(revivedError(result.error));
        continue;
      }
      results.push(result.value);
      for (const [address, sizeBytes] of result.blocks) {
        try {
          this.context().memory.adopt(address, sizeBytes, taskName);
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

  private takeResult(k: number): HelperResult {
    const at = slotWord(this.request.slot, SLOT.resultList + 2 * k);
    const address = this.heap.u32[at], size = this.heap.u32[at + 1];
    const text = new TextDecoder().decode(this.heap.u8.slice(address, address + size));
    this.heap.free(address, size, "batch");
    return JSON.parse(text);
  }
}

function inNode(request: PostedRequest, node: number): PostedRequest {
  return { ...request, analysis: { ...request.analysis!, node } };
}

function participate(
  heap: SharedHeap,
  { slot, analysis }: PostedRequest,
  task: string,
  data: unknown,
  morselCount: number,
  given: QueryContext,
): unknown {
  const context = analysis?.node === undefined ? given : given.analysis!.contextOf(analysis.node, given);
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

/** The helper's side: joins the section if it is still open, and leaves its result for the leader. */
export function help<Context extends QueryContext & { memory: CountedMemory }>(
  heap: SharedHeap,
  invitation: Invitation,
  contextOf: (request: PostedRequest) => Context,
  release: (context: Context) => void,
): void {
  const { request, section, task, data, morselCount } = invitation;
  const word = (offset: number) => slotWord(request.slot, offset);
  if (Atomics.load(heap.i32, word(SLOT.section)) !== section) return;
  Atomics.add(heap.i32, word(SLOT.helpers), 1);
  let context: Context | undefined;
  try {
    // The leader may have closed the section before it saw this helper.
    const isOpen = Atomics.load(heap.i32, word(SLOT.section)) === section &&
      Atomics.load(heap.i32, word(SLOT.nextMorsel)) < morselCount;
    if (!isOpen) return;
    try {
      context = contextOf(request);
      const value = participate(heap, request, task, data, morselCount, context);
      const blocks = context.memory.handOver();
      try {
        leaveResult(heap, request.slot, { value, blocks });
      } catch (error) {
        for (const [address, sizeBytes] of blocks) heap.free(address, sizeBytes, "query");
        throw error;
      }
    } catch (error) {
      // Set the word before this helper leaves: without its morsels the leader's answer would be wrong.
      Atomics.compareExchange(heap.i32, word(SLOT.cancel), CANCEL.none, CANCEL.helperFailed);
      leaveError(heap, request.slot, error);
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

/** Enters the result into the list only when nothing can fail any more. */
function leaveResult(heap: SharedHeap, slot: number, result: HelperResult): void {
  const bytes = new TextEncoder().encode(JSON.stringify(result));
  const address = heap.allocate(bytes.length, "batch");
  heap.u8.set(bytes, address);
  const at = slotWord(slot, SLOT.resultList + 2 * Atomics.add(heap.i32, slotWord(slot, SLOT.results), 1));
  heap.u32[at] = address;
  heap.u32[at + 1] = bytes.length;
}
