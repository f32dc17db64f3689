/**
 * How main and the writer's thread reach each other: by a queue of commands and one of answers (`shared-queue.ts`). The writer sleeps on a
 * word that others wake, too. Main sleeps in its event loop, and while a command waits for its answer it first waits busily.
 */
import { CatalogueMirror } from "./catalogue.ts";
import { type Envelope, WriterClient, type WriterPort, type WriterStart } from "./client.ts";
import { SHARED_WORD, type SharedHeap } from "./heap.ts";
import { packCommand, unpackAnswer } from "./messages.ts";
import { SharedQueue } from "./shared-queue.ts";

export interface LinkOptions {
  /**
   * Waits busily for the writer until the end of the turn. Resolves to whether it has answered; undefined if waiting is not worth while.
   */
  awaitWriter?: (hasCome: () => boolean) => Promise<boolean> | undefined;
  onDiskFull?: (isFull: boolean) => void;
}

/** How often main looks for answers whose wake it has missed. */
const LOOK_MS = 1_000;

/** Main's side of the writer's thread: sends commands, applies publications and hands answers out. */
export class WriterLink implements WriterPort {
  private readonly commands = SharedQueue.buffer();
  private readonly answers = SharedQueue.buffer();
  private readonly channel = new MessageChannel();
  private readonly outgoing = new SharedQueue(this.commands, this.channel.port1);
  private readonly incoming = new SharedQueue(this.answers, this.channel.port1);
  private isListening = false;
  private readonly lookTimer = setInterval(() => this.take(), LOOK_MS);
  readonly catalogue: CatalogueMirror;
  readonly client: WriterClient;

  constructor(private readonly heap: SharedHeap, private readonly options: LinkOptions) {
    this.catalogue = new CatalogueMirror(heap);
    this.client = new WriterClient(this, this.catalogue, options.onDiskFull);
    Deno.unrefTimer(this.lookTimer as unknown as number);
  }

  start(worker: Worker, settings: Omit<WriterStart, "memory" | "commands" | "answers" | "port">): void {
    const { heap: { memory }, commands, answers, channel: { port2 } } = this;
    worker.postMessage({ ...settings, memory, commands, answers, port: port2 } satisfies WriterStart, [port2]);
  }

  send(envelope: Envelope): void {
    this.outgoing.send(packCommand(envelope));
    this.wake();
    void this.listen();
  }

  private wake(): void {
    const { i32 } = this.heap;
    Atomics.add(i32, SHARED_WORD.writerWake, 1);
    Atomics.notify(i32, SHARED_WORD.writerWake);
  }

  /** Applies publications and hands answers out. */
  take(): void {
    for (let got = this.incoming.receive(); got !== undefined; got = this.incoming.receive()) {
      const { publication, answers } = unpackAnswer(got);
      if (publication !== undefined) this.catalogue.apply(publication);
      if (answers !== undefined) this.client.receive(answers);
    }
    if (!this.outgoing.hasUnsent) return;
    // The writer has taken some commands, so that there is room for others.
    this.outgoing.flush();
    this.wake();
  }

  /** Waits for answers while there are commands without one. */
  private async listen(): Promise<void> {
    if (this.isListening) return;
    this.isListening = true;
    try {
      for (;;) {
        const { incoming } = this, { wakes } = incoming;
        this.take();
        if (!this.client.isWaiting) return;
        // While main looks, the writer does not have to wake it.
        const busily = this.options.awaitWriter?.(() => incoming.wakes !== wakes);
        if (busily === undefined || !await busily) await incoming.nextWake(wakes);
      }
    } finally {
      this.isListening = false;
    }
  }

  close(): void {
    clearInterval(this.lookTimer);
    this.channel.port1.close();
  }
}
