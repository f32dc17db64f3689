import assert from "node:assert/strict";
import type { Sender } from "../slow-senders.ts";
import { LineMemory } from "./line-memory.ts";

Deno.test("LineMemory: a request whose client sends nothing is ended while others wait", async () => {
  let nowMs = 0;
  const memory = new LineMemory(1_000, 2, () => nowMs += 1_000);
  const reasons: string[] = [];
  const client: Sender = {
    receivedBytes: 0,
    isAwaited: true,
    tooSlow(reason) {
      reasons.push(reason);
      silent.release();
    },
  };
  const silent = memory.share(client), waiting = memory.share();
  silent.add(900, 10);
  waiting.add(200, 20);
  await waiting.wait(20);
  assert.deepEqual(reasons, ["rows of other requests wait for line.memory.size"]);
  waiting.release();
});

Deno.test("LineMemory: a request whose client waits for the server is not ended", async () => {
  let nowMs = 0;
  const memory = new LineMemory(1_000, 2, () => nowMs += 1_000);
  const served = memory.share({ receivedBytes: 0, isAwaited: false, tooSlow: () => assert.fail() });
  const waiting = memory.share();
  served.add(900, 10);
  waiting.add(200, 20);
  setTimeout(() => served.release(), 50);
  await waiting.wait(20);
  waiting.release();
});
