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
const PYTHON_OF_QUESTDB_CONNECT = join(TOOLS, "questdb-connect-1.1.4/bin/python");

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

const SEARCH_PATH = "string_to_array(current_setting('search_path'), ',')";
/** The condition by which Grafana selects tables. */
const IN_SEARCH_PATH = `quote_ident(table_schema) IN (
  SELECT CASE WHEN trim(p[i]) = '"$user"' THEN user ELSE trim(p[i]) END
  FROM generate_series(array_lower(${SEARCH_PATH}, 1), array_upper(${SEARCH_PATH}, 1)) AS i, ${SEARCH_PATH} p)`;

/** Sent when the tool connects. `rows`: their number. */
const START_UP_QUERIES: { title: string; rows: number; sql: string }[] = [
  {
    title: "DBeaver asks for tables",
    rows: 2,
    sql: `
      SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr,
      pg_catalog.pg_get_partkeydef(c.oid) as partition_key FROM pg_catalog.pg_class c LEFT OUTER JOIN
      pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass WHERE
      c.relnamespace=2200 AND c.relkind not in ('i', 'I', 'c')`,
  },
  {
    title: "DBeaver asks for columns",
    rows: 1,
    sql: `
      SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as
      def_value,dsc.description,dep.objid FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON
      (a.attrelid=c.oid) LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum =
      ad.adnum) LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
      LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid =
      a.attnum and dep.classid = dep.refclassid WHERE NOT a.attisdropped AND c.relname = 'other' ORDER BY
      a.attnum`,
  },
  {
    title: "Npgsql asks for types",
    rows: 18,
    sql: `
      SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid FROM (SELECT typ.oid,
      typ.typnamespace, typ.typname, typ.typtype, typ.typrelid, typ.typnotnull, typ.relkind, elemtyp.oid AS
      elemtypoid, elemtyp.typname AS elemtypname, elemcls.relkind AS elemrelkind, CASE WHEN
      elemproc.proname='array_recv' THEN 'a' ELSE elemtyp.typtype END AS elemtyptype, typ.typcategory FROM
      (SELECT typ.oid, typnamespace, typname, typrelid, typnotnull, relkind, typelem AS elemoid, typcategory,
      CASE WHEN proc.proname='array_recv' THEN 'a' ELSE typ.typtype END AS typtype, CASE WHEN
      proc.proname='array_recv' THEN typ.typelem WHEN typ.typtype='r' THEN rngsubtype WHEN typ.typtype='m' THEN
      (SELECT rngtypid FROM pg_range WHERE rngmultitypid = typ.oid) WHEN typ.typtype='d' THEN typ.typbasetype
      END AS elemtypoid FROM pg_type AS typ LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid) LEFT JOIN
      pg_proc AS proc ON proc.oid = typ.typreceive LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid)) AS typ
      LEFT JOIN pg_type AS elemtyp ON elemtyp.oid = elemtypoid LEFT JOIN pg_class AS elemcls ON (elemcls.oid =
      elemtyp.typrelid) LEFT JOIN pg_proc AS elemproc ON elemproc.oid = elemtyp.typreceive) AS t JOIN
      pg_namespace AS ns ON (ns.oid = typnamespace) WHERE (typtype IN ('b', 'r', 'm', 'e', 'd') OR (typtype =
      'c' AND relkind='c') OR (typtype = 'p' AND typname IN ('record', 'void', 'unknown')) OR (typtype = 'a'
      AND (elemtyptype IN ('b', 'r', 'm', 'e', 'd') OR (elemtyptype = 'p' AND elemtypname IN ('record',
      'void')) OR (elemtyptype = 'c' AND elemrelkind='c')))) ORDER BY CASE WHEN typtype IN ('b', 'e', 'p') THEN
      0 WHEN typtype = 'c' THEN 1 WHEN typtype = 'r' THEN 2 WHEN typtype = 'm' THEN 3 WHEN typtype = 'd' AND
      elemtyptype <> 'a' THEN 4 WHEN typtype = 'a' THEN 5 WHEN typtype = 'd' AND elemtyptype = 'a' THEN 6 END`,
  },
  {
    title: "Power BI asks for the encoding",
    rows: 1,
    sql: `
      select character_set_name from INFORMATION_SCHEMA.character_sets`,
  },
  {
    title: "Power BI asks for foreign keys",
    rows: 0,
    sql: `
      select pkcol.COLUMN_NAME as PK_COLUMN_NAME, fkcol.TABLE_SCHEMA AS FK_TABLE_SCHEMA, fkcol.TABLE_NAME AS
      FK_TABLE_NAME, fkcol.COLUMN_NAME as FK_COLUMN_NAME, fkcol.ORDINAL_POSITION as ORDINAL,
      fkcon.CONSTRAINT_SCHEMA || '_' || fkcol.TABLE_NAME || '_' || 'cl' || '_' || fkcon.CONSTRAINT_NAME as
      FK_NAME from (select distinct constraint_catalog, constraint_schema, unique_constraint_schema,
      constraint_name, unique_constraint_name from INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS) fkcon inner join
      INFORMATION_SCHEMA.KEY_COLUMN_USAGE fkcol on fkcon.CONSTRAINT_SCHEMA = fkcol.CONSTRAINT_SCHEMA and
      fkcon.CONSTRAINT_NAME = fkcol.CONSTRAINT_NAME inner join INFORMATION_SCHEMA.KEY_COLUMN_USAGE pkcol on
      fkcon.UNIQUE_CONSTRAINT_SCHEMA = pkcol.CONSTRAINT_SCHEMA and fkcon.UNIQUE_CONSTRAINT_NAME =
      pkcol.CONSTRAINT_NAME where pkcol.TABLE_SCHEMA = 'public' and pkcol.TABLE_NAME = 'cl' and
      pkcol.ORDINAL_POSITION = fkcol.ORDINAL_POSITION order by FK_NAME, fkcol.ORDINAL_POSITION`,
  },
  {
    title: "Metabase asks for tables",
    rows: 2,
    sql: `
      SELECT "n"."nspname" AS "schema", "c"."relname" AS "name", CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN
      'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN
      'MATERIALIZED VIEW' ELSE NULL END AS "type", "d"."description" AS "description",
      NULLIF("stat"."n_live_tup", 0) AS "estimated_row_count" FROM "pg_catalog"."pg_class" AS "c" INNER JOIN
      "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid" LEFT JOIN
      "pg_catalog"."pg_description" AS "d" ON ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = 0) AND
      ("d"."classoid" = 'pg_class'::regclass) LEFT JOIN "pg_stat_user_tables" AS "stat" ON ("n"."nspname" =
      "stat"."schemaname") AND ("c"."relname" = "stat"."relname") WHERE ("c"."relnamespace" = "n"."oid") AND
      ("n"."nspname" !~ '^pg_') AND ("n"."nspname" <> 'information_schema') AND c.relkind in ('r', 'p', 'v',
      'f', 'm') ORDER BY "type" ASC, "schema" ASC, "name" ASC`,
  },
  {
    title: "Grafana's PostgreSQL data source looks for tables on the search path",
    rows: 2,
    sql: `
      SELECT CASE WHEN ${IN_SEARCH_PATH} THEN quote_ident(table_name) ELSE 'elsewhere' || 1 / 0 END AS "table"
      FROM information_schema.tables ORDER BY CASE WHEN ${IN_SEARCH_PATH} THEN 0 ELSE 1 END, 1`,
  },
  {
    title: "Grafana's PostgreSQL data source asks for the columns of a table",
    rows: 9,
    sql: `
      SELECT column_name FROM information_schema.columns WHERE
      CASE WHEN array_length(parse_ident('public.t'), 1) = 2 THEN
      quote_ident(table_schema) = (parse_ident('public.t'))[1] AND quote_ident(table_name) = (parse_ident('public.t'))[2]
      ELSE ${IN_SEARCH_PATH} END`,
  },
  {
    title: "routines are counted",
    rows: 1,
    sql: `
      SELECT count(*) FROM information_schema.routines`,
  },
];

Deno.test("start-up queries of tools", async (t) => {
  await using server = await startWithTables();
  for (const { title, rows, sql } of START_UP_QUERIES) {
    await t.step(title, async () => {
      const { error, dataset } = await server.exec(sql.trim());
      assert.equal(error, undefined);
      assert.equal(dataset!.length, rows);
    });
  }
});

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
  name: "questdb-connect with SQLAlchemy 1.4",
  ignore: !await isInstalled("questdb-connect", PYTHON_OF_QUESTDB_CONNECT, "-c", "import questdb_connect"),
}, async () => {
  await using server = await startServer();
  const { text } = await run(
    PYTHON_OF_QUESTDB_CONNECT,
    "-W",
    "ignore",
    "questdb_connect_client.py",
    String(server.pgPort),
  );
  const ofEngine = `True
[('a', 1.5), ('b', -2.0)] 1
['signals'] True False
[('source', 'SYMBOL', False), ('value', 'DOUBLE', False), ('count', 'LONG', False), ('hot', 'BOOLEAN', False), ('ts', 'TIMESTAMP', True)]
`;
  assert.equal(text, ofEngine + ofEngine);
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
