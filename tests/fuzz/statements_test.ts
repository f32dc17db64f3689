/**
 * Runs mutated statements of the conformance cases: none may be an internal error, hang, or end the server.
 * SUNDIAL_MUTATIONS=100000 for a nightly run. A failure prints its seed, and SEED=… repeats it.
 */
import assert from "node:assert/strict";
import { parseCases } from "../conformance.ts";
import { fromFileUrl } from "../paths.ts";
import { mutated } from "./mutations.ts";
import { randomOf } from "./random.ts";
import { summary, told, Watched } from "./watched.ts";
import { SEED } from "../../src/testing.ts";

const COUNT = Number(Deno.env.get("SUNDIAL_MUTATIONS") ?? 2_500);
const ALONGSIDE = Number(Deno.env.get("SUNDIAL_ALONGSIDE") ?? 4);

Deno.test(`${COUNT} mutated statements`, async () => {
  console.log(`  SEED=${SEED}`);
  const random = randomOf(SEED);
  const folder = fromFileUrl("./conformance/");
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) => name.endsWith(".test")).sort();
  const cases = names.flatMap((name) => parseCases(Deno.readTextFileSync(folder + name)));
  const of = (kinds: string[]) => cases.filter(({ kind }) => kinds.includes(kind)).map(({ sql }) => sql);
  const queries = of(["query"]), all = of(["query", "statement", "error"]);
  const watched = await Watched.start();
  for (const { kind, sql } of cases) {
    if (kind === "statement" && !/^\s*(?:drop|truncate)/i.test(sql)) await watched.server.exec(sql);
  }
  let left = COUNT, answered = 0;
  await Promise.all(Array.from({ length: ALONGSIDE }, async () => {
    while (left-- > 0) {
      // Changes of tables are few, as queries of a table that was dropped say little.
      const sql = mutated(random, random.of(random.below(10) < 9 ? queries : all), random.of(all));
      const { error, status } = await watched.run(sql);
      if (status === 0) break;
      if (error === undefined) answered++;
      // Conversions of columns wait while files are copied, which lasts until this.
      if (/checkpoint/i.test(sql)) await watched.server.exec("checkpoint release");
    }
  }));
  console.log(`  ${answered} answered; ${summary(await watched.end())}`);
  assert.equal(watched.findings.length, 0, `SEED=${SEED}\n${told(watched.findings)}`);
});
