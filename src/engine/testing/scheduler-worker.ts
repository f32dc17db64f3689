/** A query worker for the scheduler's tests. */
import { receiveMessageOnPort } from "node:worker_threads";
import { SharedHeap } from "../../storage/heap.ts";
import { answerError, answerResult, answerUnknownPlan, readLetter } from "../letter.ts";
import { MAIL, Mailboxes } from "../mailbox.ts";
import { KnownPlans } from "../plan-names.ts";
import { ResultRoom } from "../result-room.ts";
import type { FromWorker, PostedTask, WorkerStart } from "../worker-messages.ts";
import { SLOT, slotWord } from "../slot.ts";
import { serve } from "../worker-loop.ts";

/** What a query does. */
export interface FakePlan {
  /** It posts this many chunks. */
  chunks?: number;
  /** Their size; 1 by default. */
  chunkBytes?: number;
  /** It answers with this text, one row a byte. */
  answer?: string;
  /** It answers with the number of plans that the worker has received, and of those that it knows. */
  tellsPlans?: boolean;
  /** It fails with this message. */
  fails?: string;
  /** It runs until it is cancelled. */
  runs?: boolean;
  /** The worker ends. */
  dies?: "before the answer" | "after the answer";
  /** Main is not woken. */
  tellsNobody?: boolean;
  /** The worker forgets all plans afterwards. */
  forgets?: boolean;
  comment?: string;
}

interface Query {
  left: number;
  rows: number;
  chunkBytes: number;
}

const scope = self as unknown as {
  onmessage: ((event: MessageEvent<WorkerStart>) => void) | null;
  postMessage(message: FromWorker): void;
};

scope.onmessage = async ({ data: { memory, mailboxes: buffer, seat, port, busyMicros } }) => {
  const heap = new SharedHeap(memory), mailboxes = Mailboxes.of(buffer), room = new ResultRoom(heap);
  let plans = new KnownPlans(), received = 0;
  /** By slot: chunks that are left. */
  const parked = new Map<number, Query>();

  const advance = (slot: number, query: Query) => {
    for (; query.left > 0; query.left--) {
      if (Atomics.load(heap.i32, slotWord(slot, SLOT.cancel)) !== 0) {
        const error = { name: "SqlError", message: "stopped", position: 0, sqlState: "57014" };
        return scope.postMessage({ type: "failed", error });
      }
      if (!room.isFor(query.chunkBytes, Atomics.load(heap.i32, slotWord(slot, SLOT.chunksUnderway)))) {
        heap.i32[slotWord(slot, SLOT.nextChunkBytes)] = query.chunkBytes;
        parked.set(slot, query);
        return scope.postMessage({ type: "parked" });
      }
      Atomics.add(heap.i32, slotWord(slot, SLOT.chunksUnderway), 1);
      scope.postMessage({ type: "chunk", bytes: new Uint8Array(query.chunkBytes), rows: 1 });
    }
    scope.postMessage({ type: "done", totalRows: query.rows });
  };

  const answer = (slot: number, { fails, tellsPlans, answer, tellsNobody, dies, forgets }: FakePlan) => {
    if (forgets) plans = new KnownPlans();
    if (dies === "before the answer") throw new Error("out of luck");
    if (fails !== undefined) {
      answerError(heap, slot, { name: "SqlError", message: fails, position: 0, sqlState: "XX000" });
    } else {
      const text = tellsPlans ? JSON.stringify({ received, known: plans.size }) : answer!;
      const bytes = new TextEncoder().encode(text);
      answerResult(heap, slot, [bytes], bytes.length, bytes.length);
    }
    if (!tellsNobody) mailboxes.tellMain();
    if (dies === "after the answer") throw new Error("out of luck");
  };

  const run = (slot: number) => {
    while (Atomics.load(heap.i32, slotWord(slot, SLOT.cancel)) === 0) {
      Atomics.wait(heap.i32, slotWord(slot, SLOT.cancel), 0, 1);
    }
    answer(slot, { fails: "stopped" });
  };

  const begin = (slot: number) => {
    const { request, freedPlans, plan: bytes } = readLetter(heap, slot);
    freedPlans.forEach((name) => plans.forget(name));
    if (bytes !== undefined) received++;
    const plan = (bytes ? plans.add(request.planName, bytes) : plans.get(request.planName)) as FakePlan | undefined;
    if (plan === undefined) {
      answerUnknownPlan(heap, slot);
      return mailboxes.tellMain();
    }
    if (plan.runs) return run(slot);
    if (plan.chunks === undefined) return answer(slot, plan);
    advance(slot, { left: plan.chunks, rows: plan.chunks, chunkBytes: plan.chunkBytes ?? 1 });
  };

  scope.postMessage({ type: "ready" });
  await serve(mailboxes, seat, {
    busyMicros,
    handle({ kind, slot }) {
      if (kind === MAIL.query) begin(slot);
      else if (kind === MAIL.resume) {
        const query = parked.get(slot)!;
        parked.delete(slot);
        advance(slot, query);
      } else if (kind === MAIL.task) {
        const { message } = receiveMessageOnPort(port as unknown as Parameters<typeof receiveMessageOnPort>[0])!;
        scope.postMessage({ type: "result", value: (message as PostedTask).payload });
      } else if (kind === MAIL.crash) throw new Error("out of luck");
    },
    help: () => false,
    chore: () => false,
  });
};
