/**
 * INSERTs of a row, prepared over PostgreSQL, by clients that wait for each answer: in Sundial with and without syncs, and in QuestDB if its
 * jar is given, which does not sync. In turn, by a process of its own.
 *
 *     deno run -A --lock=dev.lock bench/inserts.ts [--rounds 3] [--questdb JAR]
 */
import { parseArgs } from "node:util";
import { startClient } from "./client-process.ts";
import type { Result } from "./latency-client.ts";
import { processorMs } from "./processor.ts";
import { startQuestDb } from "./questdb.ts";
import { median, table } from "./report.ts";
import { startServer } from "./server.ts";
import { newRoot } from "./stores.ts";

const CREATE =
  "create table t (ts timestamp, symbol symbol, side symbol, price double, amount double) timestamp(ts) partition by day wal";
const INSERT = "insert into t values (now(), 'SYM001-USD', 'buy', 1.5, 2.5)";
/** Rows before a Sync are one transaction. */
const LOADS = [1, 8, 64].flatMap((connections) => [1, 50].map((executions) => ({ connections, executions })));
const MEASURED_MS = 2000;

interface Target {
  name: string;
  pid: number;
  pgPort: number;
}

const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "3" }, questdb: { type: "string" } },
});
const rounds = Number(options.rounds);
await using stack = new AsyncDisposableStack();
const targets: Target[] = [];
for (const mode of ["sync", "nosync"]) {
  const server = await startServer({ env: { SVC_PG_AUTH_METHOD: "password", SVC_CAIRO_COMMIT_MODE: mode } });
  stack.defer(async () => void await server.stop());
  await server.exec(CREATE);
  targets.push({ name: `Sundial, ${mode}`, pid: server.process.pid, pgPort: server.pgPort });
}
if (options.questdb !== undefined) {
  const root = newRoot(), server = stack.use(await startQuestDb({ jar: options.questdb, root, importDirectory: root }));
  await server.exec(CREATE);
  targets.push({ name: "QuestDB", ...server });
}
const client = stack.use(startClient());
const rows: string[][] = [];
for (const load of LOADS) {
  const cells = targets.map((target) => ({ target, results: [] as Result[], cpuMs: 0 }));
  for (let round = 0; round < rounds; round++) {
    for (const cell of cells) {
      const { pid, pgPort: port } = cell.target, before = processorMs(pid);
      cell.results.push(await client.ask({ protocol: "pg", port, query: INSERT, ...load, depth: 1, ms: MEASURED_MS }));
      cell.cpuMs += processorMs(pid) - before;
    }
  }
  for (const { target, results, cpuMs } of cells) {
    const of = (value: (result: Result) => number) => median(results.map(value));
    const inserted = results.reduce((sum, { answers }) => sum + answers * load.executions, 0);
    rows.push([
      String(load.connections),
      String(load.executions),
      target.name,
      of(({ p50Ms }) => p50Ms).toFixed(3),
      of(({ p99Ms }) => p99Ms).toFixed(3),
      of(({ perSecond }) => perSecond * load.executions).toFixed(0),
      (1000 * cpuMs / inserted).toFixed(1),
    ]);
  }
}
console.log(table(["connections", "rows before a Sync", "server", "p50 ms", "p99 ms", "rows/s", "CPU us a row"], rows));
