import assert from "node:assert/strict";
import { LargeStatements } from "./large-statements.ts";

const turn = () => new Promise((resolve) => setTimeout(resolve));

Deno.test("LargeStatements: statements share the bytes in the order of their arrival, and one that is larger is alone", async () => {
  const statements = new LargeStatements(100), begun: number[] = [];
  const take = (sizeBytes: number) =>
    statements.take(sizeBytes).then((release) => {
      begun.push(sizeBytes);
      return release;
    });
  const taken = [60, 40, 500, 10, 20].map(take);
  await turn();
  assert.deepEqual(begun, [60, 40]);
  const first = await taken[0]!;
  first();
  first(); // has no effect
  await turn();
  assert.deepEqual(begun, [60, 40]);
  (await taken[1]!)();
  await turn();
  assert.deepEqual(begun, [60, 40, 500]);
  (await taken[2]!)();
  await turn();
  assert.deepEqual(begun, [60, 40, 500, 10, 20]);
  for (const release of await Promise.all(taken.slice(3))) release();
  (await statements.take(100))();
});

Deno.test("LargeStatements: one that waits for too long is refused, and those behind it go on", async () => {
  const statements = new LargeStatements(100, 20);
  const release = await statements.take(60);
  await assert.rejects(statements.take(80), /large statements of other clients fill query.text.memory.size/);
  const small = await statements.take(40);
  release();
  small();
  (await statements.take(100))();
});
