import assert from "node:assert/strict";
import { SharedQueue } from "./shared-queue.ts";

function ends() {
  const buffer = SharedQueue.buffer(), { port1, port2 } = new MessageChannel();
  const sender = new SharedQueue(buffer, port1), receiver = new SharedQueue(buffer, port2);
  return { sender, receiver, [Symbol.dispose]: () => (port1.close(), port2.close()) };
}

function bytes(sizeBytes: number, value: number): ArrayBuffer {
  return new Uint8Array(sizeBytes).fill(value).buffer;
}

Deno.test("messages of all sizes come in order, each as it was", () => {
  using queue = ends();
  const { sender, receiver } = queue;
  assert.ok(receiver.isEmpty && receiver.receive() === undefined);
  let sent = 0, received = 0;
  // The ring is passed many times, at different offsets.
  for (let round = 0; round < 200; round++) {
    for (const sizeBytes of [1, 7, 4000 + round, 16_384, 16_385, 3]) {
      assert.ok(sender.send([bytes(sizeBytes, sent++ & 255)]));
    }
    assert.ok(!receiver.isEmpty);
    for (const sizeBytes of [1, 7, 4000 + round, 16_384, 16_385, 3]) {
      assert.deepEqual(receiver.receive(), [bytes(sizeBytes, received++ & 255)]);
    }
    assert.equal(receiver.receive(), undefined);
  }
});

Deno.test("a message of several buffers moves them", () => {
  using queue = ends();
  const { sender, receiver } = queue, buffers = [bytes(8, 1), bytes(100_000, 2)];
  sender.send(buffers);
  assert.deepEqual(buffers.map(({ detached }) => detached), [true, true]);
  assert.deepEqual(receiver.receive(), [bytes(8, 1), bytes(100_000, 2)]);
});

Deno.test("what does not fit waits at the sender, and later messages behind it", () => {
  using queue = ends();
  const { sender, receiver } = queue;
  let sent = 0;
  while (sender.send([bytes(16_000, sent)])) sent++;
  sent++;
  assert.ok(!sender.send([bytes(1, sent++)]), "a small one does not overtake it");
  assert.ok(!sender.send([bytes(50_000, sent++)]));
  assert.ok(!sender.flush());
  const received: number[] = [];
  for (let got = receiver.receive(); got !== undefined; got = receiver.receive()) {
    received.push(new Uint8Array(got[0])[0]);
    if (received.length === 4) assert.ok(sender.flush());
  }
  assert.deepEqual(received, Array.from({ length: sent }, (_, k) => k));
});

Deno.test("a receiver waits for a wake, unless one has come since it looked", async () => {
  using queue = ends();
  const { sender, receiver } = queue;
  const { wakes } = receiver;
  sender.wake();
  await receiver.nextWake(wakes);
  const waiting = receiver.nextWake(receiver.wakes);
  setTimeout(() => sender.wake(), 5);
  const alive = setInterval(() => {}, 1000); // waiting alone does not keep the process alive
  await waiting;
  clearInterval(alive);
});
