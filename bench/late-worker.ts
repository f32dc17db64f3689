/** A query thread of `bench/late.ts`, which does nothing but the writer's work. */
import { Mailboxes } from "../src/engine/mailbox.ts";
import { serve } from "../src/engine/worker-loop.ts";
import { createPool, EncodingWorker, MergeWorker, SharedHeap } from "../src/storage/mod.ts";
import { yieldToOthers } from "../src/workers/priority.ts";

self.onmessage = async ({ data: { memory, mailboxes, seat } }) => {
  yieldToOthers();
  const heap = new SharedHeap(memory), pool = createPool(heap);
  const merging = new MergeWorker(heap, seat, pool), encoding = new EncodingWorker(heap, seat, () => pool.codecs());
  self.postMessage("ready");
  await serve(Mailboxes.of(mailboxes), seat, {
    handle() {},
    help: () => false,
    chore: () => merging.step() || encoding.step(),
  });
  self.close();
};
