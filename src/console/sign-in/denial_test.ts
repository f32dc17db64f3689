import assert from "node:assert/strict";
import { denialOf, giversOf, grantFor } from "./denial.ts";

const cases = [
  { message: "Access denied for bob [HTTP]", grant: "GRANT HTTP TO bob;" },
  { message: "Access denied for bob [INSERT on t]", grant: "GRANT INSERT ON t TO bob;" },
  { message: "Access denied for bob [UPDATE on t(price)]", grant: "GRANT UPDATE ON t(price) TO bob;" },
  { message: "Access denied for bob [SELECT on my trades]", grant: 'GRANT SELECT ON "my trades" TO bob;' },
  { message: "Access denied for b o [DROP TABLE on t]", grant: 'GRANT DROP TABLE ON t TO "b o";' },
];
for (const { message, grant } of cases) {
  Deno.test(`denialOf() reads: ${message}`, () => assert.equal(grantFor(denialOf(message)!, false), grant));
}

Deno.test("denialOf() ignores other errors", () => {
  assert.equal(denialOf("no table t"), undefined);
});

Deno.test("giversOf() names the permission and its object", () => {
  assert.match(
    giversOf(denialOf("Access denied for bob [INSERT on t]")!),
    /administrator.*INSERT on t with the grant option/,
  );
});
