/** POST /imp: its parameters and report, and that nothing is lost or half done. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { until } from "./programs.ts";
import { startServer, type TestServer } from "./server.ts";

const TRADES = "ts,n,d,b,t\n2024-01-01T00:00:00.000000Z,1,1.5,true,one\n" +
  '2024-01-01T01:00:00.000000Z,2,2.5,false,"two, ""2"""\n2024-01-02T00:00:00.000000Z,,,,\n';

interface Report {
  status: string;
  rowsImported: number;
  rowsRejected: number;
  header: boolean;
  partitionBy: string;
  timestamp?: string;
  warnings?: string[];
  columns: { name: string; type: string; size: number; errors: number }[];
  faults?: { line: number; column?: string; value?: string; reason: string }[];
  faultCount?: number;
  faultsResult?: string;
}

interface Sent {
  schema?: unknown;
  fileName?: string;
  headers?: Record<string, string>;
}

async function post(server: TestServer, parameters: Record<string, string>, csv: string, sent: Sent = {}) {
  const body = new FormData();
  if (sent.schema !== undefined) {
    body.append("schema", typeof sent.schema === "string" ? sent.schema : JSON.stringify(sent.schema));
  }
  body.append("data", new Blob([csv]), sent.fileName ?? "data.csv");
  const url = `${server.http}/imp?${new URLSearchParams(parameters)}`;
  const reply = await fetch(url, { method: "POST", body, headers: sent.headers });
  return { status: reply.status, text: await reply.text() };
}

async function imp(server: TestServer, parameters: Record<string, string>, csv: string, sent?: Sent): Promise<Report> {
  const { status, text } = await post(server, { fmt: "json", ...parameters }, csv, sent);
  assert.equal(status, 200, text);
  return JSON.parse(text);
}

const rowsOf = async (server: TestServer, sql: string) => (await server.exec(sql)).dataset;
const typesOf = ({ columns }: Report) => columns.map(({ name, type }) => `${name} ${type}`).join();

Deno.test("/imp", async (t) => {
  await using server = await startServer();

  await t.step("makes a table with the types of the file, and reports them", async () => {
    assert.deepEqual(await imp(server, { name: "t1" }, TRADES), {
      status: "OK",
      location: "t1",
      rowsRejected: 0,
      rowsImported: 3,
      header: true,
      partitionBy: "NONE",
      columns: [
        { name: "ts", type: "TIMESTAMP", size: 8, errors: 0 },
        { name: "n", type: "INT", size: 4, errors: 0 },
        { name: "d", type: "DOUBLE", size: 8, errors: 0 },
        { name: "b", type: "BOOLEAN", size: 1, errors: 0 },
        { name: "t", type: "VARCHAR", size: 0, errors: 0 },
      ],
    });
    assert.deepEqual(await rowsOf(server, "select * from t1"), [
      ["2024-01-01T00:00:00.000000Z", 1, 1.5, true, "one"],
      ["2024-01-01T01:00:00.000000Z", 2, 2.5, false, 'two, "2"'],
      ["2024-01-02T00:00:00.000000Z", null, null, false, null],
    ]);
  });

  await t.step("detects dates with slashes, also for a table that exists, and takes NULL for no value", async () => {
    const days = "day,n\n31/01/2024,1\n01/02/2024,NULL\n";
    const report = await imp(server, { name: "days", atomicity: "abort" }, days);
    assert.equal(typesOf(report), "day DATE,n VARCHAR");
    await server.exec("create table more_days (day timestamp, n int) timestamp(day) partition by day");
    assert.equal((await imp(server, { name: "more_days", atomicity: "abort" }, days)).rowsImported, 2);
    assert.deepEqual(await rowsOf(server, "select * from more_days"), [
      ["2024-01-31T00:00:00.000000Z", 1],
      ["2024-02-01T00:00:00.000000Z", null],
    ]);
    const american = "day n\n01/31/2024 1\n02/01/2024 2\n", schema = [{ name: "day", type: "TIMESTAMP" }];
    await imp(server, { name: "months", timestamp: "day", partitionBy: "MONTH" }, american, { schema });
    assert.deepEqual(await rowsOf(server, "select * from months"), [
      ["2024-01-31T00:00:00.000000Z", 1],
      ["2024-02-01T00:00:00.000000Z", 2],
    ]);
    assert.equal((await imp(server, { name: "months2" }, american, { schema: "" })).rowsImported, 2);
  });

  await t.step("words of parameters may have any case", async () => {
    assert.equal((await imp(server, { name: "t0", fmt: "JSON" }, TRADES)).rowsImported, 3);
    const { text } = await post(server, { name: "t0", fmt: "Json", partitionBy: "day" }, TRADES);
    assert.equal(JSON.parse(text).status, "OK");
  });

  await t.step("takes lines that end with CR, in a file of several pieces", async () => {
    const lines = Array.from({ length: 100_000 }, (_, n) => `${n}L,${n}.5f,"text\r${n}"\r`);
    const report = await imp(server, { name: "cr" }, `a,b,c\r${lines.join("")}`);
    assert.deepEqual([typesOf(report), report.rowsImported, report.rowsRejected], [
      "a LONG,b DOUBLE,c VARCHAR",
      100_000,
      0,
    ]);
    const sums = "select count(), count_distinct(a), sum(b - a), count_distinct(c), max(length(c)) from cr";
    assert.deepEqual(await rowsOf(server, sums), [[100_000, 100_000, 50_000, 100_000, 10]]);
  });

  await t.step("reports sizes and names of types as QuestDB does", async () => {
    const types: [type: string, size: number][] = [["GEOHASH(7b)", 1], ["GEOHASH(3c)", 2], ["GEOHASH(31b)", 4]];
    types.push(["GEOHASH(8c)", 8], ["DECIMAL(2,1)", 1], ["DECIMAL(4,1)", 2], ["DECIMAL(9,1)", 4], ["DECIMAL(18,1)", 8]);
    types.push(["DECIMAL(38,1)", 16], ["DECIMAL(76,1)", 32], ["DOUBLE[][]", 0], ["UUID", 16], ["VARCHAR", 0]);
    await server.exec(`create table sizes (${types.map(([type], k) => `c${k} ${type}`).join()})`);
    const { columns } = await imp(server, { name: "sizes", forceHeader: "true", delimiter: "," }, "c0\n\n");
    assert.deepEqual(columns.map(({ type, size }) => [type, size]), types);
  });

  await t.step("warns of parts behind the file, which have no effect", async () => {
    const body = new FormData();
    for (const csv of ["a,b\n1,2\n", "a,b\n3,4\n"]) body.append("data", new Blob([csv]), "late.csv");
    body.append("schema", '[{"name":"a","type":"STRING"}]');
    const reply = await fetch(`${server.http}/imp?fmt=json`, { method: "POST", body });
    const { warnings, ...report } = await reply.json() as Report;
    assert.deepEqual([typesOf(report), report.rowsImported], ["a INT,b INT", 1]);
    assert.deepEqual(warnings, [
      "another part data is behind the file: it was not imported",
      "the part schema is behind the file: it has no effect, send it before the file",
    ]);
  });

  await t.step("adds to a table, and overwrites it", async () => {
    await imp(server, { name: "t1" }, TRADES);
    assert.deepEqual(await rowsOf(server, "select count() from t1"), [[6]]);
    await imp(server, { name: "t1", overwrite: "true" }, "a,b\n1,x\n2,y\n");
    assert.deepEqual(await rowsOf(server, "select * from t1"), [[1, "x"], [2, "y"]]);
  });

  await t.step("takes the designated timestamp in any ISO form", async () => {
    for (
      const [name, time] of [["t2a", "2024-01-01T00:00:00.000000Z"], ["t2b", "2024-01-01T00:00:00Z"], [
        "t2c",
        "2024-01-01",
      ]]
    ) {
      const report = await imp(server, { name, timestamp: "ts", partitionBy: "day" }, `ts,n\n${time},1\n${time},2\n`);
      assert.deepEqual([report.partitionBy, report.timestamp], ["DAY", "ts"]);
      const tables = `select designatedTimestamp, partitionBy from tables() where table_name = '${name}'`;
      assert.deepEqual(await rowsOf(server, tables), [["ts", "DAY"]]);
      assert.deepEqual(await rowsOf(server, `select count() from ${name} where ts in '2024-01-01'`), [[2]]);
    }
  });

  await t.step("matches columns of a table by name in any order, and warns of other options", async () => {
    const csv = "N,ts\n7,2024-01-03T00:00:00.000000Z\n8,\n";
    const report = await imp(server, { name: "t2a", timestamp: "n", partitionBy: "HOUR" }, csv);
    assert.deepEqual([report.rowsImported, report.rowsRejected, report.warnings?.length], [1, 1, 2]);
    assert.deepEqual(report.columns.map(({ name, errors }) => [name, errors]), [["ts", 1], ["n", 0]]);
    assert.deepEqual(await rowsOf(server, "select n from t2a where ts = '2024-01-03'"), [[7]]);
  });

  await t.step("takes types and patterns from the schema", async () => {
    const schema = [
      { name: "k", type: "LONG" },
      { name: "when", type: "TIMESTAMP", pattern: "dd/MM/yyyy" },
      { name: "q", type: "SYMBOL", index: true },
      { name: "g", type: "GEOHASH(3c)" },
      { name: "m", type: "DECIMAL(10,2)" },
      { name: "book", type: "DOUBLE[][]" },
      { name: "nobody", type: "INT" },
    ];
    const csv = 'k,when,q,g,m,book\n1,03/02/2024,a,u33d,1.25,"[[1,2.5],[3,4]]"\n2,04/02/2024,b,zz,2,[1]\n';
    const report = await imp(server, { name: "t3" }, csv, { schema });
    assert.equal(typesOf(report), "k LONG,when TIMESTAMP,q SYMBOL,g GEOHASH(3c),m DECIMAL(10,2),book DOUBLE[][]");
    assert.deepEqual(report.columns.map(({ errors }) => errors), [0, 0, 0, 1, 0, 1]);
    assert.deepEqual(await rowsOf(server, "select k, when, q, g, m::string, book from t3"), [
      [1, "2024-02-03T00:00:00.000000Z", "a", "u33", "1.25", [[1, 2.5], [3, 4]]],
      [2, "2024-02-04T00:00:00.000000Z", "b", null, "2.00", null],
    ]);
  });

  await t.step("reports the lines that did not fit, if it is asked, and keeps all of them for a while", async () => {
    const lines = Array.from({ length: 300 }, (_, k) => `${k},${k % 3 === 0 ? `bad ${k}` : k}`);
    const csv = `a,b\n${lines.join("\n")}\n1,2,3\n`;
    const form = { name: "t9", forceHeader: "true", delimiter: ",", faults: "2" };
    const schema = [{ name: "b", type: "INT" }];
    assert.equal((await imp(server, { ...form, faults: "" }, csv, { schema })).faults, undefined);
    const report = await imp(server, form, csv, { schema });
    assert.equal(report.status, "OK");
    const first = { line: 2, column: "b", value: "bad 0", reason: "expected INT" };
    assert.deepEqual(report.faults, [first, { ...first, line: 5, value: "bad 3" }]);
    assert.equal(report.faultCount, 101);
    const all = await fetch(`${server.http}/api/v1/sql/results?id=${report.faultsResult}&first=0`);
    const { columns, dataset } = await all.json();
    assert.deepEqual(columns.map(({ name }: { name: string }) => name), ["line", "column", "value", "reason"]);
    assert.deepEqual([dataset.length, dataset[0]], [101, ["2", "b", "bad 0", "expected INT"]]);
    assert.deepEqual(dataset.at(-1), ["302", null, "1,2,3", "found 3 values, expected 2"]);
    const few = await imp(server, { ...form, faults: "1000" }, csv, { schema });
    assert.deepEqual([few.faults?.length, few.faultCount, few.faultsResult], [101, 101, undefined]);
  });

  await t.step("leaves out columns by name and by number", async () => {
    const csv = "a,b,c,b\n1,x,2,z\n3,y,4,z\n";
    const refused = await imp(server, { name: "t10", forceHeader: "true" }, csv);
    assert.match(refused.status, /two columns called b/);
    await imp(server, { name: "t10", forceHeader: "true", omit: "c, 3" }, csv);
    assert.deepEqual(await rowsOf(server, "select * from t10"), [[1, "x"], [3, "y"]]);
    await imp(server, { name: "t10", omit: "0" }, "9,5,v\n9,6,w\n");
    assert.deepEqual(await rowsOf(server, "select * from t10"), [[1, "x"], [3, "y"], [5, "v"], [6, "w"]]);
    assert.match((await imp(server, { name: "t10", omit: "d" }, csv)).status, /no column d/);
    assert.match((await imp(server, { name: "t10", omit: "a,b,c" }, csv)).status, /no column of the file is left/);
  });

  await t.step("names the table as the file", async () => {
    await imp(server, {}, "a,b\n1,2\n3,4\n", { fileName: "my file.csv" });
    assert.deepEqual(await rowsOf(server, 'select * from "my file.csv"'), [[1, 2], [3, 4]]);
  });

  await t.step("treats values that do not fit as atomicity says", async () => {
    const csv = "a,b\n1,2\nx,4\n5,6\n";
    const form = { name: "t4", forceHeader: "true" };
    await imp(server, form, "a,b\n0,0\n");
    const skipCol = await imp(server, form, csv);
    assert.deepEqual([skipCol.rowsImported, skipCol.rowsRejected, skipCol.columns[0].errors], [3, 0, 1]);
    const skipRow = await imp(server, { ...form, atomicity: "skipRow" }, csv);
    assert.deepEqual([skipRow.rowsImported, skipRow.rowsRejected, skipRow.columns[0].errors], [2, 1, 1]);
    const abort = await imp(server, { ...form, atomicity: "abort" }, csv);
    assert.deepEqual(abort, {
      status: "line 3: column a: found 'x', expected INT; no row is imported, because atomicity=abort",
    });
    assert.deepEqual(await rowsOf(server, "select count(), sum(a) from t4"), [[6, 12]]);
  });

  await t.step("tells a line with too many values", async () => {
    const csv = "a,b\n1,2\n3,4,5\n6,7\n", form = { name: "t5", delimiter: "," };
    const report = await imp(server, { ...form, skipLev: "true" }, csv);
    assert.deepEqual([report.rowsImported, report.rowsRejected], [2, 1]);
    const { status } = await imp(server, { ...form, overwrite: "true", atomicity: "abort" }, csv);
    assert.match(status, /^line 3: found 3 values, expected 2;/);
    assert.deepEqual(await rowsOf(server, "select count() from t5"), [[2]], "the table is as before");
  });

  const refusals: [title: string, parameters: Record<string, string>, csv: string, says: RegExp, sent?: Sent][] = [
    ["partitionBy without timestamp", { partitionBy: "DAY" }, TRADES, /^partitionBy=DAY needs/],
    ["an unknown partitionBy", { timestamp: "ts", partitionBy: "FOO" }, TRADES, /^partitionBy: found 'FOO'/],
    ["a timestamp that is not there", { timestamp: "zz" }, TRADES, /^the file has no column zz/],
    ["a timestamp that is no time", { timestamp: "n" }, TRADES, /found INT, expected TIMESTAMP/],
    ["no table with create=false", { create: "false" }, TRADES, /^table none does not exist/],
    ["a broken schema", {}, TRADES, /^schema: it is not JSON/, { schema: '[{"name":"k","type":' }],
    ["an unknown type", {}, TRADES, /^schema: unknown type '.*' of column k/, {
      schema: [{ name: "k", type: "WHAT" }],
    }],
    ["a schema that is no array", {}, TRADES, /^schema: it is not an array/, { schema: {} }],
    ["an empty file", {}, "", /^the file is empty/],
    ["a single line", {}, "1,2\n", /set the parameter delimiter/],
    ["two columns of one name", {}, "a,A\n1,2\n3,4\n", /two columns called A/],
    ["a name with a slash", { name: "a/b" }, TRADES, /^table name 'a\/b'/],
    ["a delimiter of two characters", { delimiter: ",," }, TRADES, /^delimiter: found ",,"/],
  ];
  for (const [title, parameters, csv, says, sent] of refusals) {
    await t.step(`refuses ${title}, in JSON and in text, and makes no table`, async () => {
      assert.match((await imp(server, { name: "none", ...parameters }, csv, sent)).status, says);
      const text = await post(server, { name: "none", ...parameters }, csv, sent);
      assert.equal(text.status, 200);
      assert.match(text.text, says);
      assert.match((await server.exec("select * from none")).error!, /none/);
    });
  }

  await t.step("tells what a table lacks", async () => {
    assert.match(
      (await imp(server, { name: "t4" }, "a,c\n1,2\n3,4\n")).status,
      /^the file's header has a column c, which table t4 does not have/,
    );
    assert.match(
      (await imp(server, { name: "t4" }, "a,b,c\n1,2,3\n3,4,5\n")).status,
      /has 3 columns, but table t4 has 2/,
    );
    assert.match((await imp(server, { name: "t2a" }, "n\n1\n2\n")).status, /no column for the designated timestamp ts/);
  });

  await t.step("reports as text of a fixed width", async () => {
    const { text } = await post(server, { name: "t6", timestamp: "ts", partitionBy: "DAY" }, TRADES);
    const lines = text.split("\r\n");
    assert.equal(lines.pop(), "");
    assert.deepEqual(new Set(lines.map((line) => line.length)), new Set([115]));
    assert.equal(lines[1].replaceAll(/ +/g, " "), "| Location: | t6 | Pattern | Locale | Errors |");
    assert.equal(lines[5].replaceAll(/ +/g, " "), "| Rows handled | 3 | | | |");
    assert.equal(lines[8].replaceAll(/ +/g, " "), "| 0 | ts | TIMESTAMP | 0 |");
  });

  await t.step("takes multipart bodies by POST only", async () => {
    const plain = await fetch(`${server.http}/imp?name=none`, { method: "POST", body: "a,b\n1,2\n" });
    assert.deepEqual([plain.status, await plain.text()], [400, "Non-multipart POST not supported\r\n"]);
    const get = await fetch(`${server.http}/imp`);
    assert.deepEqual([get.status, await get.text()], [405, "Method GET not supported\r\n"]);
  });

  await t.step("takes no file from pages of other sites", async () => {
    const headers = { origin: "https://evil.example.org" };
    assert.equal((await post(server, { name: "none" }, TRADES, { headers })).status, 403);
    assert.ok((await server.exec("select * from none")).error);
  });

  await t.step("imports files of many pieces, with line ends in values, into new and existing tables", async () => {
    const rowCount = 150_000;
    const text = (row: number) => row % 1000 === 0 ? `"line 1\nline ${row}, ""quoted"""` : `text of row ${row}`;
    const lines = Array.from({ length: rowCount }, (_, row) => `${row},${text(row)},${"x".repeat(1 + row % 80)}`);
    const csv = `id,text,more\n${lines.join("\n")}\n`;
    for (
      const [parameters, expected] of [
        [{ name: "big", maxUncommittedRows: "-1" }, 1],
        [{ name: "big", maxUncommittedRows: "20000" }, 2],
      ] as const
    ) {
      const report = await imp(server, parameters, csv);
      assert.deepEqual([report.rowsImported, report.rowsRejected], [rowCount, 0]);
      const sql = "select count(), sum(id), count_distinct(id), count_distinct(text), sum(length(more)) from big";
      const lengths = lines.reduce((sum, _, row) => sum + 1 + row % 80, 0);
      const sum = rowCount * (rowCount - 1) / 2;
      assert.deepEqual(await rowsOf(server, sql), [[
        expected * rowCount,
        expected * sum,
        rowCount,
        rowCount,
        expected * lengths,
      ]]);
    }
    assert.deepEqual(await rowsOf(server, "select distinct text from big where id = 149000"), [[
      'line 1\nline 149000, "quoted"',
    ]]);
    const abort = await imp(server, { name: "big", atomicity: "abort" }, `${csv}x,y,z\n`);
    assert.match(abort.status, /^line 150152: column id: found 'x', expected INT/);
    assert.deepEqual(await rowsOf(server, "select count() from big"), [[2 * rowCount]]);
  });

  await t.step("overwrites a table with a large file at once", async () => {
    const lines = Array.from({ length: 400_000 }, (_, row) => `${row},${"y".repeat(60)}`);
    await imp(server, { name: "big", overwrite: "true" }, `id,text\n${lines.join("\n")}\n`);
    assert.deepEqual(await rowsOf(server, "select count(), max(id) from big"), [[400_000, 399_999]]);
    const names = await rowsOf(server, "select table_name from tables() where table_name like '%import%'");
    assert.deepEqual(names, []);
    const again = await imp(
      server,
      { name: "big", overwrite: "true", atomicity: "abort" },
      `id,text\n${lines.join("\n")}\nx,y\n`,
    );
    assert.match(again.status, /^line 400002: column id/);
    assert.deepEqual(await rowsOf(server, "select count(), max(id) from big"), [[400_000, 399_999]]);
  });

  await t.step("takes short lines for many columns", async () => {
    const header = Array.from({ length: 3000 }, (_, column) => `c${column}`).join();
    const csv = `${header}\n${"1\n".repeat(1500)}`;
    const report = await imp(server, { name: "wide", delimiter: ",", forceHeader: "true" }, csv);
    assert.deepEqual([report.rowsImported, report.rowsRejected, report.columns.length], [1500, 0, 3000]);
    assert.deepEqual(await rowsOf(server, "select sum(c0), count(c2999) from wide"), [[1500, 0]]);
  });

  await t.step("keeps nothing of a file whose client leaves", async () => {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.httpPort });
    const head = "POST /imp?name=gone HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=B\r\n" +
      "Content-Length: 100000000\r\n\r\n--B\r\nContent-Disposition: form-data; name=data; filename=x\r\n\r\na,b\n";
    await connection.write(new TextEncoder().encode(head + "1,2\n".repeat(1000)));
    connection.close();
    for (let attempt = 0; attempt < 20; attempt++) {
      assert.ok((await server.exec("select * from gone")).error);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  });
});

Deno.test("/imp and COPY tell a line that is too long, and a read-only server imports nothing", async () => {
  await using server = await startServer({ env: { SVC_HTTP_TEXT_ROLL_BUFFER_LIMIT: "3m" } });
  const long = `a,b\n1,2\n3,"${"x".repeat(5 << 20)}"\n`;
  const { status } = await imp(server, { name: "t", delimiter: "," }, long);
  assert.equal(status, "line 3: it is longer than 3145728 bytes (http.text.roll.buffer.limit)");
  assert.ok((await server.exec("select * from t")).error);
  await Deno.writeTextFile(join(server.root, "import", "long.csv"), long);
  await server.exec("copy t from 'long.csv' with header true delimiter ','");
  const message = await until("the copy has ended", async () => {
    const { dataset } = await server.exec("select message from sys.text_import_log where status = 'failed'");
    return dataset?.[0]?.[0];
  });
  assert.equal(message, status);
  await using readOnly = await startServer({ env: { SVC_HTTP_SECURITY_READONLY: "true" } });
  assert.equal((await imp(readOnly, { name: "t" }, TRADES)).status, "the server is read-only");
});
