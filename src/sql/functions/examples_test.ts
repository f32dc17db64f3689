import assert from "node:assert/strict";
import { createOperator } from "../../engine/operators/mod.ts";
import { randomFrom, rowsOf, testContext } from "../../engine/testing.ts";
import { formatValue } from "../../types/format/mod.ts";
import type { Value } from "../../types/mod.ts";
import { bind } from "../bind.ts";
import { parse } from "../parser.ts";
import { createRegistry, FUNCTIONS } from "./mod.ts";

/** Table functions that need stored tables or files. */
const STORED = new Set([
  "read_parquet",
  "parquet_scan",
  "tables",
  "table_columns",
  "table_partitions",
  "table_column_storage",
  "wal_tables",
  "wal_transactions",
  "table_writer_metrics",
  "files",
  "import_files",
  "export_files",
  "glob",
  "keywords",
  "functions",
]);

const catalogue = {
  table: () => undefined,
  tableById: () => undefined,
  tables: () => [],
  pin: () => () => {},
  version: 0,
};

/** The first value of a query's first row, as in JSON. */
function firstValue(sql: string): unknown {
  const context = testContext(1 << 26, {
    functions: createRegistry(),
    nowMicros: 1_700_000_000_000_000n,
    random: randomFrom(1),
  });
  const { statement } = bind(parse(sql), {
    catalogue,
    parameterTypes: [],
    importRoot: "/nowhere",
    nowMicros: context.nowMicros,
    user: context.user,
    parquetSchema: () => ({ columns: [], leftOut: [] }),
  });
  const { plan } = statement;
  assert.ok(plan !== undefined);
  const value = rowsOf(createOperator(plan, context), context)[0]?.[0] as Value;
  const { type } = plan.columns[0];
  return type === "LONG" && value !== null
    ? Number(value)
    : typeof value === "bigint"
    ? formatValue(value, type)
    : type === "IPv4" && value !== null
    ? formatValue(value, type)
    : value;
}

for (const entry of FUNCTIONS.filter(({ name, table }) => table !== true || !STORED.has(name))) {
  for (const { sql, gives } of entry.examples) {
    const statement = sql.startsWith("SELECT") ? sql : `SELECT ${sql}`;
    Deno.test(`${entry.name}: ${sql}`, () => {
      assert.notEqual(gives, undefined, "the example says what it gives");
      const value = firstValue(statement);
      if (typeof gives === "number" && typeof value === "number") {
        assert.ok(Math.abs(value - gives) <= 1e-9 * Math.max(1, Math.abs(gives)), `${value}`);
      } else assert.deepEqual(typeof value === "number" && !Number.isFinite(value) ? null : value, gives);
    });
  }
}

Deno.test("sources that need stored tables or files have recorded cases", () => {
  const folder = new URL("../../../tests/conformance/", import.meta.url);
  const cases = [...Deno.readDirSync(folder)].filter(({ name }) => name.endsWith(".test"))
    .map(({ name }) => Deno.readTextFileSync(new URL(name, folder))).join("\n").toLowerCase();
  assert.deepEqual([...STORED].filter((name) => !cases.includes(`${name}(`)), []);
});
