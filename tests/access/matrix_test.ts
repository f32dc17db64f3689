/**
 * Every kind of statement and every endpoint against every way of having, or not having, the permission that it needs. What is
 * needed is written here from the documentation of the permissions; nothing of the checks is imported.
 */
import assert from "node:assert/strict";
import type pg from "pg";
import { STATEMENTS } from "../../src/sql/statements/mod.ts";
import { until } from "../programs.ts";
import { basic, type Credentials, type ProtectedServer, startProtected, testSteps } from "./server.ts";

const ALICE: Credentials = { name: "alice", password: "alice's" };

interface Row {
  sql: string;
  /** The permission as in GRANT. Undefined if every connected user may run it. */
  needs?: string;
  /** On this table; otherwise on the database. */
  on?: string;
  /** It is needed with the grant option. */
  withOption?: true;
  /** Permissions that are needed in addition, and always granted. */
  besides?: string[];
  /** Run by the administrator before each attempt; failures do not matter. */
  before?: string[];
}

/** Statements that no user can run. */
const NOT_RUN: Record<string, string> = {
  unsupportedAlteration: "it is refused for all, as nothing does it yet",
};

const TABLE = [
  "drop table if exists t",
  "create table t (ts timestamp, a int, b int) timestamp(ts) partition by day",
];

const SYMBOLS = [
  "drop table if exists t",
  "create table t (ts timestamp, a symbol, b int) timestamp(ts) partition by day",
];

const HOURLY = "create materialized view if not exists hourly as (select ts, sum(b) s from t sample by 1h)";

