/**
 * Acknowledged writes survive SIGKILL. The server is killed at random moments under load and restarted on the same root. Then every
 * acknowledged row is checked, and the state of tables on which one client runs statements of all kinds. SUNDIAL_KILLS=200 sets the
 * number of kills.
 */
import assert from "node:assert/strict";
import { startServer, type TestServer } from "./server.ts";

const KILLS = Number(Deno.env.get("SUNDIAL_KILLS") ?? "3");
const ROWS_PER_WRITE = 50;

/** A client that writes lines. A write is present completely or not at all, and completely if it was acknowledged. */
class LineWriter {
  private readonly acknowledged = new Set<number>();
  private sent = 0;

  constructor(private readonly table: string) {}

  async run(server: TestServer, isRunning: () => boolean): Promise<void> {
    while (isRunning()) {
      const write = this.sent++;
      const lines = Array.from(
        { length: ROWS_PER_WRITE },
        (_, i) =>
          `${this.table},tag=s${write % 17} write=${write}i,v=${i}.5,text="row ${i}" ${
            // Some rows are late.
            1_700_000_000_000_000 + write * 1_000_000 - (write % 5) * 7_000_000 + i}`,
      );
      const reply = await fetch(`${server.http}/write?precision=u`, { method: "POST", body: lines.join("\n") + "\n" });
      await reply.body?.cancel();
      if (reply.status !== 204) throw new Error(`/write answered ${reply.status}`);
      this.acknowledged.add(write);
    }
  }

  async check(server: TestServer): Promise<void> {
    if (this.acknowledged.size === 0) return;
    const reply = await server.exec(`select write, count() from ${this.table}`);
    assert.ok(reply.dataset, reply.error);
    const found = new Map(reply.dataset.map(([write, count]) => [Number(write), Number(count)]));
    for (const write of this.acknowledged) {
      assert.equal(found.get(write), ROWS_PER_WRITE, `write ${write} to ${this.table} was acknowledged`);
    }
    for (const [write, count] of found) assert.equal(count, ROWS_PER_WRITE, `write ${write} to ${this.table} is torn`);
  }
}

type Row = Record<string, number | string | null>;
interface Table {
  columns: string[];
  rows: Row[];
}
type Tables = Map<string, Table>;

interface Statement {
  sql: string;
  apply(tables: Tables): void;
}

const HOUR = 3_600_000_000;

/** `n` is the key of a row, `ts` its hour. */
function values(from: number, count: number): { sql: string; rows: Row[] } {
  const rows = Array.from({ length: count }, (_, k): Row => ({
    n: from + k,
    s: (from + k) % 5 === 0 ? null : `s${(from + k) % 3}`,
    ts: ((from + k) * 7) % 40,
  }));
  const text = (value: Row[string]) => (value === null ? "null" : typeof value === "number" ? value : `'${value}'`);
  return { sql: rows.map(({ n, s, ts }) => `(${n}, ${text(s)}, ${Number(ts) * HOUR})`).join(", "), rows };
}

/** Endless statements of all kinds, on their own tables. */
function* statements(): Generator<Statement> {
  const create = (name: string, more: string) =>
    `create table ${name} (n long, s symbol, ts timestamp) timestamp(ts) partition by day${more}`;
  const empty = (name: string) => (tables: Tables) => void tables.set(name, { columns: ["n", "s", "ts"], rows: [] });
  for (let cycle = 0, n = 0;; cycle++) {
    const t = `s${cycle % 3}`, copy = `copy${cycle % 2}`;
    const insert = (count: number): Statement => {
      const { sql, rows } = values(n, count);
      n += count;
      return {
        sql: `insert into ${t} (n, s, ts) values ${sql}`,
        apply: (tables) => {
          const { columns, rows: all } = tables.get(t)!;
          all.push(...rows.map((row) => Object.fromEntries(columns.map((name) => [name, row[name] ?? null]))));
        },
      };
    };
    yield { sql: `drop table if exists ${t}`, apply: (tables) => void tables.delete(t) };
    yield { sql: create(t, ""), apply: empty(t) };
    yield insert(20);
    yield insert(7);
    yield {
      sql: `update ${t} set s = 'changed' where n % 4 = 1`,
      apply: (tables) => tables.get(t)!.rows.forEach((row) => (Number(row.n) % 4 === 1 ? row.s = "changed" : 0)),
    };
    yield {
      sql: `delete from ${t} where n % 5 = 2`,
      apply: (tables) => void (tables.get(t)!.rows = tables.get(t)!.rows.filter((row) => Number(row.n) % 5 !== 2)),
    };
    yield {
      sql: `alter table ${t} add column more varchar`,
      apply: (tables) => {
        tables.get(t)!.columns.push("more");
        for (const row of tables.get(t)!.rows) row.more = null;
      },
    };
    yield insert(5);
    yield {
      sql: `update ${t} set more = 'm' || n where ts < ${20 * HOUR}`,
      apply: (tables) => tables.get(t)!.rows.forEach((row) => (Number(row.ts) < 20 ? row.more = `m${row.n}` : 0)),
    };
    yield {
      sql: `alter table ${t} rename column more to remark`,
      apply: (tables) => {
        const table = tables.get(t)!;
        table.columns[3] = "remark";
        for (const row of table.rows) (row.remark = row.more, delete row.more);
      },
    };
    yield { sql: `drop table if exists ${copy}`, apply: (tables) => void tables.delete(copy) };
    yield {
      sql: `create table ${copy} as (select * from ${t}) timestamp(ts) partition by hour`,
      apply: (tables) => void tables.set(copy, structuredClone(tables.get(t)!)),
    };
    yield {
      sql: `alter table ${t} drop column remark`,
      apply: (tables) => {
        tables.get(t)!.columns.pop();
        for (const row of tables.get(t)!.rows) delete row.remark;
      },
    };
    yield insert(3);
    yield { sql: `drop table if exists other`, apply: (tables) => void tables.delete("other") };
    yield {
      sql: `rename table ${copy} to other`,
      apply: (tables) => void (tables.set("other", tables.get(copy)!), tables.delete(copy)),
    };
    if (cycle % 3 === 2) yield { sql: `truncate table ${t}`, apply: (tables) => void (tables.get(t)!.rows = []) };
    yield { sql: `drop table if exists keys`, apply: (tables) => void tables.delete("keys") };
    yield { sql: create("keys", " dedup upsert keys(ts, s)"), apply: empty("keys") };
    for (const from of [n, n + 4, n + 40]) {
      const { sql, rows } = values(from, 12);
      yield {
        sql: `insert into keys values ${sql}`,
        apply: (tables) => {
          const keys = tables.get("keys")!;
          const isNew = (row: Row) => !rows.some(({ ts, s }) => ts === row.ts && s === row.s);
          keys.rows = [...keys.rows.filter(isNew), ...rows];
        },
      };
    }
    yield { sql: `drop table if exists young`, apply: (tables) => void tables.delete("young") };
    yield { sql: create("young", " ttl 1 day"), apply: empty("young") };
    for (const day of [0, 1, 4]) {
      yield {
        sql: `insert into young values (${day}, 'y', ${day * 24 * HOUR}), (${day}, 'y', ${(day * 24 + 13) * HOUR})`,
        apply: (tables) => {
          const { rows } = tables.get("young")!;
          for (const hour of [0, 13]) rows.push({ n: day, s: "y", ts: day * 24 + hour });
          const cutoff = day * 24 + 13 - 24;
          tables.get("young")!.rows = rows.filter(({ ts }) => (Math.floor(Number(ts) / 24) + 1) * 24 > cutoff);
        },
      };
    }
  }
}

