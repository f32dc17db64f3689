/** psql against the real server, if it is installed. */
import assert from "node:assert/strict";
import { installed } from "../programs.ts";
import { startServer } from "../server.ts";
import { runPsql } from "./psql.ts";

const isInstalled = (await installed(["psql"], "psql")).length > 0;

Deno.test({ name: "psql", ignore: !isInstalled }, async (t) => {
  await using server = await startServer();
  const psql = (input: string, ...args: string[]) => runPsql("psql", server.pgPort, input, "-t", ...args);

  await t.step("creates, inserts and selects", async () => {
    const output = await psql(
      "create table t (x int, v varchar, ts timestamp) timestamp(ts) partition by day;\ninsert into t values (1, 'ä', '2024-01-01'), (2, null, '2024-01-02');\nselect * from t;\nupdate t set x = 5 where x = 2;\nselect sum(x) from t;",
    );
    assert.equal(
      output,
      "OK\nINSERT 0 2\n1|ä|2024-01-01 00:00:00.000000\n2||2024-01-02 00:00:00.000000\nUPDATE 1\n6\n",
    );
  });

  await t.step("copies rows to its standard output", async () => {
    const input =
      "copy t (x, v) to stdout;\ncopy (select x, v, ts from t order by x desc) to stdout (format csv, header);\n" +
      "copy (select nothing from t) to stdout;\nselect 3;";
    const csv = "x,v,ts\n5,,2024-01-02 00:00:00.000000\n1,ä,2024-01-01 00:00:00.000000\n";
    assert.equal(await psql(input, "-q", "-v", "VERBOSITY=sqlstate"), `1\tä\n5\t\\N\n${csv}3\nERROR:  42703\n`);
  });

  await t.step("connects to a server that accepts changes, as libpq and pgx can ask for", async () => {
    const output = await psql("show transaction_read_only;", "-d", "dbname=qdb target_session_attrs=read-write");
    assert.equal(output, "off\n");
  });

  await t.step("shows the position of an error", async () => {
    assert.equal(
      await psql("select x,\n  nothing from t;\nselect 1;"),
      "1\nERROR:  there is no column nothing\nLINE 2:   nothing from t;\n          ^\n",
    );
  });

  await t.step("shows the state of a transaction", async () => {
    const output = await psql(
      "begin;\nselect 1;\nselect * from nobody;\nrollback;\nselect 2;",
      "-v",
      "VERBOSITY=sqlstate",
      "-q",
    );
    assert.equal(output, "1\n2\nERROR:  42P01\n");
  });

  await t.step("undoes a transaction, or with ON_ERROR_ROLLBACK only the failed statement", async () => {
    const output = await psql(
      "create table u (x int);\nbegin;\ninsert into u values (1);\nupdate u set x = 2;\nselect x from u;\nrollback;\n" +
        "select count() from u;\n\\set ON_ERROR_ROLLBACK on\nbegin;\ninsert into u values (3);\nselect * from nobody;\n" +
        "update u set x = 4;\ncommit;\nselect x from u;",
      "-v",
      "VERBOSITY=sqlstate",
      "-q",
    );
    assert.equal(output, "2\n0\n4\nERROR:  42P01\n");
    assert.equal(
      await psql("", "-q", "-c", "delete from u; select * from nobody", "-v", "VERBOSITY=sqlstate"),
      "ERROR:  42P01\n",
    );
    assert.equal(await psql("select x from u;\ndrop table u;", "-q"), "4\n");
  });

  await t.step("lists tables, schemas and kinds of objects that do not exist", async () => {
    assert.equal(
      await psql("\\dt\n\\dt t\n\\d nobody\n\\dn"),
      "public|t|table|admin\npublic|t|table|admin\npublic|admin\n" +
        'Did not find any relation named "nobody".\n',
    );
  });

  await t.step("lists databases, roles, functions, types and sizes", async () => {
    assert.equal(await psql("\\l"), "qdb|admin|UTF8|en_US.UTF-8|en_US.UTF-8||libc|\n");
    assert.match(await psql("\\du"), /^admin\|Superuser, Create DB\|/);
    for (const command of ["\\df", "\\dT"]) assert.equal(await psql(command), "", command);
    assert.match(await psql("\\dt+"), /^public\|t\|table\|admin\|permanent\|/);
    assert.equal(await psql("\\dn+"), "public|admin||\n");
    assert.equal(await psql("\\dp"), "public|t|table|||\n");
  });

  await t.step("describes a table", async () => {
    await psql("create table d (x int, s symbol, a double[], ts timestamp) timestamp(ts) partition by day;");
    const types = ["x|integer", "s|character varying", "a|double precision[]", "ts|timestamp without time zone"];
    assert.equal(await psql("\\d d"), types.map((line) => `${line}|||\n`).join(""));
    assert.equal(await psql("\\d public.d"), await psql("\\d d"));
    assert.equal(await psql("\\d+ d"), types.map((line) => `${line}||||plain||\n`).join(""));
    assert.match(await psql("\\d d", "-P", "tuples_only=off"), /Table "public.d"/);
    await psql("drop table d;");
  });

  await t.step("uses PostgreSQL's spellings", async () => {
    const sql =
      "select current_user, current_catalog, '7'::int4, 't'::regclass = oid from pg_class where relname = 't';";
    assert.equal(await psql(sql), "admin|qdb|7|t\n");
    const tables =
      "select pg_catalog.pg_class.relname from pg_catalog.pg_class where relkind = any (array['r', 'p']) " +
      "and pg_catalog.pg_class.relnamespace = 2200;";
    assert.equal(await psql(tables), "t\n");
    assert.equal(await psql("show server_encoding; select current_setting('server_version_num');"), "UTF8\n123000\n");
  });

  await t.step("sets variables, describes the connection, and uses values in statements", async () => {
    const output = await psql(
      "select 7 as seven \\gset\nselect :seven + 1;\nselect $1::int * 2 \\bind 21 \\g\n\\encoding\n\\echo :DBNAME",
    );
    assert.match(output, /^8\n/);
    assert.match(output, /UTF8\nqdb\n/);
  });
});
