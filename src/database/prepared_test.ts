import assert from "node:assert/strict";
import type { Identity } from "../api.ts";
import { SqlError } from "../errors.ts";
import type { Requirement } from "../requirement.ts";
import { type Core, SERVER } from "./core.ts";
import { PreparedStatement } from "./prepared.ts";
import type { RunSession } from "./run.ts";
import type { Statement } from "./statements.ts";

const REQUIRES: Requirement[] = [{ permission: "TRUNCATE TABLE", table: { id: 1, name: "t" }, at: 15 }];
const denied = new SqlError("Access denied", 15, "42501");

/** A statement without effect, and the checks of permissions. */
function prepared(identity: Identity, isAllowed: () => boolean) {
  const asked: [string, readonly Requirement[]][] = [];
  const authorize = ({ name }: Identity, _client: unknown, requires: readonly Requirement[]) => {
    asked.push([name, requires]);
    if (!isAllowed()) throw denied;
  };
  const statement = { bound: { kind: "empty" }, requires: REQUIRES, parameters: [], notices: [], category: "ddl" };
  const core = {
    options: {},
    access: { authorize },
    progress: { isWatched: false },
    execution: { direct: { lends: false } },
    activity: { begin: () => ({ end: () => {} }) },
  } as unknown as Core;
  const statements = { refreshed: (known: Statement) => known, withValues: (known: Statement) => known };
  const session = { identity, transaction: "idle", statements, catalogue: {} } as unknown as RunSession;
  return { statement: new PreparedStatement(session, core, statement as unknown as Statement, 0), asked };
}

const execute = async (statement: PreparedStatement) =>
  await statement.execute([], { encoding: { name: "json", quoteLargeNumbers: false } });

Deno.test("a prepared statement is authorized at each execution", async () => {
  let isAllowed = true;
  const { statement, asked } = prepared({ name: "ann" }, () => isAllowed);
  await execute(statement);
  isAllowed = false;
  await assert.rejects(execute(statement), denied);
  assert.deepEqual(asked, [["ann", REQUIRES], ["ann", REQUIRES]]);
});

Deno.test("the server's own statements need no permission", async () => {
  const { statement, asked } = prepared(SERVER, () => false);
  await execute(statement);
  assert.deepEqual(asked, []);
});
