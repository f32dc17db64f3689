import assert from "node:assert/strict";
import { serialize } from "node:v8";
import { KnownPlans } from "./plan-names.ts";

const bytes = (plan: unknown) => new Uint8Array(serialize(plan));

Deno.test("KnownPlans keeps the plans that were used last, within its bounds", () => {
  const plans = new KnownPlans(3, 10_000);
  for (let name = 1; name <= 3; name++) plans.add(name, bytes({ name }));
  plans.get(1);
  plans.add(4, bytes({ name: 4 }));
  assert.deepEqual([1, 2, 3, 4].map((name) => plans.get(name)), [{ name: 1 }, undefined, { name: 3 }, { name: 4 }]);
  plans.forget(1);
  assert.equal(plans.size, 2);
});

Deno.test("KnownPlans reads a long plan but does not keep it, and bounds the bytes of all", () => {
  const plans = new KnownPlans(1_000, 10_000);
  const long = { text: "x".repeat(2_000) };
  assert.deepEqual(plans.add(1, bytes(long)), long);
  assert.equal(plans.get(1), undefined);
  for (let name = 2; name < 100; name++) plans.add(name, bytes({ text: "x".repeat(1_000) }));
  assert.ok(plans.size >= 8 && plans.size < 10, `${plans.size} plans`);
});
