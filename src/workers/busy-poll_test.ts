import assert from "node:assert/strict";
import { BusyPoll, eventsOfThisThread, type ThreadEvents } from "./busy-poll.ts";

/** The clients have sent nothing. */
function eventsOf(any: () => boolean): ThreadEvents {
  return { any, ofClients: () => false, watchClient: () => {} };
}

/** Waits until `isOver`, for at most a second. */
async function until(isOver: () => boolean): Promise<void> {
  for (let ms = 0; !isOver() && ms < 1000; ms++) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.ok(isOver());
}

Deno.test("a turn of the event loop has one look, at its end", async () => {
  let looks = 0;
  const poll = new BusyPoll(eventsOf(() => ++looks > 0), 50);
  for (let answer = 0; answer < 5; answer++) poll.expectRequest();
  assert.ok(poll.countClient());
  assert.equal(looks, 0);
  await until(() => looks > 0);
  assert.equal(looks, 1);
  assert.ok(!poll.countClient());
});

Deno.test("requests and answers that come end the look, and all are told of its end", async () => {
  const poll = new BusyPoll(eventsOf(() => false), 1_000_000);
  let ended = 0, asked = 0;
  poll.expectRequest();
  poll.awaitRequest({ hasCome: () => false, end: () => ended++ });
  poll.awaitRequest({ hasCome: () => ++asked === 3, end: () => ended++ });
  const answer = poll.awaitAnswer(() => asked === 3);
  assert.equal(await answer, true);
  assert.deepEqual([asked, ended], [3, 2]);
});

Deno.test("an answer that does not come is told as such, and the next one is not waited for", async () => {
  const poll = new BusyPoll(eventsOf(() => false), 1);
  assert.equal(await poll.awaitAnswer(() => false), false);
  assert.equal(poll.awaitAnswer(() => true), undefined);
});

Deno.test("a writer whose answers do not come in time does not keep main from waiting for query threads", async () => {
  const poll = new BusyPoll(eventsOf(() => false), 1);
  assert.equal(await poll.awaitWriter(() => false), false);
  assert.equal(poll.awaitWriter(() => true), undefined);
  assert.equal(await poll.awaitAnswer(() => true), true);
});

Deno.test("after some requests in a row, the event loop has a turn without a look", async () => {
  const poll = new BusyPoll(eventsOf(() => false), 1_000_000);
  for (let round = 0; round < 2; round++) {
    for (let k = 0; k < 8; k++) {
      poll.expectRequest();
      assert.ok(poll.countClient() && !poll.needsEvents);
      await new Promise<void>((end) => poll.awaitRequest({ hasCome: () => true, end }));
    }
    poll.expectRequest();
    assert.ok(!poll.countClient() && poll.needsEvents);
    assert.equal(poll.awaitAnswer(() => true), undefined);
    poll.hadEvents();
  }
});

Deno.test("main does not wait for one of many clients, but for any event", async () => {
  let looks = 0;
  const poll = new BusyPoll(eventsOf(() => ++looks > 0), 50), ended: number[] = [];
  poll.expectRequest();
  for (let client = 0; client < 6; client++) {
    if (!poll.countClient()) continue;
    poll.awaitRequest({ hasCome: () => assert.fail("it is not asked"), end: () => ended.push(looks) });
  }
  await until(() => looks > 0);
  assert.deepEqual(ended, [0, 0, 0, 0], "reads begin before the look");
});

Deno.test("a message that has arrived is an event until the event loop takes it", async () => {
  const events = eventsOfThisThread();
  if (events === undefined) return; // not Linux with glibc
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
    while (!events.any());
    assert.equal(events.any(), true);
    assert.equal(await reading, 1);
    assert.equal(into[0], turn);
  }
});
