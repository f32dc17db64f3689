import assert from "node:assert/strict";
import { LogInDelays, networkOf, TooManyWait } from "./log-in-delays.ts";

/** Delays whose waits end when the test ends them. */
function delaysOf(options: { waitingMax?: number } = {}) {
  const clock = { nowMs: 0 };
  const waits: { timeMs: number; end: () => void }[] = [];
  const delays = new LogInDelays({
    nowMs: () => clock.nowMs,
    waitingMax: () => options.waitingMax ?? 64,
    wait: (timeMs) => new Promise((end) => waits.push({ timeMs, end })),
  });
  const guess = (count: number, user = "admin", address = "10.0.0.1") => {
    for (let index = 0; index < count; index++) delays.wrong(user, address, `guess ${index}`);
  };
  /** How long a log-in would wait. */
  const wait = (user = "admin", address = "10.0.0.1") => {
    const before = delays.before(user, address);
    return before instanceof Promise ? waits.at(-1)!.timeMs : before instanceof TooManyWait ? Infinity : 0;
  };
  return { delays, clock, waits, guess, wait };
}

Deno.test("LogInDelays: waits grow with each different wrong password, up to a bound", () => {
  const waited = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1000].map((count) => {
    const { guess, wait } = delaysOf();
    guess(count);
    return wait();
  });
  assert.deepEqual(waited, [0, 0, 0, 250, 500, 1000, 2000, 4000, 5000, 5000, 5000]);
});

Deno.test("LogInDelays: only that user from that address waits, until the right password or until it is forgotten", () => {
  const { delays, clock, guess, wait } = delaysOf();
  guess(5);
  assert.deepEqual([wait(), wait("other"), wait("admin", "10.0.0.2")], [1000, 0, 0]);
  clock.nowMs += 599_000;
  assert.equal(wait(), 1000);
  clock.nowMs += 2_000;
  assert.deepEqual([wait(), delays.size], [0, 0]);
  guess(5);
  delays.right("admin", "10.0.0.1");
  assert.equal(wait(), 0);
});

Deno.test("LogInDelays: repeating one wrong password causes no wait", () => {
  const { delays, wait } = delaysOf();
  for (let count = 0; count < 100; count++) delays.wrong("admin", "10.0.0.1", "old password");
  assert.equal(wait(), 0);
});

Deno.test("LogInDelays: the number of waiting log-ins is limited, for one user and address and in total", async () => {
  const { guess, wait, waits } = delaysOf({ waitingMax: 10 });
  guess(5);
  guess(5, "admin", "10.0.0.2");
  assert.deepEqual(Array.from({ length: 9 }, () => wait()), [...Array(8).fill(1000), Infinity]);
  assert.deepEqual(Array.from({ length: 3 }, () => wait("admin", "10.0.0.2")), [1000, 1000, Infinity]);
  waits[0].end();
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual([wait(), wait()], [1000, Infinity]);
});

Deno.test("LogInDelays: remembers a limited number of addresses", () => {
  const { delays } = delaysOf();
  for (let index = 0; index < 20_000; index++) delays.wrong("", `10.1.${index >> 8}.${index & 255}`, "x");
  assert.equal(delays.size, 10_000);
});

Deno.test("networkOf() is the address, or the first 64 bits of IPv6", () => {
  const cases = [
    ["10.0.0.1", "10.0.0.1"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:db8::1", "2001:db8:0:0"],
    ["::1", "0:0:0:0"],
    ["fe80::1%eth0", "fe80:0:0:0"],
  ];
  for (const [address, network] of cases) assert.equal(networkOf(address), network, address);
});
