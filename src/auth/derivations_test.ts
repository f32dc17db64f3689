import assert from "node:assert/strict";
import { Derivations, TooManyDerivations } from "./mod.ts";

Deno.test("Derivations limits running and waiting derivations, and refuses the others", async () => {
  const derivations = new Derivations(2, 3);
  const releases: (() => void)[] = [];
  let running = 0, most = 0;
  const work = async () => {
    most = Math.max(most, ++running);
    await new Promise<void>((resolve) => releases.push(resolve));
    running--;
    return "done";
  };
  const accepted = Array.from({ length: 5 }, () => derivations.run(work));
  await assert.rejects(derivations.run(work), TooManyDerivations);
  for (let ended = 0; ended < 5; ended++) {
    while (releases.length === 0) await new Promise((resolve) => setTimeout(resolve, 0));
    releases.shift()!();
  }
  assert.deepEqual(await Promise.all(accepted), Array(5).fill("done"));
  assert.equal(most, 2);
  const failing = derivations.run(() => Promise.reject(new Error("broken")));
  await assert.rejects(failing, /broken/);
  assert.equal(await derivations.run(() => Promise.resolve(1)), 1);
});