const ROWS: Record<string, Row[]> = {
  query: [
    { sql: "select a from t", needs: "SELECT", on: "t" },
    { sql: "select count() from t", needs: "SELECT", on: "t" },
    { sql: "with x as (select b from t) select 1 from x", needs: "SELECT", on: "t" },
    {
      sql: "select o.x from o left join (select a from t) s on o.x = s.a",
      needs: "SELECT",
      on: "t",
      besides: ["SELECT on o"],
    },
    { sql: "select 1" },
  ],
  explain: [{ sql: "explain select a from t", needs: "SELECT", on: "t" }],
  insert: [
    { sql: "insert into t values ('2024-01-01', 1, 2)", needs: "INSERT", on: "t" },
    { sql: "insert into o select a from t", needs: "SELECT", on: "t", besides: ["INSERT on o"] },
  ],
  update: [
    { sql: "update t set a = 5", needs: "UPDATE", on: "t" },
    { sql: "update t set a = b", needs: "SELECT", on: "t", besides: ["UPDATE on t"] },
  ],
  delete: [{ sql: "delete from t where a = 77", needs: "TRUNCATE TABLE", on: "t", besides: ["SELECT on t"] }],
  createTable: [
    { sql: "create table made (x int)", needs: "CREATE TABLE", before: ["drop table if exists made"] },
    {
      sql: "create table made as (select a from t)",
      needs: "SELECT",
      on: "t",
      besides: ["CREATE TABLE"],
      before: ["drop table if exists made"],
    },
  ],
  addColumns: [{ sql: "alter table t add column c int", needs: "ADD COLUMN", on: "t", before: TABLE }],
  dropColumns: [{ sql: "alter table t drop column b", needs: "DROP COLUMN", on: "t", before: TABLE }],
  renameColumn: [{ sql: "alter table t rename column b to c", needs: "RENAME COLUMN", on: "t", before: TABLE }],
  alterColumnType: [
    { sql: "alter table t alter column b type long", needs: "ALTER COLUMN TYPE", on: "t", before: TABLE },
  ],
  alterColumn: [
    { sql: "alter table t alter column a add index capacity 64", needs: "ADD INDEX", on: "t", before: SYMBOLS },
    { sql: "alter table t alter column a drop index", needs: "DROP INDEX", on: "t", before: SYMBOLS },
    { sql: "alter table t alter column a nocache", needs: "ALTER COLUMN CACHE", on: "t", before: SYMBOLS },
    { sql: "alter table t alter column a symbol capacity 64", needs: "ALTER COLUMN CACHE", on: "t", before: SYMBOLS },
  ],
  setParquet: [
    { sql: "alter table t alter column a set parquet(plain)", needs: "SET STORAGE POLICY", on: "t", before: TABLE },
  ],
  convertPartitions: [
    {
      sql: "alter table t convert partition to native list '2024-01-01'",
      needs: "SET STORAGE POLICY",
      on: "t",
      before: TABLE,
    },
  ],
  alterPartitions: [
    { sql: "alter table t drop partition list '2024-01-01'", needs: "DROP PARTITION", on: "t" },
    { sql: "alter table t drop partition where ts < '2024-01-02'", needs: "DROP PARTITION", on: "t" },
    {
      sql: "alter table t detach partition list '2024-01-01'",
      needs: "DETACH PARTITION",
      on: "t",
      before: [...TABLE, "insert into t values ('2024-01-01', 1, 2), ('2024-01-02', 1, 2)"],
    },
    {
      sql: "alter table t attach partition list '2024-01-01'",
      needs: "ATTACH PARTITION",
      on: "t",
      before: [
        ...TABLE,
        "insert into t values ('2024-01-01', 1, 2), ('2024-01-02', 1, 2)",
        "alter table t detach partition list '2024-01-01'",
      ],
    },
  ],
  alterOptions: [
    { sql: "alter table t set ttl 1 day", needs: "SET TABLE PARAM", on: "t" },
    { sql: "alter table t set param maxUncommittedRows = 5", needs: "SET TABLE PARAM", on: "t" },
    { sql: "alter table t squash partitions", needs: "SET TABLE PARAM", on: "t" },
    { sql: "alter table t dedup enable upsert keys(ts)", needs: "DEDUP ENABLE", on: "t" },
    { sql: "alter table t dedup disable", needs: "DEDUP DISABLE", on: "t" },
    { sql: "alter table t resume wal", needs: "RESUME WAL", on: "t" },
    { sql: "alter table t set type wal", needs: "SET TABLE TYPE", on: "t" },
  ],
  renameTable: [{
    sql: "rename table r to renamed",
    needs: "RENAME TABLE",
    on: "r",
    before: ["drop table if exists renamed", "create table if not exists r (x int)"],
  }],
  vacuum: [{ sql: "vacuum table t", needs: "VACUUM TABLE", on: "t" }],
  reindex: [{ sql: "reindex table t lock exclusive", needs: "REINDEX", on: "t" }],
  truncate: [{ sql: "truncate table t", needs: "TRUNCATE TABLE", on: "t" }],
  dropTable: [{ sql: "drop table d", needs: "DROP TABLE", on: "d", before: ["create table if not exists d (x int)"] }],
  showTables: [{ sql: "show tables" }],
  showColumns: [{ sql: "show columns from t", needs: "SELECT", on: "t" }],
  showPartitions: [{ sql: "show partitions from t", needs: "SELECT", on: "t" }],
  showCreateTable: [{ sql: "show create table t", needs: "SELECT", on: "t" }],
  createView: [
    {
      sql: "create view seen as (select a from t)",
      needs: "CREATE VIEW",
      before: ["drop view if exists seen"],
      besides: ["SELECT on t"],
    },
    {
      sql: "create or replace view seen as (select a from t)",
      needs: "SELECT",
      on: "t",
      besides: ["CREATE VIEW"],
    },
    { sql: "alter view seen as (select b from t)", needs: "ALTER VIEW", on: "all tables", besides: ["SELECT on t"] },
  ],
  compileView: [{ sql: "compile view seen", needs: "COMPILE VIEW", on: "all tables", besides: ["SELECT on t"] }],
  showCreateView: [{
    sql: "show create view seen",
    needs: "SELECT",
    on: "t",
    before: ["create or replace view seen as (select a from t)"],
  }],
  dropView: [{
    sql: "drop view seen",
    needs: "DROP VIEW",
    on: "all tables",
    before: ["create or replace view seen as (select a from t)"],
  }],
  createMaterializedView: [
    {
      sql: "create materialized view made_view as (select ts, sum(b) s from t sample by 1h)",
      needs: "CREATE MATERIALIZED VIEW",
      before: ["drop materialized view if exists made_view"],
      besides: ["SELECT on t"],
    },
    {
      sql: "create materialized view made_view as (select ts, sum(b) s from t sample by 1h)",
      needs: "SELECT",
      on: "t",
      before: ["drop materialized view if exists made_view"],
      besides: ["CREATE MATERIALIZED VIEW"],
    },
  ],
  alterMaterializedView: [{
    sql: "alter materialized view hourly set ttl 1 year",
    needs: "ALTER MATERIALIZED VIEW",
    on: "hourly",
    before: [HOURLY],
  }],
  refreshMaterializedView: [{
    sql: "refresh materialized view hourly full",
    needs: "REFRESH MATERIALIZED VIEW",
    on: "hourly",
  }],
  showCreateMaterializedView: [{ sql: "show create materialized view hourly", needs: "SELECT", on: "hourly" }],
  dropMaterializedView: [{
    sql: "drop materialized view hourly",
    needs: "DROP MATERIALIZED VIEW",
    on: "hourly",
    before: [HOURLY],
  }],
  showCreateDatabase: [
    // It lists only what the user may see.
    { sql: "show create database" },
    { sql: "show create database include (groups)", needs: "LIST USERS" },
    { sql: "show create database include (permissions)", needs: "USER DETAILS", besides: ["LIST USERS"] },
  ],
  showParameters: [{ sql: "show parameters", needs: "SYSTEM ADMIN" }],
  showSetting: [{ sql: "show server_version" }],
  transaction: [{ sql: "begin" }, { sql: "commit" }],
  // They need an open transaction: without one they are refused for another reason than rights.
  savepoint: [],
  releaseSavepoint: [],
  rollbackTo: [],
  // It needs a running statement: below.
  cancelQuery: [],
  checkpoint: [{ sql: "checkpoint create", needs: "SNAPSHOT", before: ["checkpoint release"] }],
  copy: [
    { sql: "copy t to 'x' with format parquet", needs: "SELECT", on: "t" },
    { sql: "copy (select a from t) to 'x' with format parquet", needs: "SELECT", on: "t" },
    { sql: "copy t from 'none.csv'", needs: "INSERT", on: "t" },
    { sql: "copy copied from 'none.csv'", needs: "CREATE TABLE" },
    { sql: "copy 'ff' cancel" },
  ],
  backup: [{ sql: "backup database", needs: "BACKUP DATABASE" }],
  set: [{ sql: "set x = 1" }],
  reset: [{ sql: "reset x" }],
  discard: [{ sql: "discard all" }],
  deallocate: [{ sql: "deallocate all" }],
  close: [{ sql: "close all" }],
  unlisten: [{ sql: "unlisten *" }],
  empty: [{ sql: "-- nothing" }],
  createPrincipal: [
    { sql: "create user made", needs: "CREATE USER", before: ["drop user if exists made"] },
    {
      sql: "create group made",
      needs: "CREATE GROUP",
      before: ["drop user if exists made", "drop group if exists made"],
    },
    {
      sql: "create service account made",
      needs: "CREATE SERVICE ACCOUNT",
      before: ["drop group if exists made", "drop service account if exists made"],
    },
    {
      sql: "create group made with external alias 'x'",
      needs: "ADD EXTERNAL ALIAS",
      besides: ["CREATE GROUP"],
      before: ["drop service account if exists made", "drop group if exists made"],
    },
  ],
  alterPrincipal: [
    { sql: "alter user bob disable", needs: "DISABLE USER" },
    { sql: "alter user bob enable", needs: "ENABLE USER" },
    { sql: "alter user bob with password x", needs: "ADD PASSWORD" },
    { sql: "alter user bob with no password", needs: "REMOVE PASSWORD" },
    { sql: "alter service account app create token type rest with ttl '1d'", needs: "CREATE REST TOKEN" },
    { sql: "alter service account app drop token type rest", needs: "DROP REST TOKEN" },
  ],
  alterGroup: [
    { sql: "alter group g with external alias 'CN=g'", needs: "ADD EXTERNAL ALIAS" },
    {
      sql: "alter group g drop external alias 'CN=g'",
      needs: "REMOVE EXTERNAL ALIAS",
      before: ["alter group g with external alias 'CN=g'"],
    },
  ],
  dropPrincipal: [
    { sql: "drop user gone", needs: "DROP USER", before: ["create user if not exists gone"] },
    {
      sql: "drop group gone",
      needs: "DROP GROUP",
      before: ["drop user if exists gone", "create group if not exists gone"],
    },
    {
      sql: "drop service account gone",
      needs: "DROP SERVICE ACCOUNT",
      before: ["drop group if exists gone", "create service account if not exists gone"],
    },
  ],
  addUser: [{ sql: "add user bob to g", needs: "ADD USER" }],
  removeUser: [{ sql: "remove user bob from g", needs: "REMOVE USER" }],
  grant: [{
    sql: "grant SELECT on t to bob",
    needs: "SELECT",
    on: "t",
    withOption: true,
    before: ["revoke SELECT on t from bob"],
  }],
  revoke: [{
    sql: "revoke SELECT on t from bob",
    needs: "SELECT",
    on: "t",
    withOption: true,
    before: ["grant SELECT on t to bob"],
  }],
  grantAssume: [{
    sql: "grant assume service account app to bob",
    needs: "ASSUME SERVICE ACCOUNT app",
    withOption: true,
  }],
  revokeAssume: [{
    sql: "revoke assume service account app from bob",
    needs: "ASSUME SERVICE ACCOUNT app",
    withOption: true,
  }],
  // They need a session: tests/access/statements_test.ts.
  assume: [],
  exitAccount: [],
  showUsers: [{ sql: "show users", needs: "LIST USERS" }],
  showUser: [{ sql: "show user bob", needs: "USER DETAILS" }, { sql: "show user" }],
  showGroups: [{ sql: "show groups", needs: "LIST USERS" }, { sql: "show groups bob", needs: "USER DETAILS" }, {
    sql: "show groups alice",
  }],
  showServiceAccounts: [
    { sql: "show service accounts", needs: "LIST USERS" },
    { sql: "show service accounts bob", needs: "USER DETAILS" },
    { sql: "show service accounts alice" },
  ],
  showServiceAccount: [{ sql: "show service account app", needs: "USER DETAILS" }],
  showPermissions: [{ sql: "show permissions bob", needs: "USER DETAILS" }, { sql: "show permissions" }],
};

