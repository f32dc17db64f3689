import assert from "node:assert/strict";
import { parseCases } from "../../../tests/conformance.ts";
import type { Requirement } from "../../requirement.ts";
import { parse } from "../parser.ts";
import { optimize } from "../planner/mod.ts";
import { mapStatement, visitPlan } from "../planner/nodes.ts";
import { FakeCatalogue } from "./fake-catalogue.ts";
import { bind, type Bound } from "../bind.ts";

function bindWith(catalogue: FakeCatalogue, text: string): Bound {
  return bind(parse(text), {
    catalogue,
    parameterTypes: [],
    importRoot: "/srv/import",
    nowMicros: 1_700_000_000_000_000n,
    user: "admin",
    parquetSchema: () => ({ columns: [], leftOut: [] }),
  });
}

const catalogue = new FakeCatalogue();
for (
  const text of [
    "create table t (ts timestamp, a int, b int, c symbol) timestamp(ts) partition by day",
    "create table u (ts timestamp, a int, d int) timestamp(ts) partition by day",
  ]
) catalogue.apply(bindWith(catalogue, text).statement);

/** `SELECT t(a, b)`; without parentheses where the whole table is required. */
function shown({ permission, table, columns }: Requirement): string {
  if (table === undefined) return permission;
  return `${permission} ${table.name}${columns === undefined ? "" : `(${columns.map(({ name }) => name).join(", ")})`}`;
}

const required: [text: string, requires: string][] = [
  ["select 1", ""],
  ["select a from t", "SELECT t(a)"],
  ["select A from t", "SELECT t(A)"],
  ["select x.a from t x", "SELECT t(x.a)"],
  ["t", "SELECT t(ts, a, b, c)"],
  ["select * from t", "SELECT t(ts, a, b, c)"],
  ["select count() from t", "SELECT t()"],
  ["select a from (select a, b from t)", "SELECT t(a, b)"],
  ["select a from t where b = 1 order by c", "SELECT t(a, b, c)"],
  ["select 1 from t where false and a = 1", "SELECT t(a)"],
  ["select max(a) from t", "SELECT t(a)"],
  ["select a + 1 x, x * 2 from t", "SELECT t(a)"],
  ["with w as (select b from t) select * from w", "SELECT t(b)"],
  ["with w as (select b from t) select 1", ""],
  ["select avg(a) from t sample by 1h", "SELECT t(a, ts)"],
  ["select a from t latest on ts partition by c", "SELECT t(a, ts, c)"],
  ["select a from t latest by c", "SELECT t(a, ts, c)"],
  ["select row_number() over (partition by c order by b) from t", "SELECT t(c, b)"],
  ["select t.a from t join u on t.b = u.d", "SELECT t(t.a, t.b); SELECT u(u.d)"],
  ["select t.b from t join u on (a)", "SELECT t(t.b, a); SELECT u(a)"],
  ["select t.b from t join u using (a)", "SELECT t(t.b, a); SELECT u(a)"],
  ["select t.a, u.d from t asof join u", "SELECT t(t.a, ts); SELECT u(u.d, ts)"],
  ["select x.a from t x join t y on x.b = y.b", "SELECT t(x.a, x.b)"],
  ["select a from t where a in (select d from u)", "SELECT t(a); SELECT u(d)"],
  ["select a, (select max(d) from u where u.a = t.b) from t", "SELECT t(a, t.b); SELECT u(d, u.a)"],
  ["select a from t union select d from u", "SELECT t(a); SELECT u(d)"],
  ["select a from t timestamp(ts)", "SELECT t(a, ts)"],
  ["explain select a from t", "SELECT t(a)"],
  ["insert into t values (0, 1, 2, 'x')", "INSERT t"],
  ["insert into t select ts, a, d, 'x' from u", "INSERT t; SELECT u(ts, a, d)"],
  ["update t set a = b where c = 'x'", "UPDATE t(a); SELECT t(b, c)"],
  ["update t set a = 1", "UPDATE t(a)"],
  ["update t set a = u.d from u where t.a = u.a", "UPDATE t(a); SELECT t(t.a); SELECT u(u.d, u.a)"],
  ["delete from t where b = 1", "TRUNCATE TABLE t; SELECT t(b)"],
  ["delete from t", "TRUNCATE TABLE t"],
  ["create table v (a int)", "CREATE TABLE"],
  ["create table v as (select a from t)", "CREATE TABLE; SELECT t(a)"],
  ["create table v (like t)", "CREATE TABLE; SELECT t()"],
  ["drop table t", "DROP TABLE t"],
  ["drop table t cascade permissions", "DROP TABLE t"],
  ["drop table if exists w", ""],
  ["drop all tables", "DROP TABLE t; DROP TABLE u"],
  ["truncate table t, u", "TRUNCATE TABLE t; TRUNCATE TABLE u"],
  ["rename table t to w", "RENAME TABLE t"],
  ["alter table t add column z int", "ADD COLUMN t"],
  ["alter table t drop column a", "DROP COLUMN t(a)"],
  ["alter table t rename column a to z", "RENAME COLUMN t(a)"],
  ["show columns from t", "SELECT t()"],
  ["show create table t", "SELECT t()"],
  ["select * from table_columns('t')", "SELECT t()"],
  ["show tables", ""],
  ["show parameters", "SYSTEM ADMIN"],
  ["select * from pending_config()", "SYSTEM ADMIN"],
  ["select value from server_metrics()", "SYSTEM ADMIN"],
  ["select 1 from recent_errors()", "SYSTEM ADMIN"],
  ["checkpoint create", "SNAPSHOT"],
  ["backup database", "BACKUP DATABASE"],
  ["select reload_config()", "SYSTEM ADMIN"],
  ["begin", ""],
  ["set x = 1", ""],
  ["cancel query 1", ""],
];
for (const [text, requires] of required) {
  Deno.test(`bind() finds that ${text} requires ${requires || "nothing"}`, () => {
    assert.equal(bindWith(catalogue, text).requires.map(shown).join("; "), requires);
  });
}

