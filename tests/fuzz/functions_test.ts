/**
 * Calls each function of the catalogue with extreme values of every argument, alone and nested in itself and others:
 * SUNDIAL_ROUNDS=20 for a nightly run. A failure prints its seed, and SEED=… repeats it.
 */
import assert from "node:assert/strict";
import { ENTRIES, statementOf, TABLE } from "./catalogue.ts";
import { randomOf, seedOfRun } from "./random.ts";
import { told, Watched } from "./watched.ts";

/** Statements for each entry at each depth. */
const ROUNDS = Number(Deno.env.get("SUNDIAL_ROUNDS") ?? 0);
const ALONGSIDE = Number(Deno.env.get("SUNDIAL_ALONGSIDE") ?? 3);
/** Number of entries in a quick run. */
const QUICK = 400;

Deno.test("no function blocks, fills or ends the server, whatever its arguments", async () => {
  const seed = seedOfRun();
  console.log(`  SEED=${seed}`);
  const random = randomOf(seed);
  const statements: string[] = [];
  for (let round = 0; round < Math.max(1, ROUNDS); round++) {
    for (const depth of [0, 1, 2]) for (const entry of ENTRIES) statements.push(statementOf(random, entry, depth));
  }
  // Shuffle; a quick run uses the first ones.
  for (let k = statements.length - 1; k > 0; k--) {
    const other = random.below(k + 1);
    [statements[k], statements[other]] = [statements[other], statements[k]];
  }
  if (ROUNDS === 0) statements.length = QUICK;
  const watched = await Watched.start();
  for (const sql of TABLE) await watched.prepare(sql);
  let answered = 0;
  await Promise.all(Array.from({ length: ALONGSIDE }, async () => {
    for (let sql = statements.pop(); sql !== undefined; sql = statements.pop()) {
      const { error, status } = await watched.run(sql);
      if (status === 0) break;
      if (error === undefined) answered++;
    }
  }));
  console.log(`  ${answered} answered; ${await watched.end({ holdsHealth: true })}`);
  assert.equal(watched.findings.length, 0, `SEED=${seed}\n${told(watched.findings)}`);
});
