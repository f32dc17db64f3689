import assert from "node:assert/strict";
import { LargeStatements } from "../large-statements.ts";
import { Input } from "./input.ts";
import { SEED } from "../../testing.ts";

/** The same numbers for the same seed. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

const message = (type: number, body: Uint8Array) => {
  const bytes = new Uint8Array(5 + body.length);
  bytes[0] = type;
  new DataView(bytes.buffer).setUint32(1, 4 + body.length);
  bytes.set(body, 5);
  return bytes;
};

/** Gives the bytes in pieces of random sizes, some of them a turn later. */
function readerOf(bytes: Uint8Array, random: (below: number) => number) {
  let at = 0, pending = 0;
  return {
    async read(into: Uint8Array): Promise<number | null> {
      assert.equal(++pending, 1, "one read at a time");
      if (random(3) === 0) await new Promise((resolve) => setTimeout(resolve));
      pending--;
      if (at === bytes.length) return null;
      const count = Math.min(into.length, bytes.length - at, 1 + random(random(4) === 0 ? 200_000 : 60));
      into.set(bytes.subarray(at, at + count));
      at += count;
      return count;
    },
  };
}

const LARGE_MAX = 700_000;

/** Sends random messages, some of them large, and compares what arrives. */
async function converse(random: (below: number) => number, statements: LargeStatements, title: string): Promise<void> {
  const sent = Array.from({ length: 1 + random(60) }, () => {
    const size = random(20) > 0 ? 40 : random(2) === 0 ? 100_000 : LARGE_MAX - 10;
    const body = new Uint8Array(random(size));
    for (let k = 0; k < body.length; k++) body[k] = random(256);
    return { type: 65 + random(26), body };
  });
  const bytes = new Uint8Array(await new Blob(sent.map(({ type, body }) => message(type, body))).arrayBuffer());
  let ends = 0;
  const capacity = 8_192, first = new Uint8Array(0);
  const input = new Input(readerOf(bytes, random), 1 << 20, () => ends++, capacity, first, statements);
  input.endStartUp(1 << 20);
  const got: { type: number; body: Uint8Array }[] = [];
  for (;;) {
    if (random(2) === 0) {
      if (!await input.fill()) break;
    } else {
      let isOver = false;
      while (!isOver && !input.isReady) isOver = !input.received(await input.read());
      if (isOver) break;
    }
    for (let type = input.next(); type !== undefined; type = input.next()) {
      if (random(3) === 0) {
        input.readAhead();
        // The read may end before the message is used.
        if (random(2) === 0) await new Promise((resolve) => setTimeout(resolve));
      }
      got.push({ type, body: input.body.rest().slice() });
    }
  }
  input.close();
  assert.deepEqual(got, sent, title);
  assert.equal(input.byteCount, bytes.length);
  assert.ok(ends <= 1);
}

Deno.test("Input: messages arrive whole however they are cut, also while a read ahead is pending, and give their room back", async () => {
  const random = randomFrom(SEED);
  for (let round = 0; round < 30; round++) {
    const statements = new LargeStatements(LARGE_MAX, 5_000), title = `SEED=${SEED}, round ${round}`;
    await Promise.all([1, 2, 3].map(() => converse(random, statements, title)));
    (await statements.take(LARGE_MAX))();
  }
});

Deno.test("Input: a large message waits for its room, which is free again when the next message is awaited", async () => {
  const large = message(81, new Uint8Array(400_000).fill(7)), statements = new LargeStatements(500_000, 5_000);
  const pieces = [large.subarray(0, 10), large.subarray(10)];
  let isGone = false;
  const input = new Input(
    {
      async read(into) {
        const piece = pieces.shift();
        if (piece === undefined) return await new Promise<number | null>(() => {});
        into.set(piece.subarray(0, into.length));
        if (piece.length > into.length) pieces.unshift(piece.subarray(into.length));
        return Math.min(piece.length, into.length);
      },
    },
    1 << 20,
    () => isGone = true,
    8_192,
    undefined,
    statements,
  );
  input.endStartUp(1 << 20);
  const other = await statements.take(300_000);
  let isWhole = false;
  const whole = input.fill().then(() => isWhole = true);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(!isWhole && pieces.length === 1);
  other();
  await whole;
  assert.equal(input.next(), 81);
  assert.equal(input.body.rest().length, 400_000);
  let isFree = false;
  const free = statements.take(500_000).then((release) => (isFree = true, release));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(!isFree && !isGone);
  void input.read();
  (await free)();
  input.close();
});

Deno.test("Input: the end of the connection is told while a message takes longer", async () => {
  const body = Uint8Array.of(1, 2, 3), pieces = [message(81, body)];
  let ends = 0;
  const reader = {
    read(into: Uint8Array): Promise<number | null> {
      const piece = pieces.shift();
      if (piece === undefined) return Promise.reject(new Error("reset"));
      into.set(piece);
      return Promise.resolve(piece.length);
    },
  };
  const input = new Input(reader, 100, () => ends++);
  input.endStartUp(100);
  assert.ok(input.received(await input.read()));
  assert.equal(input.next(), 81);
  input.readAhead();
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(ends, 1);
  assert.deepEqual(input.body.rest(), body);
  assert.equal(await input.fill(), false);
});