/** A client that runs statements one after the other. */
class Scripted {
  private readonly statements = statements();
  private tables: Tables = new Map();
  /** The statement without an answer yet. */
  private open: Statement | undefined;
  count = 0;

  async run(server: TestServer, isRunning: () => boolean): Promise<void> {
    while (isRunning()) {
      this.open ??= this.statements.next().value as Statement;
      const { error } = await server.exec(this.open.sql);
      assert.equal(error, undefined, this.open.sql);
      this.open.apply(this.tables);
      this.open = undefined;
      this.count++;
    }
  }

  /** Checks that the state is as acknowledged, with or without the open statement. */
  async check(server: TestServer): Promise<void> {
    const found: Record<string, Row[]> = {};
    const { dataset } = await server.exec("select table_name from tables() order by 1");
    for (const [name] of dataset!) {
      if (/^k\d/.test(name as string)) continue;
      const { dataset: rows, columns, error } = await server.exec(`select * from ${name}`);
      assert.equal(error, undefined);
      found[name as string] = rows!.map((row) =>
        Object.fromEntries(
          columns!.map((
            column,
            k,
          ) => [column.name, column.name === "ts" ? Date.parse(row[k] as string) / 3_600_000 : row[k]]),
        ) as Row
      );
    }
    const before = structuredClone(this.tables);
    if (this.open === undefined || isSame(found, before)) {
      assert.deepEqual(sorted(found), sorted(contentOf(before)));
      return;
    }
    this.open.apply(this.tables);
    assert.deepEqual(
      sorted(found),
      sorted(contentOf(this.tables)),
      `neither before nor after ${this.open.sql}: ${JSON.stringify(sorted(contentOf(before)))}`,
    );
    this.open = undefined;
  }
}

const contentOf = (tables: Tables) => Object.fromEntries([...tables].map(([name, { rows }]) => [name, rows]));

/** The model does not define an order of rows with equal times. */
function sorted(content: Record<string, Row[]>): Record<string, string[]> {
  const keyed = (row: Row) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));
  return Object.fromEntries(
    Object.entries(content).map(([name, rows]) => [name, rows.map(keyed).sort()] as [string, string[]])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

function isSame(found: Record<string, Row[]>, tables: Tables): boolean {
  return JSON.stringify(sorted(found)) === JSON.stringify(sorted(contentOf(tables)));
}

Deno.test(`what was acknowledged survives ${KILLS} kills`, async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-kill-" });
  const scripted = new Scripted();
  const clients = [new LineWriter("k0"), new LineWriter("k1"), scripted];
  const env = { SVC_CAIRO_CHECKPOINT_LOG_SIZE: "1m", SVC_CAIRO_CHECKPOINT_INTERVAL: "1s" };
  try {
    for (let kill = 0; kill <= KILLS; kill++) {
      const server = await startServer({ root, env });
      try {
        for (const client of clients) await client.check(server);
      } catch (error) {
        throw new Error(`after kill ${kill}`, { cause: error });
      }
      if (kill === KILLS) {
        assert.equal(await server.stop(), 0);
        assert.ok(scripted.count > KILLS, `${scripted.count} statements`);
        break;
      }
      let running = true;
      const work = clients.map((client) =>
        client.run(server, () => running).catch((error) => {
          // The connection broke because the server was killed.
          if (running || !(error instanceof TypeError)) throw error;
        })
      );
      await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 1_000));
      running = false;
      server.process.kill("SIGKILL");
      await Promise.all(work);
      await server.process.status;
    }
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