Deno.test("every kind of statement has a row in the matrix", () => {
  const known = [...Object.keys(ROWS), ...Object.keys(NOT_RUN)].sort();
  assert.deepEqual(STATEMENTS.map(({ kind }) => kind).sort(), known);
});

type Outcome = "allowed" | "denied" | string;

/** A wire over which alice sends statements. */
type Send = (sql: string) => Promise<Outcome>;

function outcomeOf(error: string | undefined, isDenied: boolean): Outcome {
  return error === undefined ? "allowed" : isDenied && error.startsWith("Access denied for alice [") ? "denied" : error;
}

const overHttp = (server: ProtectedServer): Send => async (sql) => {
  const { status, error } = await server.sql(sql, ALICE);
  // HTTP answers a text without a statement like this to everybody.
  if (error === "empty query") return "allowed";
  return outcomeOf(error, status === 403);
};

let nextName = 0;
const overPg = (client: pg.Client, isPrepared: boolean): Send => async (sql) => {
  try {
    await client.query(isPrepared ? { text: sql, name: `s${nextName++}` } : sql);
    if (sql === "begin") await client.query("commit");
    return "allowed";
  } catch (error) {
    const { message, code } = error as pg.DatabaseError;
    return outcomeOf(message, code === "42501");
  }
};

