import assert from "node:assert/strict";
import { SqlError } from "../errors.ts";
import type { Statement } from "./statements.ts";
import { ViewFacts, ViewsUnknownError } from "./view-facts.ts";
import type { StoredView } from "./views.ts";

const VIEWS = Array.from({ length: 50 }, (_, k): StoredView => ({ name: `v${k}`, text: "", changedMicros: 0n }));
const COMPILED = {
  rows: { columns: [{ name: "x", type: "LONG" }], timestamp: -1 },
  requires: [],
} as unknown as Statement;

function factsOf(compile: (text: string) => Statement | Promise<Statement>) {
  const state = { version: 1, compiled: 0, facts: undefined as unknown as ViewFacts };
  state.facts = new ViewFacts({
    all: () => VIEWS,
    compile(text) {
      state.compiled++;
      return compile(text);
    },
    version: () => state.version,
  });
  return state;
}

Deno.test("many views are compiled in slices, once after each change of a definition", async () => {
  const state = factsOf(() => {
    for (const until = performance.now() + 1; performance.now() < until;);
    return COMPILED;
  });
  for (const version of [1, 2]) {
    state.version = version;
    state.compiled = 0;
    assert.throws(() => state.facts.all(), ViewsUnknownError);
    assert.ok(state.compiled < 10, `${state.compiled} at once`);
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    await state.facts.complete();
    clearInterval(timer);
    assert.ok(turns >= 5, `${turns} turns of the event loop`);
    assert.deepEqual(state.facts.all().map(({ fact }) => fact.kind), VIEWS.map(() => "compiled"));
    assert.equal(state.compiled, VIEWS.length);
  }
});

Deno.test("a faulty view has its error, and one that takes long is known later", async () => {
  const { promise, resolve } = Promise.withResolvers<Statement>();
  const { facts } = factsOf((text) => {
    if (/\bv1\b/.test(text)) throw new SqlError("no table", 0, "42P01");
    return /\bv2\b/.test(text) ? promise : COMPILED;
  });
  await facts.complete();
  assert.deepEqual(facts.all().slice(0, 3).map(({ fact }) => fact.kind), ["compiled", "faulty", "unknown"]);
  resolve(COMPILED);
  await promise;
  assert.equal(facts.all()[2]!.fact.kind, "compiled");
});
