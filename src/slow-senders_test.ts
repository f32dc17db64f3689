import assert from "node:assert/strict";
import { type Sender, SlowSenders } from "./slow-senders.ts";

function sender(
  bytesASecond: number,
  isAwaited = true,
): Sender & { receivedBytes: number; second(): void; ended: string[] } {
  return {
    receivedBytes: 0,
    isAwaited,
    ended: [],
    tooSlow(reason) {
      this.ended.push(reason);
    },
    second() {
      this.receivedBytes += bytesASecond;
    },
  };
}

Deno.test("SlowSenders: those that pause for five seconds while others wait are ended, once", () => {
  let nowMs = 1_000_000;
  const senders = new SlowSenders("others wait", () => nowMs);
  const silent = sender(0),
    slow = sender(600_000),
    fast = sender(1_100_000),
    served = sender(0, false),
    gone = sender(0);
  const all = [silent, slow, fast, served, gone];
  for (const one of all) senders.add(one);
  senders.delete(gone);
  const seconds = (count: number) => {
    for (; count > 0; count--) {
      nowMs += 1_000;
      for (const one of all) one.second();
      senders.look();
    }
  };
  const ended = () => all.map((one) => one.ended.length);
  seconds(6);
  assert.deepEqual(ended(), [0, 0, 0, 0, 0]);
  // Nobody waits for an hour.
  nowMs += 3_600_000;
  seconds(1);
  assert.deepEqual(ended(), [0, 0, 0, 0, 0]);
  seconds(1);
  assert.deepEqual(silent.ended, ["others wait"]);
  seconds(60);
  assert.deepEqual(ended(), [1, 1, 0, 0, 0]);
});
