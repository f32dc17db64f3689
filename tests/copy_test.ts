/** COPY: CSV files into tables, rows into Parquet files, and what becomes of copies. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ADMIN, startProtected } from "./access/server.ts";
import { until } from "./programs.ts";
import { startServer, type TestServer } from "./server.ts";

const CSV = "ts,sym,px\n2024-01-01T00:00:00Z,a,1.5\n2024-01-01T00:00:01Z,b,2.5\n2024-01-01T00:00:02Z,c,x\n";

async function started(server: TestServer, sql: string): Promise<string> {
  const { dataset, error } = await server.exec(sql);
  assert.equal(error, undefined, sql);
  return String(dataset![0][0]);
}

/** The last event of a copy, once it has ended. */
async function ended(server: TestServer, log: string, id: string, columns: string): Promise<unknown[]> {
  return await until(`copy ${id} has ended`, async () => {
    const sql = `select ${columns} from sys.${log} where id = '${id}' and status != 'started'`;
    return (await server.exec(sql)).dataset?.[0];
  });
}

Deno.test("COPY", async (t) => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  await Deno.mkdir(join(root, "import"));
  const file = (name: string, text: string) => Deno.writeTextFile(join(root, "import", name), text);
  await file("trades.csv", CSV);
  await using server = await startServer({ root });
  const rows = async (sql: string) => (await server.exec(sql)).dataset;
  const imported = async (sql: string, columns = "status, rows_imported, errors") =>
    await ended(server, "text_import_log", await started(server, sql), columns);
  const exported = async (sql: string, columns = "status, num_exported_files") =>
    await ended(server, "copy_export_log", await started(server, sql), columns);

  await t.step("makes a table of a file", async () => {
    const sql = "copy trades from 'trades.csv' with header true timestamp 'ts' partition by day on error skip_row";
    assert.deepEqual(await imported(sql), ["finished", 3, 0]);
    assert.deepEqual(await rows("select designatedTimestamp, partitionBy from tables()"), [["ts", "DAY"]]);
    assert.deepEqual(await rows("select count(), max(px) from trades"), [[3, "x"]]);
  });

  await t.step("has logs by time, like tables", async () => {
    const latest = "select table_name, status from sys.text_import_log latest on ts partition by id";
    const { dataset, columns, timestamp } = await server.exec(latest);
    assert.deepEqual([dataset, columns?.map(({ type }) => type)], [[["trades", "finished"]], ["SYMBOL", "SYMBOL"]]);
    assert.equal(timestamp, -1);
    assert.equal((await server.exec("sys.copy_export_log")).timestamp, 0);
    const sampled = await rows("select count() from sys.text_import_log where status != null sample by 100y");
    assert.equal(sampled?.length, 1);
  });

  await t.step("adds to a table, by what is to be done with values that do not fit", async () => {
    for (const [mode, found] of [["skip_row", ["finished", 2, 1]], ["skip_column", ["finished", 3, 1]]] as const) {
      await server.exec(`create table ${mode} (ts timestamp, sym symbol, px double) timestamp(ts) partition by day`);
      assert.deepEqual(await imported(`copy ${mode} from 'trades.csv' with header true on error ${mode}`), found);
    }
    assert.deepEqual(await rows("select sym, px from skip_column"), [["a", 1.5], ["b", 2.5], ["c", null]]);
    const abort = "copy skip_row from 'trades.csv' with header true on error abort";
    const [status, message] = await imported(abort, "status, message");
    assert.equal(status, "failed");
    assert.match(String(message), /line 4.*no row is imported/);
    assert.deepEqual(await rows("select count() from skip_row"), [[2]]);
  });

  await t.step("reads times in a format, and fields with a delimiter", async () => {
    await file("other.csv", "at;n\n03/01/2024 10:00;7\n");
    const sql = "copy other from 'other.csv' with header true timestamp 'at' format 'dd/MM/yyyy HH:mm' delimiter ';'";
    assert.deepEqual(await imported(sql), ["finished", 1, 0]);
    assert.deepEqual(await rows("other"), [["2024-01-03T10:00:00.000000Z", 7]]);
  });

  await t.step("reads the designated timestamp of a table in a format", async () => {
    await server.exec("create table day_first (n int, ts timestamp) timestamp(ts)");
    await server.exec("create table timeless (ts timestamp, n int)");
    await file("day_first.csv", "ts,n\n03/01/2024,1\n04/01/2024,2\n");
    const options = "header true format 'dd/MM/yyyy'";
    assert.deepEqual(await imported(`copy day_first from 'day_first.csv' with ${options}`), ["finished", 2, 0]);
    assert.deepEqual(await rows("day_first"), [[1, "2024-01-03T00:00:00.000000Z"], [2, "2024-01-04T00:00:00.000000Z"]]);
    for (const table of ["timeless", "nowhere"]) {
      const { error, position } = await server.exec(`copy ${table} from 'day_first.csv' with ${options}`);
      assert.match(error!, /FORMAT/);
      assert.equal(position, 0);
    }
  });

  await t.step("refuses delimiters that /imp refuses", async () => {
    for (const delimiter of ['"', "\n", "ab", "é"]) {
      const { error, position } = await server.exec(`copy trades from 'trades.csv' with delimiter '${delimiter}'`);
      assert.match(error!, /expected one ASCII character other than a quote or a line end/);
      assert.equal(position, 45);
    }
  });

  await t.step("tells of files that it cannot read, and does not leave its directory", async () => {
    const [status, message] = await imported("copy trades from 'none.csv'", "status, message");
    assert.deepEqual([status, message], ["failed", "none.csv does not exist in the import directory"]);
    await Deno.writeTextFile(join(root, "secret.csv"), CSV);
    await Deno.symlink(join(root, "secret.csv"), join(root, "import", "link.csv"));
    const [, why] = await imported("copy trades from 'link.csv' with header true", "status, message");
    assert.match(String(why), /link to a place outside/);
    for (const path of ["../secret.csv", join(root, "secret.csv"), "a/../../secret.csv", ""]) {
      const { error, position } = await server.exec(`copy trades from '${path}'`);
      assert.match(error!, /not a path in the directory/, path);
      assert.equal(position, 17);
    }
  });

  await t.step("writes tables and queries as Parquet files that can be read again", async () => {
    assert.deepEqual(await exported("copy trades to 'all' with format parquet"), ["finished", 1]);
    const query = "copy (select sym, px from trades where sym != 'b') to 'x/some.parquet' with format parquet";
    const [path] = await exported(
      `${query} compression_codec snappy data_page_size 4096 parquet_version 2 statistics_enabled true raw_array_encoding false partition_by none bloom_filter_columns 'sym, PX' bloom_filter_fpp '0.01'`,
      "export_path",
    );
    assert.equal(path, join(root, "export", "x", "some.parquet"));
    await Deno.copyFile(join(root, "export", "all.parquet"), join(root, "import", "all.parquet"));
    await Deno.copyFile(String(path), join(root, "import", "some.parquet"));
    assert.deepEqual(await rows("select * from read_parquet('all.parquet')"), await rows("trades"));
    assert.deepEqual(await rows("select * from read_parquet('some.parquet')"), [["a", "1.5"], ["c", "x"]]);
    for (const [codec, level] of [["gzip", 10], ["brotli", 12], ["zstd", 0], ["zstd", 23]]) {
      const text = `copy trades to 'no' with format parquet compression_level ${level} compression_codec ${codec}`;
      const { error, position } = await server.exec(text);
      assert.match(error!, /compression_level/, text);
      assert.equal(position, text.indexOf(`${level}`), text);
    }
    for (const wrong of ["bloom_filter_columns 'sym,nope'", "bloom_filter_fpp '1'", "bloom_filter_fpp 'few'"]) {
      const text = `copy trades to 'no' with format parquet ${wrong}`;
      const { error, position } = await server.exec(text);
      assert.match(error!, /bloom_filter/, text);
      assert.equal(position, text.lastIndexOf("'", text.length - 2), text);
    }
    const none = "copy trades to 'none' with format parquet compression_level 99 compression_codec lz4_raw";
    assert.deepEqual(await exported(none), ["finished", 1]);
    await Deno.remove(join(root, "export", "none.parquet"));
  });

  await t.step("a query that fails leaves the file as it was, and no other", async () => {
    const before = await Deno.readFile(join(root, "export", "all.parquet"));
    const fails =
      "copy (select (x::string || 'a')::long, simulate() from long_sequence(3)) to 'all' with format parquet";
    assert.match((await server.exec(fails)).error!, /simulate/);
    await Deno.writeTextFile(join(root, "export", ".unfinished-0123456789abcdef"), "of a process that was killed");
    const query = "select a.x from long_sequence(1000000) a cross join long_sequence(1000000)";
    const id = await started(
      server,
      `copy (${query}) to 'all' with format parquet`,
    );
    const active = "select export_id, username, export_path, export_sql from export_activity()";
    assert.deepEqual(await rows(active), [[id, "admin", "all.parquet", query]]);
    assert.deepEqual(await rows(`copy '${id}' cancel`), [[id, "cancelled"]]);
    assert.deepEqual(await ended(server, "copy_export_log", id, "status"), ["cancelled"]);
    assert.deepEqual(await rows(active), []);
    assert.deepEqual(await rows(`copy '${id}' cancel`), [[id, "unknown"]]);
    assert.deepEqual(await Deno.readFile(join(root, "export", "all.parquet")), before);
    // The next one removes what a process left that was killed.
    assert.deepEqual(await exported("copy trades to 'again' with format parquet"), ["finished", 1]);
    const names = (await Array.fromAsync(Deno.readDir(join(root, "export")))).map(({ name }) => name);
    assert.deepEqual(names.sort(), ["again.parquet", "all.parquet", "x"]);
  });

  await t.step("import_files(), export_files() and files() list files, without links and unfinished ones", async () => {
    await Deno.writeTextFile(join(root, "export", ".unfinished-1"), "");
    assert.deepEqual(await rows("select path, diskSize, diskSizeHuman from import_files() where path = 'other.csv'"), [
      ["other.csv", 24, "24.0 B"],
    ]);
    assert.deepEqual(await rows("select count() from import_files() where path = 'link.csv'"), [[0]]);
    const exports = [["again.parquet"], ["all.parquet"], [join("x", "some.parquet")]];
    assert.deepEqual(await rows("select path from export_files()"), exports);
    assert.deepEqual(await rows(`select path from files('${join(root, "export")}')`), exports);
    assert.deepEqual(await rows(`select path from files('${join(root, "export", "x")}')`), [["some.parquet"]]);
    assert.deepEqual(await rows("select count() > 0 from files('.') where modifiedTime <= now()"), [[true]]);
    for (const path of ["..", root, "none", "trades.csv", "/etc"]) {
      const { error, position } = await server.exec(`files('${path}')`);
      assert.match(error!, /not a directory in the import or export directory/, path);
      assert.equal(position, 6);
    }
    await Deno.remove(join(root, "export", ".unfinished-1"));
  });

  await t.step("glob() lists files of the import directory by a pattern, without links", async () => {
    const imports = join(root, "import"), inside = join(imports, "deep", "er");
    await Deno.mkdir(inside, { recursive: true });
    await Deno.writeTextFile(join(inside, "a1.csv"), "x\n");
    await Deno.symlink("/etc", join(imports, "deep", "etc"));
    const found = [[join("deep", "er", "a1.csv")]];
    for (const pattern of ["deep/**", "**/a?.csv", "d*/er/[a-c]*", "./deep//er/a1.csv", join(imports, "deep/*/*")]) {
      assert.deepEqual(await rows(`select path from glob('${pattern}')`), found, pattern);
    }
    assert.deepEqual(await rows("select diskSize from glob('other.csv')"), [[24]]);
    assert.deepEqual(await rows("select count() from glob('link*')"), [[0]]);
    assert.deepEqual(await rows("select count() from glob('none/*')"), [[0]]);
    const refused = ["", "..", "deep/../*", "/etc/*", join(root, "export", "*"), `${imports}2/*`];
    for (const pattern of refused) {
      assert.equal((await server.exec(`glob('${pattern}')`)).position, 5, pattern);
    }
    assert.equal((await server.exec("select glob('a1.csv', 'a*')")).dataset![0]![0], true);
    await Deno.remove(join(imports, "deep"), { recursive: true });
  });

  await t.step("the server stops while a copy runs", async () => {
    await started(
      server,
      "copy (select a.x from long_sequence(1000000) a cross join long_sequence(1000000)) to 'long' with format parquet",
    );
    await server.stop();
    await assert.rejects(Deno.stat(join(root, "export", "long.parquet")), Deno.errors.NotFound);
  });
});

Deno.test("copies of others are unknown without CANCEL ANY COPY", async () => {
  await using server = await startProtected();
  const sql = async (text: string, by = ADMIN) => {
    const { dataset, error } = await server.sql(text, by);
    assert.equal(error, undefined, text);
    return dataset;
  };
  const alice = { name: "alice", password: "alice's" };
  await sql("create user alice with password 'alice''s'");
  await sql("grant HTTP to alice");
  const long =
    "copy (select a.x from long_sequence(1000000) a cross join long_sequence(1000000)) to 'x' with format parquet";
  const [[id]] = (await sql(long))!;
  assert.deepEqual(await sql(`copy '${id}' cancel`, alice), [[id, "unknown"]]);
  assert.deepEqual(await sql("select count() from sys.copy_export_log", alice), [[0]]);
  await sql("grant CANCEL ANY COPY to alice");
  assert.deepEqual(await sql("select status from sys.copy_export_log", alice), [["started"]]);
  assert.deepEqual(await sql(`copy '${id}' cancel`, alice), [[id, "cancelled"]]);
});
