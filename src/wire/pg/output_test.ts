import assert from "node:assert/strict";
import { ConnectionLost } from "./failure.ts";
import { Output } from "./output.ts";

/** A client that takes what is written when it is told to. */
class SlowClient {
  readonly taken: number[] = [];
  private readonly waiting: { bytes: Uint8Array; take: (count: number) => void; fail: (error: Error) => void }[] = [];

  write(bytes: Uint8Array): Promise<number> {
    return new Promise((take, fail) => this.waiting.push({ bytes, take, fail }));
  }

  get isAsked(): boolean {
    return this.waiting.length > 0;
  }

  /** Takes at most this many bytes of the next write. */
  take(countMax = Infinity): void {
    const { bytes, take } = this.waiting.shift()!, count = Math.min(countMax, bytes.length);
    this.taken.push(...bytes.subarray(0, count));
    take(count);
  }

  fail(): void {
    this.waiting.shift()!.fail(new Error("broken pipe"));
  }

  /** The tags of CommandComplete messages that it has. */
  get tags(): string[] {
    const bytes = Uint8Array.from(this.taken), view = new DataView(bytes.buffer), tags: string[] = [];
    for (let at = 0; at < bytes.length; at += 1 + view.getInt32(at + 1)) {
      assert.equal(bytes[at], 0x43);
      tags.push(new TextDecoder().decode(bytes.subarray(at + 5, at + view.getInt32(at + 1))));
    }
    return tags;
  }
}

Deno.test("Output: messages that are added while others are sent follow them", async () => {
  const client = new SlowClient(), output = new Output(client);
  for (let round = 0; round < 3; round++) {
    output.commandComplete(`first ${round}`);
    const sending = output.send(0)!;
    assert.ok(output.isSending && output.sendingSince === 0);
    output.commandComplete(`second ${round}`);
    output.commandComplete("x".repeat(20_000));
    client.take();
    assert.equal(output.sent(await sending), undefined);
    assert.ok(!output.isSending && output.sendingSince === undefined);
    const flushing = output.flush();
    client.take();
    await flushing;
  }
  const long = "x".repeat(20_000);
  assert.deepEqual(client.tags, [0, 1, 2].flatMap((round) => [`first ${round}`, `second ${round}`, long]));
  assert.equal(output.send(0), undefined);
});

Deno.test("Output: a client that takes a part of a write gets the rest", async () => {
  const client = new SlowClient(), output = new Output(client);
  const flushing = [...Array(3).keys()].reduce(async (before, k) => {
    await before;
    output.commandComplete(`tag ${k}`);
    await output.flush();
  }, Promise.resolve());
  let isOver = false;
  flushing.then(() => isOver = true);
  while (!isOver) {
    if (client.isAsked) client.take(4);
    await new Promise((resolve) => setTimeout(resolve));
  }
  assert.deepEqual(client.tags, ["tag 0", "tag 1", "tag 2"]);
});

Deno.test("Output: a write that fails is the loss of the connection", async () => {
  const client = new SlowClient(), output = new Output(client);
  output.commandComplete("tag");
  const flushing = output.flush();
  client.fail();
  await assert.rejects(flushing, ConnectionLost);
});

Deno.test("Output: a notice beside a running statement does not overtake or mix with what follows", async () => {
  const client = new SlowClient(), output = new Output(client);
  output.noticeMeanwhile("half of it");
  output.noticeMeanwhile("most of it");
  output.commandComplete("done");
  const flushing = output.flush();
  const types = () => {
    const bytes = Uint8Array.from(client.taken), view = new DataView(bytes.buffer);
    let found = "";
    for (let at = 0; at < bytes.length; at += 1 + view.getInt32(at + 1)) found += String.fromCharCode(bytes[at]!);
    return found;
  };
  let isOver = false;
  flushing.then(() => isOver = true);
  while (!isOver) {
    if (client.isAsked) client.take(7);
    await new Promise((resolve) => setTimeout(resolve));
  }
  assert.equal(types(), "NNC");
});

Deno.test("Output: texts are UTF-8 without zero bytes", async () => {
  const client = new SlowClient(), output = new Output(client);
  const texts = ["", "a", "a\0b", "ä", "a".repeat(31) + "ä", "€".repeat(40), "a".repeat(33)];
  for (const text of texts) output.commandComplete(text);
  const flushing = output.flush();
  client.take();
  await flushing;
  assert.deepEqual(client.tags, texts.map((text) => text.replaceAll("\0", "")));
});
