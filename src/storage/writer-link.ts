/**
 * How main and the writer's thread reach each other: by a queue of commands and one of answers (`shared-queue.ts`). The writer sleeps on a
 * word that others wake, too. Main sleeps in its event loop, and while a command waits for its answer it first waits busily.
 */
import { CatalogueMirror } from "./catalogue.ts";
import { type Envelope, WriterClient, type WriterPort, type WriterStart } from "./client.ts";
import type { SharedHeap } from "./heap.ts";
import { wakeWriter } from "./jobs.ts";
import { packCommand, unpackAnswer } from "./messages.ts";
import { SharedQueue } from "./shared-queue.ts";
import { type Awaited, WakeLoop } from "./wake-loop.ts";

export interface LinkOptions {
  /** Waits busily for the writer. */
  awaitWriter?: Awaited["busily"];
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
  private readonly loop: WakeLoop;
  private readonly lookTimer = setInterval(() => this.take(), LOOK_MS);
  readonly catalogue: CatalogueMirror;
  readonly client: WriterClient;

  constructor(private readonly heap: SharedHeap, options: LinkOptions) {
    this.catalogue = new CatalogueMirror(heap);
    this.client = new WriterClient(this, this.catalogue, options.onDiskFull);
    this.loop = new WakeLoop({
      wakes: () => this.incoming.wakes,
      nextWake: (wakes) => this.incoming.nextWake(wakes),
      take: () => {
        this.take();
        return this.client.isWaiting;
      },
      busily: options.awaitWriter,
    });
    Deno.unrefTimer(this.lookTimer as unknown as number);
  }

  start(worker: Worker, settings: Omit<WriterStart, "memory" | "commands" | "answers" | "port">): void {
    const { heap: { memory }, commands, answers, channel: { port2 } } = this;
    worker.postMessage({ ...settings, memory, commands, answers, port: port2 } satisfies WriterStart, [port2]);
  }

  send(envelope: Envelope): void {
    this.outgoing.send(packCommand(envelope));
    wakeWriter(this.heap);
    void this.loop.run();
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
    wakeWriter(this.heap);
  }

  close(): void {
    clearInterval(this.lookTimer);
    this.channel.port1.close();
  }
}
