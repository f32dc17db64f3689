import assert from "node:assert/strict";
import { readSchema } from "./import-schema.ts";

const ofType = (type: string) => readSchema(JSON.stringify([{ name: "a", type }]));

for (
  const [type, tag] of [
    ["double precision", "DOUBLE"],
    [" DECIMAL ( 10 , 2 ) ", "DECIMAL(10,2)"],
    ["Decimal", "DECIMAL(18,3)"],
    ["geohash(4b)", "GEOHASH(4b)"],
    ["double[][]", "DOUBLE[][]"],
  ]
) {
  Deno.test(`readSchema() reads the type '${type}'`, () => {
    assert.deepEqual(ofType(type!), [{ name: "a", type: tag, pattern: undefined, index: false }]);
  });
}

for (const type of ["INT[]", "DOUBLE(1)[]", `DOUBLE${"[]".repeat(33)}`]) {
  Deno.test(`readSchema() refuses the type '${type}'`, () => {
    assert.equal(ofType(type), `unknown type '${type}' of column a`);
  });
}

Deno.test("readSchema() refuses a type with very many spaces", () => {
  // With more than one way to match a space, this would take years.
  const spaces = " ".repeat(100_000);
  assert.equal(ofType(`a${spaces}!`), `unknown type 'a${spaces}!' of column a`);
});