const grantOf = ({ needs, on, withOption }: Row, to: string, table = on) => {
  const what = table === undefined ? needs : `${needs} on ${table}`;
  return `grant ${what} to ${to}${withOption ? " with grant option" : ""}`;
};
const revokeOf = ({ needs, on }: Row, from: string, table = on) =>
  `revoke ${table === undefined ? needs : `${needs} on ${table}`} from ${from}`;

/** Ways of having the permission: what the administrator does, what undoes it, and the expected result. */
function statesOf(row: Row): { title: string; by: string[]; undo: string[]; expected: Outcome }[] {
  if (row.needs === undefined) return [{ title: "without any permission", by: [], undo: [], expected: "allowed" }];
  const granted = { by: [grantOf(row, "alice")], undo: [revokeOf(row, "alice")] };
  const isAssumption = row.needs.startsWith("ASSUME");
  return [
    { title: "missing", by: [], undo: [], expected: "denied" },
    { title: "granted", ...granted, expected: "allowed" },
    { title: "revoked meanwhile", by: [...granted.by, ...granted.undo], undo: [], expected: "denied" },
    { title: "through a group", by: [grantOf(row, "members")], undo: [revokeOf(row, "members")], expected: "allowed" },
    ...row.withOption
      ? [{
        title: "without the option",
        by: [grantOf({ ...row, withOption: undefined }, "alice")],
        undo: granted.undo,
        expected: "denied",
      }]
      : [],
    ...row.on === undefined ? [] : [
      {
        title: "on another table",
        by: [grantOf(row, "alice", "other")],
        undo: [revokeOf(row, "alice", "other")],
        expected: "denied",
      },
      {
        title: "on all tables",
        by: [`grant ${row.needs} on all tables to alice${row.withOption ? " with grant option" : ""}`],
        undo: [`revoke ${row.needs} on all tables from alice`],
        expected: "allowed",
      },
    ],
    ...isAssumption ? [] : [{
      title: "as an administrator",
      by: ["grant DATABASE ADMIN to alice"],
      undo: ["revoke DATABASE ADMIN from alice"],
      expected: "allowed",
    }],
  ];
}

