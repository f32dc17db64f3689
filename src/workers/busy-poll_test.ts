import assert from "node:assert/strict";
import { busyPoll, eventsOfThisThread } from "./busy-poll.ts";

Deno.test("a turn of the event loop has one poll", async () => {
  let polls = 0;
  const expect = busyPoll(() => ++polls > 0, 50);
  for (let answer = 0; answer < 5; answer++) expect();
  assert.equal(polls, 0);
  await new Promise((resolve) => setTimeout(resolve, 0));
  while (polls === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(polls, 1);
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
