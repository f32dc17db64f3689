import assert from "node:assert/strict";
import { join } from "node:path";
import { configOf } from "../../../command/testing.ts";
import { DiskFullError } from "../../../errors.ts";
import { FAKE_CONSOLE } from "../../testing/fake-console.ts";
import { FakeDatabase, type FakeStatement } from "../../testing/fake-database.ts";
import { startHttp } from "../mod.ts";
import { Results } from "./mod.ts";
import { Spool } from "./spool.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const textOf = (parts: readonly Uint8Array[]) => parts.map((part) => new TextDecoder().decode(part)).join("");

async function inDirectory(test: (directory: string) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "sundial-results-" });
  try {
    await test(directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

const filesIn = (directory: string) => {
  try {
    return [...Deno.readDirSync(join(directory, "tmp", "results"))].length;
  } catch {
    return 0;
  }
};

Deno.test("Spool reads any range, in memory and from its file, before and after the end", () =>
  inDirectory(async (directory) => {
    for (const rowBytes of [8, 3_000, 400_000]) {
      const spool = new Spool(join(directory, String(rowBytes)));
      const row = (index: number) => `[${index},"${"x".repeat(rowBytes)}"]`;
      const check = async () => {
        const total = spool.rowCount;
        for (
          const [first, count] of [[0, 1], [0, 7], [total - 1, 5], [Math.floor(total / 2), 9], [total, 3], [0, total]]
        ) {
          const { parts, rowCount } = await spool.read(first, count);
          const expected = Array.from({ length: rowCount }, (_, k) => row(first + k)).join(",\n");
          assert.equal(textOf(parts), expected, `${rowBytes}: ${count} rows from ${first} of ${total}`);
          assert.ok(rowCount > 0 || first >= total);
        }
      };
      let next = 0;
      for (const rowCount of [1, 2, 5, 1, 30, 4]) {
        const rows = Array.from({ length: rowCount }, () => row(next++));
        await spool.add(bytes((next > rowCount ? ",\n" : "") + rows.join(",\n")), rowCount);
        await check();
      }
      await spool.end();
      await check();
      assert.equal(spool.isInMemory, rowBytes === 8 || rowBytes === 3_000);
      await spool.remove();
    }
    assert.deepEqual([...Deno.readDirSync(directory)], []);
  }));

interface ResultReply {
  id?: string;
  state?: string;
  rows?: number;
  first?: number;
  dataset?: unknown[][];
  cutBy?: string;
  error?: string;
  tag?: string;
  columns?: unknown[];
}

type Ask = (method: string, parameters: Record<string, string>) => Promise<[status: number, body: ResultReply]>;

/** 1 MiB of these rows of one LONG is about 100,000 rows. */
const STATEMENTS: Record<string, FakeStatement> = {
  few: { rowCount: 3 },
  many: { rowCount: 300_000, chunkRows: 5_000 },
  update: { done: { category: "dml", tag: "UPDATE 2", rows: 2 } },
  broken: { rowCount: 5_000, failAt: 3_000 },
  "broken late": { rowCount: 300_000, failAt: 250_000 },
};

async function withServer(
  test: (ask: Ask, database: FakeDatabase, root: string) => Promise<void>,
  settings: Record<string, string> = {},
  more: Record<string, FakeStatement> = {},
): Promise<void> {
  await inDirectory(async (root) => {
    const database = new FakeDatabase((text) => ({ ...STATEMENTS, ...more })[text] ?? { rowCount: 1 });
    const config = configOf(settings, root);
    const log = { info() {}, error() {} };
    const server = startHttp({ hostname: "127.0.0.1", port: 0, database, config, log, console: FAKE_CONSOLE });
    const ask: Ask = async (method, parameters) => {
      const url = `http://127.0.0.1:${server.port}/api/v1/sql/results`, text = new URLSearchParams(parameters);
      const reply =
        await (method === "POST" ? fetch(url, { method, body: text }) : fetch(`${url}?${text}`, { method }));
      const body = await reply.text();
      return [reply.status, body.startsWith("{") ? JSON.parse(body) : { error: body.trim() }];
    };
    try {
      await test(ask, database, root);
    } finally {
      await server.close();
      assert.equal(filesIn(root), 0, "files are left");
    }
  });
}

Deno.test("a small result is sent completely and is not stored", () =>
  withServer(async (ask, _, root) => {
    const [, { id, state, rows, dataset, columns }] = await ask("POST", { query: "few", wait: "5000" });
    assert.deepEqual([id, state, rows, dataset], [undefined, "done", 3, [["1"], ["2"], ["3"]]]);
    assert.deepEqual(columns, [{ name: "x", type: "LONG" }]);
    assert.equal((await ask("POST", { query: "update", wait: "5000" }))[1].tag, "UPDATE 2");
    assert.equal(filesIn(root), 0);
  }));

Deno.test("a large result is spooled, read in any order, and removed", () =>
  withServer(async (ask, _, root) => {
    const [, made] = await ask("POST", { query: "many", wait: "20000" });
    assert.deepEqual([made.state, made.rows, made.dataset?.length], ["done", 300_000, 1_000]);
    assert.equal(filesIn(root), 1);
    const id = made.id!;
    for (const [first, count] of [[299_990, 100], [150_000, 3], [0, 1], [5_000, 10_000]]) {
      const [status, page] = await ask("GET", { id, first: `${first}`, count: `${count}` });
      const expected = Array.from({ length: Math.min(count, 300_000 - first) }, (_, k) => [`${first + k + 1}`]);
      assert.deepEqual([status, page.first, page.dataset], [200, first, expected]);
    }
    assert.deepEqual((await ask("GET", { id, first: "300000" }))[1].dataset, []);
    assert.equal((await ask("GET", { id, first: "-1" }))[0], 400);
    assert.equal((await ask("GET", { id, first: "0", count: "100001" }))[0], 400);
    assert.equal((await ask("DELETE", { id }))[0], 204);
    assert.equal(filesIn(root), 0);
    const [status, { error }] = await ask("GET", { id });
    assert.equal(status, 404);
    assert.match(error!, /removed after 15 minutes without a read/);
  }));

Deno.test("a result can be read while its statement runs, and DELETE cancels that", async () => {
  const gate = Promise.withResolvers<void>();
  let chunks = 0;
  const onChunk = () => ++chunks > 10 ? gate.promise : undefined;
  await withServer(
    async (ask, database) => {
      const [, { id, state, dataset }] = await ask("POST", { query: "slow", wait: "200" });
      assert.deepEqual([state, dataset?.length], ["running", 1_000]);
      assert.deepEqual((await ask("GET", { id: id!, first: "49999", count: "5" }))[1].dataset, [["50000"]]);
      assert.equal((await ask("DELETE", { id: id! }))[0], 204);
      assert.ok(database.executed[0].options.signal?.aborted);
      gate.resolve();
    },
    {},
    { slow: { rowCount: 300_000, chunkRows: 5_000, onChunk } },
  );
});

Deno.test("failures are reported with their status and position, immediately or later", () =>
  withServer(async (ask, _, root) => {
    const failed = { error: "a row is broken", position: 7 };
    assert.deepEqual(await ask("POST", { query: "broken", wait: "5000" }), [400, { query: "broken", ...failed }]);
    const [, { id }] = await ask("POST", { query: "broken late" });
    const [status, reply] = await ask("GET", { id: id!, wait: "20000" });
    assert.deepEqual([status, reply], [400, { query: "", ...failed }]);
    assert.equal(filesIn(root), 0);
  }));

Deno.test("a result is limited in size and reports the limiting setting", () =>
  withServer(
    async (ask) => {
      const [, { state, rows, cutBy }] = await ask("POST", { query: "many", wait: "20000" });
      assert.equal(state, "done");
      assert.equal(cutBy, "http.results.size.max");
      assert.ok(rows! > 100_000 && rows! < 200_000, `${rows} rows`);
    },
    { "http.results.size.max": "1200k" },
  ));

Deno.test("more results than one user may have replace the oldest", () =>
  withServer(
    async (ask, _, root) => {
      const ids: string[] = [];
      for (let k = 0; k < 3; k++) ids.push((await ask("POST", { query: "many", wait: "20000" }))[1].id!);
      const statuses = await Promise.all(ids.map(async (id) => (await ask("GET", { id }))[0]));
      assert.deepEqual(statuses, [404, 200, 200]);
      assert.equal(filesIn(root), 2);
    },
    { "http.results.user.limit": "2" },
  ));

Deno.test("a full disk is 507 for that result only", () =>
  withServer(async (ask, _, root) => {
    const { open } = Deno;
    Deno.open = () => Promise.reject(Object.assign(new Error("no space left"), { code: "ENOSPC" }));
    try {
      const [status, { error }] = await ask("POST", { query: "many", wait: "20000" });
      assert.equal(status, 507);
      assert.match(error!, /the disk is full/);
    } finally {
      Deno.open = open;
    }
    assert.equal(filesIn(root), 0);
    assert.equal((await ask("POST", { query: "many", wait: "20000" }))[0], 200);
  }));

Deno.test("Results belong to one identity, expire when idle, and do not outlive the process", () =>
  inDirectory(async (root) => {
    const directory = join(root, "tmp", "results");
    await Deno.mkdir(directory, { recursive: true });
    await Deno.writeTextFile(join(directory, "left by a killed process"), "");
    let nowMs = 0;
    const failures: unknown[] = [];
    const results = new Results(
      configOf({ "http.results.idle.timeout": "100s" }, root),
      (e) => failures.push(e),
      () => nowMs,
    );
    const ann = { name: "ann", groups: [], id: "1" };
    const result = await results.begin(ann, "select 1");
    assert.equal(filesIn(root), 0);
    assert.equal(results.find(result.id, ann), result);
    for (const other of [{ name: "bob", groups: [], id: "2" }, { ...ann, id: "3" }, { ...ann, assumed: "svc" }]) {
      assert.equal(results.find(result.id, other), undefined, JSON.stringify(other));
    }
    await result.fill(
      () => Promise.resolve({ kind: "done", category: "ddl", tag: "", rows: 0 }),
      () => undefined,
    );
    nowMs = 99_000;
    results.removeIdle();
    assert.equal(results.find(result.id, ann), result);
    nowMs = 198_000;
    results.removeIdle();
    assert.equal(results.find(result.id, ann), result, "it was asked for meanwhile");
    nowMs = 299_000;
    results.removeIdle();
    assert.equal(results.find(result.id, ann), undefined);
    const abandoned = await results.begin(ann, "select 1");
    nowMs += 61_000;
    results.removeIdle();
    assert.ok(abandoned.controller.signal.aborted, "nobody asks for a running statement");
    await results.close();
    assert.deepEqual(failures, []);
  }));

Deno.test("a failed write is reported as such", () =>
  inDirectory(async (directory) => {
    const spool = new Spool(join(directory, "spool"));
    const open = Deno.open;
    Deno.open = () => Promise.reject(Object.assign(new Error("quota"), { code: "EDQUOT" }));
    try {
      await assert.rejects(async () => {
        for (let k = 0; k < 20; k++) await spool.add(bytes((k > 0 ? ",\n" : "") + `["${"x".repeat(100_000)}"]`), 1);
      }, DiskFullError);
    } finally {
      Deno.open = open;
    }
  }));