const SETUP = [
  ...TABLE,
  "create table o (x int)",
  "create table other (x int)",
  "create user alice with password 'alice''s'",
  "create user bob",
  "create group g",
  "create group members",
  "create service account app",
  "create service account proxy",
  "add user alice to members",
  "grant HTTP, PGWIRE to alice",
  "grant assume service account proxy to alice",
];

for (const wire of ["HTTP", "PG simple", "PG prepared"] as const) {
  Deno.test(`statements by permission over ${wire}`, async () => {
    await using server = await startProtected({ SVC_CAIRO_COMMIT_MODE: "nosync" });
    await server.set(...SETUP);
    const client = await server.pg(ALICE);
    const send = wire === "HTTP" ? overHttp(server) : overPg(client, wire === "PG prepared");
    const wrong: string[] = [];
    for (const row of Object.values(ROWS).flat()) {
      if (wire === "HTTP" && (row.sql === "begin" || row.sql === "commit")) continue;
      const besides = (row.besides ?? []).map((grant) => ({
        on: `grant ${grant} to alice`,
        off: `revoke ${grant} from alice`,
      }));
      await server.set(...besides.map(({ on }) => on));
      for (const { title, by, undo, expected } of statesOf(row)) {
        for (const statement of row.before ?? []) await server.sql(statement);
        await server.set(...by);
        const outcome = await send(row.sql);
        if (outcome !== expected) wrong.push(`${row.sql}, ${title}: expected ${expected}, found ${outcome}`);
        await server.set(...undo);
      }
      for (const { off } of besides) await server.sql(off);
      // Rows of the next kind find the table as it was.
      if (row.before === TABLE) { for (const statement of TABLE) await server.sql(statement); }
    }
    await client.end();
    assert.deepEqual(wrong, []);
  });
}

Deno.test("statements by the permissions of a service account: those of the user do not count", async () => {
  await using server = await startProtected({ SVC_CAIRO_COMMIT_MODE: "nosync" });
  await server.set(...SETUP);
  const client = await server.pg(ALICE);
  await client.query("assume service account proxy");
  const send = overPg(client, true);
  const wrong: string[] = [];
  const rows = Object.values(ROWS).flat().filter(({ needs, withOption, besides }) =>
    needs !== undefined && !withOption && besides === undefined
  );
  for (const row of rows) {
    for (const [of, expected] of [["alice", "denied"], ["proxy", "allowed"]]) {
      for (const statement of row.before ?? []) await server.sql(statement);
      await server.set(grantOf(row, of));
      const outcome = await send(row.sql);
      if (outcome !== expected) wrong.push(`${row.sql}, granted to ${of}: expected ${expected}, found ${outcome}`);
      await server.set(revokeOf(row, of));
    }
    if (row.before === TABLE) { for (const statement of TABLE) await server.sql(statement); }
  }
  await client.end();
  assert.deepEqual(wrong, []);
});