Deno.test("bind() gives the position of a required permission", () => {
  const usesOf = (text: string) => {
    const [{ at, columns }] = bindWith(catalogue, text).requires;
    return [at, columns?.map((column) => `${column.name} ${column.at}`).join(", ")];
  };
  assert.deepEqual(usesOf("select a, * from t"), [17, "a 7, ts 10, b 10, c 10"]);
  assert.deepEqual(usesOf("select a + B from t x"), [18, "a 7, B 11"]);
  assert.deepEqual(usesOf("select sum(a) from t sample by 1h"), [19, "a 11, ts 21"]);
  assert.deepEqual(usesOf("alter table t drop column a"), [12, "a 26"]);
  assert.deepEqual(usesOf("  truncate table t"), [17, undefined]);
  assert.deepEqual(usesOf("  create table v (a int)"), [2, undefined]);
});

/** Rules may remove columns from a scan, but every column that remains must be required by the statement. */
function unrequired({ statement, requires }: Bound): string[] {
  const found: string[] = [];
  const used = new Set(
    requires.filter(({ permission }) => permission === "SELECT").flatMap(({ table, columns }) =>
      columns!.map(({ id }) => `${table!.id} ${id}`)
    ),
  );
  mapStatement(statement, (plan) => {
    visitPlan(optimize(plan), (node) => {
      if (node.node !== "scan") return;
      node.columnIds.forEach((id, i) => {
        // The designated timestamp is allowed with any other column.
        const isTime = i === node.timestamp;
        if (!isTime && !used.has(`${node.tableId} ${id}`)) found.push(`${node.tableName}.${node.columns[i].name}`);
      });
    });
    return plan;
  });
  return found;
}

Deno.test("in the recorded cases no scan reads a column that the statement does not require", () => {
  const folder = new URL("../../../tests/conformance/", import.meta.url);
  let count = 0;
  const problems: string[] = [];
  for (const { name } of Deno.readDirSync(folder)) {
    if (!name.endsWith(".test")) continue;
    const tables = new FakeCatalogue();
    for (const { sql } of parseCases(Deno.readTextFileSync(new URL(name, folder)))) {
      let bound: Bound;
      try {
        bound = bindWith(tables, sql);
      } catch {
        continue;
      }
      count++;
      const missing = unrequired(bound);
      if (missing.length > 0) problems.push(`${name}: ${sql}: ${missing.join(", ")}`);
      tables.apply(bound.statement);
    }
  }
  assert.deepEqual(problems, []);
  assert.ok(count > 1_400, `${count} statements were bound`);
});
