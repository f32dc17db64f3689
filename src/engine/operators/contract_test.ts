import assert from "node:assert/strict";
import { operatorOf, over, RowsInput, testContext } from "../testing.ts";

Deno.test("operators and their inputs refuse to be used after close", () => {
  const context = testContext();
  const input = new RowsInput([{ name: "n", type: "LONG" }], [[1n], [2n]], context);
  const sort = over({ node: "sort", keys: [{ expression: { kind: "column", index: 0, type: "LONG" } }] }, input);
  const operator = operatorOf({ ...sort, columns: input.columns }, context);
  assert.equal(operator.next()?.rowCount, 2);
  operator.close();
  for (const closed of [operator, input]) {
    assert.throws(() => closed.next(), /a closed operator is not asked for rows/);
    assert.throws(() => closed.close(), /an operator is closed once/);
  }
  assert.equal(input.closed, 1);
});