/** Takes longer than any test waits. */
const ENDLESS = "select count() from long_sequence(3000000) a cross join long_sequence(3000000) b where a.x + b.x = -1";

for (const wire of ["HTTP", "PG simple", "PG prepared"] as const) {
  Deno.test(`CANCEL QUERY by permission over ${wire}`, async () => {
    await using server = await startProtected();
    await server.set(...SETUP);
    const client = await server.pg(ALICE);
    const send = wire === "HTTP" ? overHttp(server) : overPg(client, wire === "PG prepared");
    const start = async (as?: Credentials) => {
      const ended = server.sql(ENDLESS, as);
      const id = await until("the statement reads", async () => {
        const { dataset } = await server.sql("select query_id, query, rows_read from query_activity()");
        return dataset!.find(([, query, rows]) => query === ENDLESS && Number(rows) > 0)?.[0];
      });
      return { id, ended };
    };
    const own = await start(ALICE);
    assert.equal(await send(`cancel query ${own.id}`), "allowed", "one's own needs no permission");
    assert.match((await own.ended).error!, /was cancelled by alice/);

    const { id, ended } = await start();
    const cancel = `cancel query ${id}`, unknown = `query ${id} does not exist or has ended`;
    const manages = "SQL ENGINE ADMIN";
    assert.equal(await send(cancel), unknown, "missing");
    await server.set(`grant ${manages} to alice`, `revoke ${manages} from alice`);
    assert.equal(await send(cancel), unknown, "revoked meanwhile");
    await server.set("grant SYSTEM ADMIN to alice");
    assert.equal(await send(cancel), unknown, "another permission");
    await server.set(`grant ${manages} to ${wire === "HTTP" ? "alice" : "members"}`);
    assert.equal(await send(cancel), "allowed", "granted");
    assert.match((await ended).error!, /was cancelled by alice/);
    await client.end();
  });
}

/** [method, path] */
const ENDPOINTS: [string, string][] = [
  ["GET", "/exec?query=select+1"],
  ["POST", "/exec?query=select+1"],
  ["GET", "/exp?query=select+1"],
  ["GET", "/chk?j=t"],
  ["GET", "/warnings"],
  ["GET", "/api/v1/sql/validate?query=select+1"],
  ["POST", "/imp"],
  ["POST", "/api/v1/sql/csv"],
  ["POST", "/write"],
  ["POST", "/api/v2/write"],
];

