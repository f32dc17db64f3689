import assert from "node:assert/strict";
import type { ServerFacts } from "./entry.ts";
import { rndLog } from "./rnd-log.ts";

Deno.test("rnd_log() leaves the thread to others between pieces of its lines", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let written = 0;
  const log = () => {
    if (++written === 2_000) resolve();
  };
  rndLog[0].served!({ log } as unknown as ServerFacts, [2_000n, 0.5], 0);
  assert.ok(written > 0 && written <= 200, `${written} lines at once`);
  await promise;
  assert.equal(written, 2_000);
});
