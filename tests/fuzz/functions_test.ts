/**
 * Calls each function of the catalogue with extreme values of every argument, alone and nested in itself and others:
 * SUNDIAL_ROUNDS=20 for a nightly run. A failure prints its seed, and SEED=… repeats it.
 */
import assert from "node:assert/strict";
import { shuffledStatements, TABLE } from "./catalogue.ts";
import { randomOf } from "./random.ts";
import { summary, told, Watched } from "./watched.ts";
import { SEED } from "../../src/testing.ts";

/** Statements for each entry at each depth; 0: a quick run. */
const ROUNDS = Number(Deno.env.get("SUNDIAL_ROUNDS") ?? 0);
const ALONGSIDE = Number(Deno.env.get("SUNDIAL_ALONGSIDE") ?? 3);
/** Number of entries in a quick run. */
const QUICK = 400;

Deno.test("no function blocks, fills or ends the server, whatever its arguments", async () => {
  console.log(`  SEED=${SEED}`);
  const statements = shuffledStatements(randomOf(SEED), Math.max(1, ROUNDS));
  if (ROUNDS === 0) statements.length = QUICK;
  const watched = await Watched.start();
  for (const sql of TABLE) await watched.prepare(sql);
  const answered = await watched.runAll(statements, ALONGSIDE);
  console.log(`  ${answered} answered; ${summary(await watched.end())}`);
  assert.equal(watched.findings.length, 0, `SEED=${SEED}\n${told(watched.findings)}`);
});
