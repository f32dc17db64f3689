import assert from "node:assert/strict";
import { BusyPoll, eventsOfThisThread } from "./busy-poll.ts";

/** Which of so many answers were followed by a poll. */
function polled(answers: number, hasEvents: (poll: number) => boolean, micros = 1): number[] {
  const after: number[] = [];
  let answer = 0;
  const busy = new BusyPoll(() => hasEvents(after.length - 1), () => micros, (poll) => {
    after.push(answer);
    poll();
  });
  for (; answer < answers; answer++) busy.answered();
  return after;
}

Deno.test("each answer is followed by a poll while clients send their next requests at once", () => {
  assert.deepEqual(polled(5, () => true), [0, 1, 2, 3, 4]);
});

Deno.test("after polls in vain more and more answers pass, and a request that comes ends that", () => {
  assert.deepEqual(polled(400, () => false), [0, 2, 6, 14, 30, 62, 126, 190, 254, 318, 382]);
  assert.deepEqual(polled(20, (poll) => poll >= 2), [0, 2, ...Array.from({ length: 14 }, (_, k) => 6 + k)]);
});

Deno.test("there is no poll if its time is 0", () => {
  assert.deepEqual(polled(5, () => true, 0), []);
});

Deno.test("a turn of the event loop has one poll", () => {
  let turns = 0;
  const busy = new BusyPoll(() => true, () => 1, () => void turns++);
  for (let answer = 0; answer < 5; answer++) busy.answered();
  assert.equal(turns, 1);
});

Deno.test("a message that has arrived is an event until the event loop takes it", async () => {
  const hasEvents = eventsOfThisThread();
  if (hasEvents === undefined) return; // not Linux with glibc
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const [client, server] = await Promise.all([Deno.connect({ hostname: "127.0.0.1", port }), listener.accept()]);
  using _client = client;
  using _server = server;
  const into = new Uint8Array(8);
  for (let turn = 0; turn < 3; turn++) {
    const reading = server.read(into);
    await client.write(Uint8Array.of(turn));
    // The message is in the system's buffer, and nothing returns to the event loop within this loop.
    while (!hasEvents());
    assert.equal(hasEvents(), true);
    assert.equal(await reading, 1);
    assert.equal(into[0], turn);
  }
});
