import assert from "node:assert/strict";
import type { AppendBatch, TableRows } from "../storage/contract.ts";
import type { Value } from "../types/mod.ts";
import { RowsToAdd } from "./constant-rows.ts";
import { RowCommits } from "./row-commits.ts";

const TYPES = ["LONG"], COLUMNS = [0];

function rowsOf(tableId: number, values: Value[], columnIds = COLUMNS): RowsToAdd {
  const rows = new RowsToAdd(tableId, columnIds, TYPES);
  rows.add(values.map((value) => [value]));
  return rows;
}

/** What a commit adds: its table, columns and values. */
function shown(changes: TableRows[]): string {
  return changes.map(({ tableId, batches }) =>
    batches.map((batch) => {
      const [column] = (batch as AppendBatch).columns;
      const values = new BigInt64Array(column!.values.slice().buffer);
      return `table ${tableId}, column ${column!.columnId}: ${values.join(" ")}`;
    }).join()
  ).join("; ");
}

/** Refuses commits with `refused`. */
function commitsOf(refused?: string) {
  const made: string[] = [];
  const commits = new RowCommits((changes) => {
    const text = shown(changes);
    made.push(text);
    return refused !== undefined && text.includes(refused) ? Promise.reject(new Error(text)) : Promise.resolve();
  });
  return { made, commits };
}

Deno.test("rows of a table that are added in one turn are one commit", async () => {
  const { made, commits } = commitsOf();
  await Promise.all([commits.add(rowsOf(1, [1n, 2n])), commits.add(rowsOf(2, [3n])), commits.add(rowsOf(1, [4n]))]);
  await commits.add(rowsOf(1, [5n]));
  assert.deepEqual(made, ["table 1, column 0: 1 2 4", "table 2, column 0: 3", "table 1, column 0: 5"]);
});

Deno.test("rows for other columns are another commit, and the order is kept", async () => {
  const { made, commits } = commitsOf();
  await Promise.all([
    commits.add(rowsOf(1, [1n])),
    commits.add(rowsOf(1, [2n], [7])),
    commits.add(rowsOf(1, [3n])),
    commits.add(rowsOf(1, [4n])),
  ]);
  assert.deepEqual(made, ["table 1, column 0: 1", "table 1, column 7: 2", "table 1, column 0: 3 4"]);
});

Deno.test("rows that are refused do not make those of others fail", async () => {
  const { made, commits } = commitsOf("13");
  const ends = await Promise.allSettled([1n, 13n, 2n].map((value) => commits.add(rowsOf(1, [value]))));
  assert.deepEqual(ends.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
  assert.deepEqual(made.map((text) => text.slice("table 1, column 0: ".length)), ["1 13 2", "1", "13", "2"]);
});

Deno.test("rows that are refused alone are not committed again", async () => {
  const { made, commits } = commitsOf("13");
  await assert.rejects(commits.add(rowsOf(1, [13n])), { message: "table 1, column 0: 13" });
  assert.equal(made.length, 1);
});
