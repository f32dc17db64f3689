/** ALTER COLUMN TYPE: its values against casts, and beside rows that arrive meanwhile. */
import assert from "node:assert/strict";
import { isConvertible } from "../src/types/conversion.ts";
import { connectedPg } from "./pg-client.ts";
import { startServer, type TestServer } from "./server.ts";

async function rowsOf(server: TestServer, sql: string): Promise<unknown[][]> {
  const { error, dataset } = await server.exec(sql);
  assert.equal(error, undefined, sql);
  return dataset!;
}

const INTEGERS = ["0", "1", "48", "127", "-128", "300", "-32768", "100000", "2147483647", "-2147483647"];
const LONGS = [...INTEGERS, "5000000000", "1700000000123456", "-5", "9000000000000000000"];
const FRACTIONS = ["0.0", "1.9", "-2.5", "127.0", "-128.0", "127.5", "32767.9", "3e9", "1e20", "-1e300", "100000.7"];
const TEXTS = [
  ...[
    "10",
    "ten",
    "-4.5",
    "",
    "true",
    "TRUE",
    "t",
    "1",
    "300",
    "2024",
    "1_000",
    "+5",
    "-7",
    "99999999999",
    "1e3",
    "NaN",
  ],
  ...["2024-05-01T10:00:00.123456Z", "1.2.3.4", "11111111-2222-3333-4444-555555555555", "é日本", "1700000000000000"],
];
/** Texts of values by type; NULL is added to each. */
const VALUES: Record<string, readonly string[]> = {
  BOOLEAN: ["true", "false"],
  BYTE: INTEGERS.filter((value) => Math.abs(Number(value)) < 128),
  SHORT: INTEGERS.filter((value) => Math.abs(Number(value)) < 32768),
  INT: INTEGERS,
  LONG: LONGS,
  DATE: LONGS.slice(0, -1),
  TIMESTAMP: LONGS.slice(0, -1),
  TIMESTAMP_NS: LONGS,
  FLOAT: FRACTIONS,
  DOUBLE: FRACTIONS,
  CHAR: ["a", "7", "é"],
  UUID: TEXTS.slice(-3, -2),
  IPv4: ["1.2.3.4", "255.255.255.255"],
  STRING: TEXTS,
  VARCHAR: TEXTS,
  SYMBOL: TEXTS,
};

/** Where conversions are not casts. `text`: of the value. */
function expectedOf(from: string, to: string, text: string, cast: unknown): unknown {
  const isText = ["STRING", "VARCHAR", "SYMBOL"].includes(from);
  if (isText && to === "BOOLEAN") return text.toLowerCase() === "true";
  if (isText && (to === "BYTE" || to === "SHORT") && /^[+-]?[\d_]+$/.test(text)) {
    const value = Number(text.replaceAll("_", ""));
    if (Math.abs(value) >= 2 ** 31) return 0;
    return to === "BYTE" ? value << 24 >> 24 : value << 16 >> 16;
  }
  if ((from === "FLOAT" || from === "DOUBLE") && (to === "BYTE" || to === "SHORT")) {
    const value = from === "FLOAT" ? Math.fround(Number(text)) : Number(text), limit = to === "BYTE" ? 128 : 32768;
    return value >= -limit && value <= limit - 1 ? Math.trunc(value) : 0;
  }
  return cast;
}

Deno.test("values of each type become those of a cast to the other type", async () => {
  await using server = await startServer();
  for (const [from, given] of Object.entries(VALUES)) {
    const literal = (text: string) => /^(STR|VAR|SYM|CHAR|UUID|IPv4)/.test(from) ? `'${text}'` : text;
    const values = [...given, null].map((text, k) =>
      `(${k}, ${text === null ? `cast(null as ${from})` : `cast(${literal(text)} as ${from})`})`
    );
    for (const to of Object.keys(VALUES)) {
      if (from === to || !isConvertible(from, to)) continue;
      await rowsOf(server, "drop table if exists t");
      await rowsOf(server, `create table t (ts timestamp, c ${from}) timestamp(ts) partition by day`);
      await rowsOf(server, `insert into t values ${values.join()}`);
      const casts = await rowsOf(server, `select cast(c as ${to}) from t`);
      await rowsOf(server, `alter table t alter column c type ${to}`);
      const { columns, dataset } = await server.exec("select c from t");
      assert.equal(columns![0]!.type, to);
      const expected = casts.map(([cast], k) => [given[k] === undefined ? cast : expectedOf(from, to, given[k], cast)]);
      assert.deepEqual(dataset, expected, `${from} to ${to}`);
    }
  }
});

