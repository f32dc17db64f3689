/** After a start, tables are opened by the first statement that uses them, of any kind. */
import assert from "node:assert/strict";
import { startServer } from "./server.ts";

/** More words than main parses itself. Twice as many can exceed the stack of a query over metadata. */
const LONG = `case v ${Array.from({ length: 1000 }, (_, k) => `when ${k} then ${2 * k}`).join(" ")} else 0 end`;

/** The first statement on table `t` after the start, its answer, and the result of `select v from t` afterwards. */
const FIRST: Record<string, { sql: string; rows?: unknown[][]; says?: RegExp; then?: unknown[][] }> = {
  scan: { sql: "select sum(v) from t where sym = 'b'", rows: [[2]] },
  count: { sql: "select count() from t", rows: [[3]] },
  latest: { sql: "select v from t latest on ts partition by sym", rows: [[2], [3]] },
  join: { sql: "select a.v, b.v from t a asof join t b", rows: [[1, 1], [2, 2], [3, 3]] },
  nested: {
    sql: "with c as (select * from t) select max(v) from (select * from c union all select * from c)",
    rows: [[3]],
  },
  partitions: { sql: "select numRows from table_partitions('t')", rows: [[2], [1]] },
  columns: { sql: "select symbolTableSize from table_columns('t')", rows: [[0], [2], [0]] },
  explain: { sql: "explain select v from t where ts in '2024-01-02'", says: /partitions 1 of 2; .* rows 1;/ },
  longExplain: { sql: `explain select ${LONG} from t where ts in '2024-01-02'`, says: /partitions 1 of 2; .* rows 1;/ },
  longMetadata: {
    sql: `select symbolTableSize from table_columns('t') where (${
      LONG.replaceAll("case v", "case symbolTableSize")
    }) >= 0`,
    rows: [[0], [2], [0]],
  },
  longQuery: { sql: `select v, ${LONG} s from t where sym = 'b'`, rows: [[2, 4]] },
  insert: { sql: "insert into t values ('2024-01-01', 'c', 9)", then: [[1], [9], [2], [3]] },
  update: { sql: "update t set v = v + 10 where sym = 'a'", then: [[11], [2], [13]] },
  delete: { sql: "delete from t where v = 2", then: [[1], [3]] },
  copy: {
    sql: "insert into t select dateadd('d', 5, ts), sym, v + 100 from t",
    then: [[1], [2], [3], [101], [102], [103]],
  },
  widened: { sql: "alter table t add column more int", then: [[1], [2], [3]] },
  narrowed: { sql: "alter table t drop column sym", then: [[1], [2], [3]] },
  truncated: { sql: "truncate table t", then: [] },
};

Deno.test("the first statement on a table after a start, of any kind, finds all of its rows", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  const names = Object.keys(FIRST).map((name) => `t_${name}`);
  let server = await startServer({ root });
  const exec = async (sql: string) => {
    const { dataset, error } = await server.exec(sql);
    assert.equal(error, undefined, `${sql.slice(0, 200)}: ${error}`);
    return dataset;
  };
  try {
    for (const name of names) {
      await exec(`create table ${name} (ts timestamp, sym symbol, v int) timestamp(ts) partition by day`);
      await exec(`insert into ${name} values ('2024-01-01', 'a', 1), ('2024-01-01T01', 'b', 2)`);
    }
    await exec("checkpoint create");
    await exec("checkpoint release");
    for (const name of names) await exec(`insert into ${name} values ('2024-01-02', 'a', 3)`);
    // Stop in order: tables with rows in the log would otherwise be opened in the background.
    await server.stop();
    server = await startServer({ root });
    const { dataset: known } = await server.exec("select count() from wal_tables() where sequencerTxn > 0");
    assert.deepEqual(known, [[names.length]]);
    for (const [name, { sql, rows, says, then }] of Object.entries(FIRST)) {
      const dataset = await exec(sql.replaceAll(/\bt\b/g, `t_${name}`));
      if (rows !== undefined) assert.deepEqual(dataset, rows, name);
      if (says !== undefined) assert.match(String(dataset), says);
      if (then !== undefined) assert.deepEqual(await exec(`select v from t_${name}`), then, name);
    }

    await server.stop();
    server = await startServer({ root });
    await exec("drop table t_scan");
    await exec("rename table t_update to changed");
    assert.deepEqual(await exec("select v from changed"), FIRST.update.then);
    assert.match((await server.exec("select * from t_scan")).error!, /t_scan/);
  } finally {
    await server.stop();
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("a table without partitions knows its last row on its first use after a start", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  let server = await startServer({ root });
  try {
    for (const name of ["short", "long"]) {
      await server.exec(`create table ${name} (ts timestamp, v int) timestamp(ts)`);
      await server.exec(`insert into ${name} values ('2024-01-02', 1)`);
    }
    await server.exec("checkpoint create");
    await server.exec("checkpoint release");
    for (const [name, rows] of [["short", 1], ["long", 2000]] as const) {
      await server.stop();
      server = await startServer({ root });
      const values = Array.from({ length: rows }, () => "('2024-01-02', 2)").join();
      assert.match((await server.exec(`insert into ${name} values ${values}, ('2024-01-01', 3)`)).error!, /older/);
      assert.equal((await server.exec(`insert into ${name} values ${values}`)).error, undefined);
      assert.deepEqual((await server.exec(`select count() from ${name}`)).dataset, [[1 + rows]]);
    }
  } finally {
    await server.stop();
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("a table that accepts rows only in time order knows its newest one, also if a statement was bound before opening", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  const names = ["later", "earlier", "long_earlier"];
  let server = await startServer({ root });
  try {
    for (const name of names) {
      for (
        const sql of [
          `create table ${name} (ts timestamp, v int) timestamp(ts)`,
          `insert into ${name} values ('2024-01-02', 1)`,
        ]
      ) assert.equal((await server.exec(sql)).error, undefined, sql);
    }
    await server.stop();
    server = await startServer({ root });
    assert.equal((await server.exec("insert into later values ('2024-01-03', 2)")).error, undefined);
    assert.match(
      (await server.exec("insert into earlier values ('2024-01-01', 2)")).error!,
      /older than the table's last/,
    );
    const long = `insert into long_earlier values ('2024-01-01', ${LONG.replace("case v", "case 1")})`;
    assert.match((await server.exec(long)).error!, /older than the table's last/);
    for (const name of names) {
      assert.deepEqual((await server.exec(`select count() from ${name}`)).dataset, [[name === "later" ? 2 : 1]]);
    }
  } finally {
    await server.stop();
    await Deno.remove(root, { recursive: true });
  }
});
