import assert from "node:assert/strict";
import { createPackedMemory, type PackedMemory } from "./packed-memory.ts";

const UNIT = 4096;

/** The same numbers in each run. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = state + 0x6d2b79f5 | 0;
    let bits = Math.imul(state ^ state >>> 15, state | 1);
    bits ^= bits + Math.imul(bits ^ bits >>> 7, bits | 61);
    return Math.floor(((bits ^ bits >>> 14) >>> 0) / 2 ** 32 * below);
  };
}

/** Fills the memory, and from then on frees random blocks until the next one fits. Returns the share that is used on average. */
function churn(memory: PackedMemory, sizeOf: (random: (below: number) => number) => number, steps: number): number {
  const random = randomOf(7), live: { address: number; sizeBytes: number; mark: number }[] = [];
  let sum = 0, count = 0;
  for (let step = 1; step <= steps; step++) {
    const sizeBytes = sizeOf(random);
    let address = memory.tryAllocateExact(sizeBytes);
    while (address === undefined) {
      const [victim] = live.splice(random(live.length), 1);
      const words = memory.i32.subarray(victim.address / 4, (victim.address + victim.sizeBytes) / 4);
      assert.deepEqual([words[0], words.at(-1)], [victim.mark, victim.mark], "blocks do not overlap");
      memory.freeExact(victim.address, victim.sizeBytes);
      address = memory.tryAllocateExact(sizeBytes);
    }
    assert.equal(address % UNIT, 0);
    memory.i32.fill(step, address / 4, (address + sizeBytes) / 4);
    live.push({ address, sizeBytes, mark: step });
    const used = live.reduce((sum, block) => sum + UNIT * Math.ceil(block.sizeBytes / UNIT), 0);
    assert.equal(memory.usedBytes(), used);
    if (step > steps / 2) {
      sum += used / memory.sizeBytes();
      count++;
    }
  }
  for (const { address, sizeBytes } of live) memory.freeExact(address, sizeBytes);
  return sum / count;
}

Deno.test("PackedMemory is filled by blocks of chunks' sizes, and blocks do not overlap", () => {
  const memory = createPackedMemory(16 << 20), trades = [59_440, 10_300, 117_184, 134_000, 162_880, 160_000];
  assert.ok(churn(memory, (random) => trades[random(6)], 1500) > 0.9);
  assert.equal(memory.usedBytes(), 0);
  assert.ok(churn(memory, (random) => 4 * (1 + random(60_000)), 1500) > 0.85);
  assert.equal(memory.usedBytes(), 0);
  // Neighbours became one run again.
  const address = memory.tryAllocateExact(memory.sizeBytes())!;
  assert.equal(memory.tryAllocateExact(1), undefined);
  memory.freeExact(address, memory.sizeBytes());
});

Deno.test("PackedMemory asserts that a block is freed once, with its size", () => {
  const memory = createPackedMemory(1 << 20);
  const [first, second] = [3 * UNIT, 2 * UNIT].map((sizeBytes) => memory.tryAllocateExact(sizeBytes)!);
  assert.throws(() => memory.freeExact(first!, UNIT));
  memory.freeExact(first!, 3 * UNIT);
  memory.freeExact(second!, 2 * UNIT);
  assert.throws(() => memory.freeExact(first!, 3 * UNIT));
  assert.throws(() => memory.freeExact(second!, 2 * UNIT), "it is within a free run");
});

/** V8 collects all the time when external memory exceeds its limit, some gigabytes. */
Deno.test("memories are no external memory of the thread that makes them", async () => {
  const script = `
    import { createPackedMemory } from ${JSON.stringify(import.meta.resolve("./packed-memory.ts"))};
    const memories = [1, 2, 3].map(() => createPackedMemory(1 << 30));
    for (let k = 0; k < 3; k++) await new Promise((resolve) => setTimeout(resolve, 10)).then(gc);
    console.log("memories", memories.length);`;
  const path = await Deno.makeTempFile({ suffix: ".ts" });
  try {
    await Deno.writeTextFile(path, script);
    const args = ["run", "-A", "--no-check", "--v8-flags=--expose-gc,--trace-gc-verbose", path];
    const { stdout } = await new Deno.Command(Deno.execPath(), { args }).output();
    const output = new TextDecoder().decode(stdout);
    assert.match(output, /memories 3/);
    const external = [...output.matchAll(/External memory reported: +(\d+) KB/g)].map(([, kib]) => Number(kib));
    // A register may still have the last object. The pool of `node:buffer` takes 8 KiB.
    assert.ok(external.at(-1)! <= (1 << 20) + 8, `${external} KiB`);
  } finally {
    await Deno.remove(path);
  }
});
