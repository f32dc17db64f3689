/**
 * The writer's worker: one loop that sleeps on a word in shared memory, takes all pending commands, executes them in turns (`turns.ts`)
 * and answers each turn. It never returns to the event loop, so nothing but commands reaches it.
 */
import { Mailboxes } from "../engine/mailbox.ts";
import { ConfigError } from "../errors.ts";
import {
  type Answer,
  answer,
  type Answers,
  type Envelope,
  type FromWriter,
  type QueryThreads,
  type WriterStart,
} from "../storage/client.ts";
import { toPlainError } from "../storage/commands.ts";
import { shareKernels } from "../storage/encoding/kernels.ts";
import { SharedEncoders } from "../storage/encoding-jobs.ts";
import { SharedMergers } from "../storage/merge-jobs.ts";
import { packAnswer, unpackCommand } from "../storage/messages.ts";
import { realFiles, withSlowSync } from "../storage/files.ts";
import { SHARED_WORD, SharedHeap } from "../storage/heap.ts";
import { SharedPool } from "../storage/pool.ts";
import type { Publication } from "../storage/publication.ts";
import { SharedQueue } from "../storage/shared-queue.ts";
import { Turns } from "../storage/turns.ts";
import { TableStore } from "../storage/writer.ts";
import { collectIfGrown } from "./memory-release.ts";

/** Housekeeping runs at least this often. */
const IDLE_MS = 1000;
/** The same while other threads work for this one. They wake it when they are done. */
const WAIT_MS = 100;

const post = (message: FromWriter) => self.postMessage(message);

self.onmessage = ({ data }: MessageEvent<WriterStart>) => {
  const { memory, commands, answers, port, syncDelayMs, queryThreads, ...settings } = data;
  const heap = new SharedHeap(memory);
  shareKernels(heap);
  const pool = new SharedPool(heap), publications = new Publications(new SharedQueue(answers, port));
  let store: TableStore;
  try {
    store = new TableStore({
      ...settings,
      heap,
      ...(queryThreads && queryThreads.count > 0 ? helpersOf(heap, queryThreads) : {}),
      isReading: () => Atomics.load(heap.i32, SHARED_WORD.workersBusy) > 0,
      files: syncDelayMs > 0 ? withSlowSync(realFiles, syncDelayMs) : realFiles,
      log: (level, message) => post({ kind: "log", level, message }),
      onDamage: (message) => post({ kind: "damage", message }),
      publish: (publication) => publications.add(publication),
      random: Math.random,
      nowMicros: () => BigInt(Date.now()) * 1000n,
      evict: (sizeBytes) => pool.evict(sizeBytes),
    });
  } catch (error) {
    post({ kind: "failed", error: toPlainError(error), key: error instanceof ConfigError ? error.key : undefined });
    self.close();
    return;
  }
  post({ kind: "ready", report: store.report });
  run(store, publications, heap, new SharedQueue(commands, port));
};

/** How often a full queue is looked at until main has taken messages. */
const FULL_MS = 1;
/** A word that never changes. */
const NEVER = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/** Sends publications: the last one of a turn together with its answers. */
class Publications {
  private isTurn = false;
  private held: Publication | undefined;

  constructor(private readonly queue: SharedQueue) {}

  add(publication: Publication): void {
    if (!this.isTurn) {
      this.send({ publication });
      return post({ kind: "published" });
    }
    if (this.held !== undefined) this.send({ publication: this.held });
    this.held = publication;
  }

  /** `turn` executes commands and returns their answers. */
  answer(turn: () => Answer[]): void {
    this.isTurn = true;
    const answers = turn();
    this.isTurn = false;
    this.send({ publication: this.held, answers });
    this.held = undefined;
    this.queue.wake();
  }

  private send(message: Answers): void {
    if (this.queue.send(packAnswer(message))) return;
    post({ kind: "published" });
    while (!this.queue.flush()) Atomics.wait(NEVER, 0, 0, FULL_MS);
  }
}

function run(store: TableStore, publications: Publications, heap: SharedHeap, commands: SharedQueue): void {
  const turns = new Turns();
  for (;;) {
    const seen = Atomics.load(heap.i32, SHARED_WORD.writerWake);
    for (let got = receive(commands); got !== undefined; got = receive(commands)) {
      if (got.command.kind === "crash") throw new Error(`simulated crash: ${got.command.text}`);
      turns.add(got);
    }
    if (turns.isEmpty) {
      const waitMs = store.isBusy ? 0 : store.isWaiting ? WAIT_MS : IDLE_MS;
      if (Atomics.wait(heap.i32, SHARED_WORD.writerWake, seen, waitMs) === "timed-out") {
        store.maintain(true);
        if (waitMs === IDLE_MS) collectIfGrown();
      }
      continue;
    }
    const envelopes = turns.next();
    publications.answer(() => answer(store, envelopes));
    if (envelopes.some(({ command }) => command.kind === "close")) {
      self.close();
      return;
    }
    store.maintain();
  }
}

function helpersOf(heap: SharedHeap, { mailboxes, count }: QueryThreads) {
  const threads = Mailboxes.of(mailboxes);
  // The writer merges, too: more threads than cores would only wait for each other.
  const mergerCount = Math.max(1, Math.min(count, navigator.hardwareConcurrency - 1));
  return {
    encoders: new SharedEncoders(heap, () => threads.wakeIdle(-1, count, 1) > 0),
    mergers: new SharedMergers(heap, {
      hasIdle: () => threads.hasIdle(count),
      wakeIdle: () => threads.wakeIdle(-1, count, mergerCount) > 0,
    }),
  };
}

function receive(commands: SharedQueue): Envelope | undefined {
  const buffers = commands.receive();
  return buffers && unpackCommand(buffers);
}
