/** Catalogue queries of PostgreSQL's tools and drivers; their programs are in `tests/clients/pg/`. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { fromFileUrl } from "../paths.ts";
import { startServer, type TestServer } from "../server.ts";

const PROGRAMS = fromFileUrl("./clients/pg/");
const TOOLS = join(
  Deno.env.get("XDG_CACHE_HOME") ?? join(Deno.env.get("HOME") ?? "", ".cache"),
  "sundial-ci",
);
/** Created by `.ci/run`. */
const PYTHON = join(TOOLS, "python/bin/python");

async function run(program: string, ...args: string[]): Promise<{ success: boolean; text: string }> {
  const command = new Deno.Command(program, { args, cwd: PROGRAMS, stdin: "null", stdout: "piped", stderr: "piped" });
  const { success, stdout, stderr } = await command.output();
  const decoder = new TextDecoder();
  return { success, text: decoder.decode(stdout) + decoder.decode(stderr) };
}

async function isInstalled(name: string, program: string, ...args: string[]): Promise<boolean> {
  try {
    if ((await run(program, ...args)).success) return true;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  console.log(`skipped: ${name} is not installed`);
  return false;
}

/** Downloaded by `.ci/run`. */
const JDBC = join(TOOLS, "postgresql-42.7.8.jar");

async function startWithTables(): Promise<TestServer> {
  const server = await startServer();
  const t =
    "create table t (x int, v varchar, s symbol index, d double, a double[], b boolean, u uuid, l long, ts timestamp)";
  for (const sql of [`${t} timestamp(ts) partition by day`, "create table other (n long)"]) await server.exec(sql);
  return server;
}

Deno.test({
  name: "SQLAlchemy inspects and reflects tables",
  ignore: !await isInstalled("SQLAlchemy", PYTHON, "-c", "import sqlalchemy, psycopg"),
}, async () => {
  await using server = await startWithTables();
  const { text } = await run(PYTHON, "sqlalchemy_client.py", String(server.pgPort));
  assert.equal(
    text,
    `schemas ['public']
tables ['other', 't'] True False
views [] [] []
column x INTEGER() True None
column v VARCHAR() True None
column s VARCHAR() True None
column d DOUBLE_PRECISION(precision=53) True None
column a ARRAY(DOUBLE_PRECISION(precision=53)) True None
column b BOOLEAN() True None
column u UUID() True None
column l BIGINT() True None
column ts TIMESTAMP() True None
primary key []
get_foreign_keys []
get_indexes []
get_unique_constraints []
get_check_constraints []
get_table_options {}
comment {'text': None}
types [] []
no table nobody
reflected ['other', 't'] ['x', 'v', 's', 'd', 'a', 'b', 'u', 'l', 'ts']
rows [(7, 'seven')]
`,
  );
});

Deno.test({
  name: "JDBC's DatabaseMetaData",
  ignore: !await isInstalled("JDBC", "java", "-cp", JDBC, "Catalog.java"),
}, async () => {
  await using server = await startWithTables();
  const { text } = await run("java", "-cp", JDBC, "Catalog.java", String(server.pgPort));
  assert.equal(
    text,
    `catalogs
  qdb
schemas
  pg_catalog
  public
schemas p%
  public
tables
  public other TABLE
  public t TABLE
tables t
  public t TABLE
columns
  t x 4 int4 1 YES
  t v 12 varchar 2 YES
  t s 12 varchar 3 YES
  t d 8 float8 4 YES
  t a 2003 _float8 5 YES
  t b -7 bool 6 YES
  t u 1111 uuid 7 YES
  t l -5 int8 8 YES
  t ts 93 timestamp 9 YES
column n
  other n -5 int8 1 YES
primary keys
indexes
imported keys
exported keys
procedures
functions
best row
types
  bool -7
  int8 -5
  bigserial -5
  oid -5
  bpchar 1
  numeric 2
  int4 4
  serial 4
  int2 5
  smallserial 5
  float4 7
  float8 8
  name 12
  varchar 12
  date 91
  timestamp 93
  binary 1111
  internal 1111
  uuid 1111
  _varchar 2003
  _float8 2003
keywords true
all true
failed []
`,
  );
});

Deno.test({
  name: "asyncpg",
  ignore: !await isInstalled("asyncpg", PYTHON, "-c", "import asyncpg"),
}, async () => {
  await using server = await startWithTables();
  const { text } = await run(PYTHON, "asyncpg_client.py", String(server.pgPort));
  assert.equal(
    text,
    "same True\nundone []\nsum 20100\nprepared [11, 12, 13] ['int8']\n" +
      "arrays True\ncomputed [2.0, 5.0]\ncursor [[1.5, -2.0], []]\n",
  );
});
