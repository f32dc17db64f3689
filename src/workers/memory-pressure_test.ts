import assert from "node:assert/strict";
import { MemoryPressure } from "./memory-pressure.ts";

const MIB = 1 << 20;

/** A process with 2 GiB, whose pool fills at once. */
function process(otherMib: number) {
  const state = { otherMib, poolMib: 512, warmMib: 0, releasedMib: 0, collections: 0 };
  const pressure = new MemoryPressure({
    memoryBytes: 2048 * MIB,
    rssBytes: () => (state.otherMib + state.poolMib + state.warmMib) * MIB,
    heap: { warmFreeBytes: () => state.warmMib * MIB },
    pool: {
      stats: () => ({ usedBytes: state.poolMib * MIB, limitBytes: state.poolMib * MIB }) as never,
      setLimit: (bytes) => {
        state.warmMib += Math.max(0, state.poolMib - bytes / MIB);
        state.poolMib = bytes / MIB;
      },
    },
    release: (bytes) => {
      const released = Math.min(state.warmMib, bytes / MIB);
      state.warmMib -= released;
      state.releasedMib += released;
    },
    collect: () => state.collections++,
  });
  const look = (count: number) => Array.from({ length: count }, () => pressure.look());
  return { state, look };
}

Deno.test("MemoryPressure: the pool gives way while an eighth of the memory is not free, and grows again", () => {
  const { state, look } = process(1000);
  look(10);
  assert.equal(state.poolMib, 512);
  state.otherMib = 1500;
  look(10);
  assert.deepEqual(state, { otherMib: 1500, poolMib: 292, warmMib: 0, releasedMib: 220, collections: 1 });
  state.otherMib = 2000;
  look(10);
  assert.equal(state.poolMib, 32);
  assert.equal(state.collections, 2);
  state.otherMib = 1000;
  look(1);
  assert.equal(state.poolMib, 40);
  look(100);
  assert.equal(state.poolMib, 512);
});

Deno.test("MemoryPressure: free pages are returned first", () => {
  const { state, look } = process(1000);
  Object.assign(state, { warmMib: 400 });
  look(10);
  assert.deepEqual(state, { otherMib: 1000, poolMib: 512, warmMib: 280, releasedMib: 120, collections: 1 });
});