testSteps("rights on columns, endpoints, lines and imports", {
  "columns: a right on one column gives that one and the timestamp, and the others are as good as unknown": async (
    server,
  ) => {
    await server.set(...SETUP, "grant SELECT on t(a) to alice", "grant UPDATE on t(b) to alice");
    const asks: [sql: string, error: string | undefined][] = [
      ["select a from t", undefined],
      ["select ts, a from t", undefined],
      ["select count() from t", undefined],
      ["select b from t", "there is no column b"],
      ["select * from t", "there is no column b"],
      ["select a from t where b = 1", "there is no column b"],
      ["select a from t order by b", "there is no column b"],
      ["select max(b) from t", "there is no column b"],
      ["select x.a from t x join t y on x.a = y.b", "there is no column"],
      ["select c from t", "there is no column c"],
      ["update t set b = 1", undefined],
      ["update t set a = 1", "Access denied for alice [UPDATE on t(a)]"],
    ];
    for (const [sql, expected] of asks) {
      const { error } = await server.sql(sql, ALICE);
      assert.ok(expected === undefined ? error === undefined : error?.startsWith(expected), `${sql}: ${error}`);
      assert.doesNotMatch(error ?? "", /did you mean.*\bb\b/, sql);
    }
  },
  "endpoints by credentials and the permission HTTP": async (server) => {
    await server.set(
      "create user alice with password 'alice''s'",
      "create table t (x int)",
      "grant INSERT on t to alice",
    );
    const made = await server.sql("alter user alice create token type rest with ttl '1h'");
    const credentials = [`Basic ${btoa("alice:alice's")}`, `Bearer ${made.dataset![0][1]}`];
    const ask = async (method: string, path: string, authorization?: string) => {
      const body = method === "POST" ? "" : undefined;
      const { status } = await server.request(path, authorization, { method, body });
      return status;
    };
    for (const [method, path] of ENDPOINTS) {
      assert.equal(await ask(method, path), 401, `${path} without credentials`);
      assert.equal(await ask(method, path, `Basic ${btoa("alice:wrong")}`), 401, `${path} with a wrong password`);
      for (const each of credentials) assert.equal(await ask(method, path, each), 403, `${path} without HTTP`);
    }
    await server.set("grant HTTP to alice");
    for (const [method, path] of ENDPOINTS) {
      for (const each of credentials) {
        assert.ok(![401, 403].includes(await ask(method, path, each)), `${path} with HTTP`);
      }
    }
    await server.set("alter user alice disable");
    for (const each of credentials) assert.equal(await ask("GET", "/exec?query=select+1", each), 401);
  },
  "lines by permission": async (server) => {
    const statuses: Record<string, string[]> = {
      "403 missing": [],
      "204 granted": ["grant INSERT on l to alice"],
      "403 on another table": ["grant INSERT on other to alice"],
      "204 through a group": ["grant INSERT on l to members"],
      "403 revoked": ["grant INSERT on l to alice", "revoke INSERT on l from alice"],
      "403 only SELECT": ["grant SELECT on l to alice"],
    };
    await server.set(...SETUP, "create table l (x double, timestamp timestamp) timestamp(timestamp) partition by day");
    for (const [expected, statements] of Object.entries(statuses)) {
      await server.set(...statements);
      const { status, text } = await server.lines("l x=1\n", ALICE);
      assert.equal(status, Number(expected.slice(0, 3)), `${expected}: ${text}`);
      for (const principal of ["alice", "members"]) await server.set(`revoke ALL on all tables from ${principal}`);
    }
    await server.set("grant INSERT on l to alice");
    assert.match((await server.lines("l x=1,y=2\n", ALICE)).text, /Access denied for alice \[ADD COLUMN on l\]/);
    await server.set("grant ADD COLUMN on l to alice");
    assert.equal((await server.lines("l x=1,y=2\n", ALICE)).status, 204);
    assert.match((await server.lines("new x=1\n", ALICE)).text, /Access denied for alice \[CREATE TABLE\]/);
  },
  "imports by permission": async (server) => {
    await server.set(...SETUP, "create table imported (a int, b int)");
    const imp = (query: string) => {
      const body = new FormData();
      body.append("data", new Blob(["a,b\n1,2\n3,4\n"]), "x.csv");
      return server.request(`/imp?fmt=json&${query}`, basic(ALICE), { method: "POST", body });
    };
    const attempts: [query: string, grants: [permission: string, denied: string][]][] = [
      ["name=imported", [["INSERT on imported", "INSERT on imported"]]],
      ["name=made", [["CREATE TABLE", "CREATE TABLE"]]],
      ["name=imported&overwrite=true", [["DROP TABLE on imported", "DROP TABLE on imported"]]],
    ];
    for (const [query, grants] of attempts) {
      for (const [permission, denied] of grants) {
        const refused = await imp(query);
        assert.deepEqual([refused.status, JSON.parse(refused.text).status], [
          403,
          `Access denied for alice [${denied}]`,
        ]);
        await server.set(`grant ${permission} to alice`);
      }
      const { status, text } = await imp(query);
      assert.deepEqual([status, JSON.parse(text).rowsImported], [200, 2], text);
    }
    // A table belongs to the user who imported it.
    for (const table of ["made", "imported"]) {
      assert.deepEqual((await server.sql(`select count() from ${table}`, ALICE)).dataset, [[2]]);
    }
  },
});