/** Writes lines until `isOver`, in texts that main parses and in such that query threads parse. Returns how many were accepted. */
async function writeLines(server: TestServer, isOver: () => boolean): Promise<number> {
  let sent = 0;
  for (let k = 0; !isOver() || k < 10; k++) {
    const count = k % 2 === 0 ? 10 : 1000;
    const lines = Array.from({ length: count }, (_, line) => `t,s=l n=1i ${1_700_000_000_000_000 + sent + line}000\n`);
    const reply = await fetch(`${server.http}/write`, { method: "POST", body: lines.join("") });
    const text = await reply.text();
    assert.equal(reply.status, 204, text);
    sent += count;
  }
  return sent;
}

async function insertRows(server: TestServer, isOver: () => boolean): Promise<number> {
  let inserted = 0;
  for (; !isOver() || inserted < 10; inserted++) {
    await rowsOf(server, `insert into t values ('2023-11-13T00:00:00.${String(inserted).padStart(6, "0")}Z', 'i', 1)`);
  }
  return inserted;
}

Deno.test("rows that arrive while columns are converted are neither lost nor doubled, also after SIGKILL", async () => {
  const root = Deno.makeTempDirSync({ prefix: "sundial-" });
  const rows = 1_000_000;
  let expected: unknown[];
  {
    const server = await startServer({ root });
    await rowsOf(
      server,
      `create table t as (select timestamp_sequence('2023-11-01', 1000000) ts, ('s' || x % 5)::symbol s, 1::int n` +
        ` from long_sequence(${rows})) timestamp(ts) partition by day wal`,
    );
    // Statements and plans that have been used before.
    const pg = await connectedPg(server);
    const insert = { name: "one", text: "insert into t values ($1, 'p', $2)" };
    await pg.query(insert, ["2023-11-12", 1]);
    const sum = "select count(), sum(n), count(n), count_distinct(s) from t";
    await rowsOf(server, sum);

    let isOver = false;
    const writers = [writeLines(server, () => isOver), insertRows(server, () => isOver)];
    const failed = Promise.all(writers).then(() => new Promise<never>(() => {}));
    const seen = async () => {
      while (!isOver) {
        const [[count, sum, notNull, distinct]] = await rowsOf(
          server,
          "select count(), sum(n), count(n), count_distinct(s) from t",
        );
        assert.deepEqual([sum, notNull], [count, count]);
        assert.ok((distinct as number) >= 6);
      }
    };
    const reader = seen();
    for (const [column, type] of [["n", "long"], ["s", "varchar"], ["n", "short"], ["s", "symbol"], ["n", "int"]]) {
      await Promise.race([rowsOf(server, `alter table t alter column ${column} type ${type}`), failed, reader]);
      await pg.query(insert, ["2023-11-12", 1]);
    }
    isOver = true;
    const added = (await Promise.all(writers)).reduce((all, count) => all + count) + 6;
    await reader;
    expected = [rows + added, rows + added, rows + added, 8];
    assert.deepEqual((await rowsOf(server, sum))[0], expected);
    const columns = await rowsOf(server, "show columns from t");
    assert.deepEqual(columns.map(([name, type]) => `${name} ${type}`), ["ts TIMESTAMP", "s SYMBOL", "n INT"]);
    await pg.end();
    server.process.kill("SIGKILL");
    await server.process.status;
  }
  {
    await using server = await startServer({ root });
    assert.deepEqual((await rowsOf(server, "select count(), sum(n), count(n), count_distinct(s) from t"))[0], expected);
  }
  Deno.removeSync(root, { recursive: true });
});
