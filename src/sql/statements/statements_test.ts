import assert from "node:assert/strict";
import { parseCases } from "../../../tests/conformance.ts";
import { bind, type Bound } from "../bind.ts";
import { FakeCatalogue } from "../binder/fake-catalogue.ts";
import { parse } from "../parser.ts";
import { kindOf, STATEMENTS } from "./mod.ts";

Deno.test("statement kinds have unique names", () => {
  const kinds = STATEMENTS.map(({ kind }) => kind);
  assert.deepEqual(kinds, [...new Set(kinds)]);
});

/** The recorded cases, and further statements. */
function* texts(): Generator<[file: string, sql: string]> {
  const folder = new URL("../../../tests/conformance/", import.meta.url);
  for (const { name } of Deno.readDirSync(folder)) {
    if (!name.endsWith(".test")) continue;
    for (const { sql } of parseCases(Deno.readTextFileSync(new URL(name, folder)))) yield [name, sql];
  }
  for (const sql of ["checkpoint create", "backup database", "drop all tables", "select reload_config()"]) {
    yield ["more", sql];
  }
}

Deno.test("a statement requires only permissions that its kind declares", () => {
  const problems = new Set<string>();
  let file = "", tables = new FakeCatalogue();
  for (const [name, text] of texts()) {
    if (name !== file) [file, tables] = [name, new FakeCatalogue()];
    let bound: Bound;
    try {
      bound = bind(parse(text), {
        catalogue: tables,
        parameterTypes: [],
        importRoot: "/srv/import",
        nowMicros: 0n,
        user: "admin",
        parquetSchema: () => ({ columns: [], leftOut: [] }),
      });
    } catch {
      continue;
    }
    const { kind, requires } = kindOf(bound.statement.statement ?? bound.statement);
    for (const { permission } of bound.requires) {
      // Queries require SELECT on the columns that they read, and SYSTEM ADMIN for some functions.
      if (permission === "SELECT" || permission === "SYSTEM ADMIN") continue;
      if (!requires.includes(permission)) problems.add(`${kind} requires ${permission}`);
    }
    tables.apply(bound.statement);
  }
  assert.deepEqual([...problems], []);
});
