import assert from "node:assert/strict";
import type { SortKey } from "../../sql/plan.ts";
import { ColumnStore, valueAt, Workspace } from "../columns.ts";
import { sortedRows } from "../order.ts";
import { col, randomFrom, type Row, RowsInput, spillOf, testContext } from "../testing.ts";
import { SortedRuns } from "./sorted-runs.ts";

const COLUMNS = ["LONG", "DOUBLE", "VARCHAR", "SYMBOL", "INT", "BYTE"].map((type, c) => ({ name: `c${c}`, type }));

function randomRows(random: () => number, rowCount: number): Row[] {
  const orNull = <T>(value: T) => random() % 10 === 0 ? null : value;
  return Array.from({ length: rowCount }, (_, row): Row => [
    orNull(BigInt(random() % 50)),
    orNull([0, -0, 1.5, -2.25, random()][random() % 5]),
    orNull("text ".repeat(random() % 3) + random() % 100),
    orNull(`symbol ${random() % 700}`),
    row,
    random() % 256 - 128,
  ]);
}

Deno.test("merged runs are in the order of a stable sort of all rows", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = randomFrom(seed), rowCount = random() % 5_000;
    const rows = randomRows(random, rowCount);
    const context = testContext(1 << 26);
    Object.assign(context, { spill: spillOf(context.heap) });
    context.memory.limitBytes = (1 << 20) << random() % 6;
    const keys = Array.from({ length: 1 + random() % 4 }, (): SortKey => {
      const index = random() % COLUMNS.length, nulls = [undefined, "first", "last"] as const;
      return {
        expression: col(index, COLUMNS[index].type),
        descending: random() % 2 === 1,
        nulls: nulls[random() % 3],
      } as SortKey;
    });
    // Rows that are in order already, so that runs follow one another.
    if (seed % 5 === 0) keys.splice(0, keys.length, { expression: col(4, "INT"), descending: false } as SortKey);
    const runs = new SortedRuns(COLUMNS, keys, context, "sort"), space = Workspace.of(context, "test");
    const part = new ColumnStore(COLUMNS.map(({ type }) => type), space);
    const all = new ColumnStore(COLUMNS.map(({ type }) => type), space);
    const input = new RowsInput(COLUMNS, rows, context, 20 + random() % 500);
    for (let batch = input.next(); batch !== undefined; batch = input.next()) {
      part.append(batch.columns, batch.rowCount);
      all.append(batch.columns, batch.rowCount);
      if (random() % 3 === 0) runs.take(part);
    }
    runs.take(part);
    const vectors = keys.map(({ expression }) => all.vectors[expression.kind === "column" ? expression.index : 0]);
    const order = sortedRows(vectors, keys, rowCount, space, () => {});
    const merged = runs.merged();
    let row = 0;
    for (let batch = merged.next(); batch !== undefined; batch = merged.next()) {
      assert.ok(batch.rowCount <= 65_536);
      for (let k = 0; k < batch.rowCount; k++, row++) {
        const found: Row = batch.columns.map((vector) => valueAt(context.heap, vector, k));
        const wanted: Row = all.vectors.map((vector) => valueAt(context.heap, vector, order[row]));
        if (!found.every((value, c) => Object.is(value, wanted[c]))) {
          assert.deepEqual(found, wanted, `seed ${seed}, row ${row}, ${JSON.stringify(keys)}`);
        }
      }
    }
    assert.equal(row, rowCount);
    merged.close();
    space.release();
    assert.equal(context.memory.usedBytes, 0);
  }
});
