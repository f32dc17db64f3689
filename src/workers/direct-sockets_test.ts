import assert from "node:assert/strict";
import { BusyPoll, eventsOfThisThread } from "./busy-poll.ts";
import { directSockets } from "./direct-sockets.ts";
import { libc } from "./libc.ts";

const events = eventsOfThisThread();
const sockets = events && directSockets(new BusyPoll(events, 50));

/** A client, and the server's side of its connection. */
async function connect() {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const [client, accepted] = await Promise.all([Deno.connect({ hostname: "127.0.0.1", port }), listener.accept()]);
  return { client, accepted, server: sockets!.direct(accepted) };
}

/** Not defined where the system is not Linux with glibc, or where Deno does not tell the descriptor. */
const ignore = sockets === undefined;

Deno.test("Deno tells the descriptor of a connection", { ignore: libc() === undefined }, async () => {
  const { client, accepted, server } = await connect();
  assert.notEqual(server, accepted);
  client.close();
  server.close();
});

Deno.test("small answers are taken at once, and read by the client", { ignore }, async () => {
  const { client, server } = await connect();
  assert.equal(server.write(Uint8Array.of(1, 2, 3)), 3);
  const into = new Uint8Array(8);
  assert.equal(await client.read(into), 3);
  assert.deepEqual([...into.subarray(0, 3)], [1, 2, 3]);
  client.close();
  server.close();
});

Deno.test("a request that comes after an answer is received, now or later", { ignore }, async () => {
  const { client, server } = await connect();
  const into = new Uint8Array(8);
  for (let k = 0; k < 20; k++) {
    server.write(Uint8Array.of(k));
    sockets!.onAnswered();
    const reading = server.read(into);
    if (k % 3 === 1) await new Promise((resolve) => setTimeout(resolve, 2));
    await client.write(Uint8Array.of(k, k));
    assert.equal(await reading, 2);
    assert.equal(into[1], k);
  }
  client.close();
  sockets!.onAnswered();
  assert.equal(await server.read(into), null);
  server.close();
});

/** Number of the runtime's reads for requests with pauses between them, for which main waits. */
async function runtimeReads(requests: number): Promise<number> {
  const sockets = directSockets(new BusyPoll(events!, 1_000_000))!;
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  // Another process, because this thread does nothing else while it waits.
  const script = `
    const client = await Deno.connect({ hostname: "127.0.0.1", port: ${port} });
    for (let k = 0; k < ${requests}; k++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      await client.write(Uint8Array.of(k));
    }`;
  const sender = new Deno.Command(Deno.execPath(), { args: ["eval", script] }).spawn();
  const accepted = await listener.accept(), server = sockets.direct(accepted), into = new Uint8Array(8);
  let count = 0;
  const read = accepted.read.bind(accepted);
  accepted.read = (into) => {
    count++;
    return read(into);
  };
  for (let k = 0; k < requests; k++) {
    sockets.onAnswered();
    assert.equal(await server.read(into), 1);
    assert.equal(into[0], k);
  }
  await sender.status;
  server.close();
  return count;
}

Deno.test("the event of a request that was received does not end the wait for the next one", { ignore }, async () => {
  assert.equal(await runtimeReads(3), 0);
});

Deno.test(
  "a client that sends what is not read, and half-closes its connection, ends one wait at most",
  { ignore },
  async () => {
    const { client, server } = await connect();
    await client.write(Uint8Array.of(1, 2, 3));
    await client.closeWrite();
    assert.ok(await runtimeReads(4) <= 1);
    client.close();
    server.close();
  },
);

Deno.test("another client's request ends the wait", { ignore }, async () => {
  const sockets = directSockets(new BusyPoll(events!, 10_000_000))!;
  const first = await connect(), second = await connect();
  const [waiting, other] = [sockets.direct(first.accepted), sockets.direct(second.accepted)], into = new Uint8Array(8);
  const reading = other.read(new Uint8Array(8));
  // Received without the event loop, so that its event stays.
  sockets.onAnswered();
  const received = waiting.read(into);
  await first.client.write(Uint8Array.of(1));
  assert.equal(await received, 1);
  sockets.onAnswered();
  const next = waiting.read(into), before = performance.now();
  await second.client.write(Uint8Array.of(2));
  assert.equal(await reading, 1);
  assert.ok(performance.now() - before < 5_000);
  await first.client.write(Uint8Array.of(3));
  assert.equal(await next, 1);
  for (const { client } of [first, second]) client.close();
  for (const server of [waiting, other]) server.close();
});

Deno.test("an answer waits for a client that does not read", { ignore }, async () => {
  const { client, server } = await connect();
  const piece = new Uint8Array(10_000).map((_, at) => at), count = 2_000;
  let waits = 0, isWritten = false;
  const write = async () => {
    for (let k = 0; k < count; k++) {
      for (let at = 0; at < piece.length;) {
        const writing = server.write(piece.subarray(at));
        if (typeof writing !== "number") waits++;
        at += await writing;
      }
      // The client runs in the same thread.
      if (k % 50 === 49) await new Promise((resolve) => setTimeout(resolve, 0));
    }
    await server.closeWrite();
    isWritten = true;
  };
  const writing = write();
  while (waits === 0 && !isWritten) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.ok(waits > 0);
  const into = new Uint8Array(65_536);
  let size = 0;
  for (let read; (read = await client.read(into)) !== null; size += read) {
    for (let at = 0; at < read; at += 997) assert.equal(into[at], (size + at) % piece.length & 255);
  }
  assert.equal(size, piece.length * count);
  await writing;
  client.close();
  server.close();
});

Deno.test("the bytes of many connections stay in order, in both directions", { ignore }, async () => {
  const rounds = 100;
  const serve = async (k: number) => {
    const { client, server } = await connect();
    const echo = async () => {
      const into = new Uint8Array(512);
      for (let count; (count = await server.read(into)) !== null;) {
        for (let at = 0; at < count;) at += await server.write(into.subarray(at, count));
        if ((count + k) % 3 > 0) sockets!.onAnswered();
      }
      server.close();
    };
    const echoing = echo();
    const into = new Uint8Array(4_096);
    for (let round = 0, sent = 0, received = 0; round < rounds; round++) {
      const request = new Uint8Array(1 + (round * 37 + k * 101) % 2_000).map((_, at) => sent + at);
      await client.write(request);
      sent += request.length;
      while (received < sent) {
        const count = await client.read(into);
        assert.ok(count !== null);
        assert.ok(into.subarray(0, count).every((byte, at) => byte === (received + at & 255)));
        received += count;
      }
    }
    client.close();
    await echoing;
  };
  await Promise.all(Array.from({ length: 12 }, (_, k) => serve(k)));
});

Deno.test("a closed connection does not use its descriptor, which may be another's", { ignore }, async () => {
  const { client, server } = await connect();
  sockets!.onAnswered();
  const reading = assert.rejects(server.read(new Uint8Array(8)));
  server.close();
  const other = await connect();
  await other.client.write(Uint8Array.of(7));
  await reading;
  await assert.rejects(async () => await server.write(Uint8Array.of(1)));
  const into = new Uint8Array(8);
  assert.equal(await other.server.read(into), 1);
  client.close();
  other.client.close();
  other.server.close();
});

Deno.test("writing to a client that has gone fails", { ignore }, async () => {
  const { client, server } = await connect();
  client.close();
  await assert.rejects(async () => {
    for (;;) {
      await server.write(Uint8Array.of(1));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  });
  server.close();
});
