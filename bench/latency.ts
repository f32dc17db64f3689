/**
 * The latency suite: small queries over 10M trades, asked over raw sockets by a process of its own, in Sundial, a bare server on Deno
 * (`bare-server.ts`), and QuestDB if its jar is given, in turn. Then what handing over to a query thread costs (`hand-over.ts`).
 *
 * `depth`: requests that a connection sends at once. Processor time is that of the whole server process, of all its threads.
 */
import { startServer } from "./server.ts";
import { exists } from "./files.ts";
import { startBareServer } from "./bare.ts";
import { startClient } from "./client-process.ts";
import type { Order, Result } from "./latency-client.ts";
import { measureHandOver } from "./hand-over.ts";
import { processorMs } from "./processor.ts";
import { startQuestDb } from "./questdb.ts";
import { median, table } from "./report.ts";
import { CREATE_TRADES, TRADES_FILE, writeTradesParquet } from "./trades.ts";

export interface LatencyOptions {
  rows: number;
  rounds: number;
  only?: string;
  /** Path of questdb.jar. */
  questdb?: string;
}

const SECOND = "timestamp in '2024-01-15T10:30:00'";
const QUERIES = [
  { name: "select 1", sql: "select 1" },
  { name: "two columns of one second", sql: `select price, amount from trades where ${SECOND}` },
  { name: "all columns of one second", sql: `select * from trades where ${SECOND}` },
  { name: "latest on by symbol", sql: "select * from trades latest on timestamp partition by symbol" },
  {
    name: "average of a symbol's hour",
    sql: "select avg(price) from trades where symbol = 'SYM001-USD' and timestamp in '2024-01-15T10'",
  },
];
const LOADS = [
  { connections: 1, depth: 1 },
  { connections: 1, depth: 16 },
  { connections: 8, depth: 1 },
  { connections: 64, depth: 1 },
];
/** Time of one measurement. */
const MEASURED_MS = 400;

interface Target extends AsyncDisposable {
  name: string;
  pid: number;
  ports: Partial<Record<Order["protocol"], number>>;
  /** It answers everything alike. */
  isBare?: boolean;
  /** It closes a connection that sends a request before the previous one is answered. */
  refusesPipelining?: "http";
}

export async function latencySuite(work: string, options: LatencyOptions): Promise<void> {
  const file = `${work}/${TRADES_FILE}`;
  await Deno.mkdir(work, { recursive: true });
  if (!await exists(file)) await writeTradesParquet(options.rows, file);
  await using targets = new AsyncDisposableStack();
  const started: Target[] = [];
  for (const start of [sundial, bare, questdb]) {
    const target = await start(work, file, options);
    if (target !== undefined) started.push(targets.use(target));
  }
  await using client = startClient();
  const cells = new Map<string, Cell>();
  for (let round = 0; round < options.rounds; round++) {
    for (const { name, sql: query } of QUERIES.filter(({ name }) => !options.only || name.includes(options.only))) {
      for (const protocol of ["http", "pg"] as const) {
        for (const load of LOADS) {
          // The order changes, so that no target always follows the same one.
          for (const target of round % 2 ? started.toReversed() : started) {
            const port = target.ports[protocol];
            if (port === undefined || target.isBare && name !== "select 1") continue;
            if (load.depth > 1 && target.refusesPipelining === protocol) continue;
            const key = [name, protocol, load.connections, load.depth, target.name].join("|");
            const cell = cells.get(key) ?? { results: [], cpuMs: 0 };
            cells.set(key, cell);
            const before = processorMs(target.pid);
            cell.results.push(await client.ask({ protocol, port, query, ...load, ms: MEASURED_MS }));
            cell.cpuMs += processorMs(target.pid) - before;
          }
        }
      }
    }
  }
  print(cells, options.rounds);
  if (!options.only) await measureHandOver(client, options.rounds);
}

interface Cell {
  results: Result[];
  cpuMs: number;
}

function print(cells: Map<string, Cell>, rounds: number): void {
  console.log(`\nsmall queries, raw sockets, medians of ${rounds} rounds in turn; CPU of the whole server process`);
  const rows = [...cells].map(([key, { results, cpuMs }]) => {
    const [query, protocol, connections, depth, target] = key.split("|");
    const of = (value: (result: Result) => number) => median(results.map(value));
    const answers = results.reduce((sum, result) => sum + result.answers, 0);
    return [
      query,
      protocol,
      connections,
      depth,
      target,
      of(({ p50Ms }) => p50Ms).toFixed(3),
      of(({ p99Ms }) => p99Ms).toFixed(3),
      of(({ perSecond }) => perSecond).toFixed(0),
      (1000 * cpuMs / answers).toFixed(0),
    ];
  });
  console.log(
    table(["query", "wire", "connections", "depth", "server", "p50 ms", "p99 ms", "answers/s", "CPU us"], rows),
  );
}

async function sundial(work: string, file: string): Promise<Target> {
  const root = `${work}/sundial`, isNew = !await exists(root);
  await Deno.mkdir(`${root}/import`, { recursive: true });
  const server = await startServer({ root, env: { SVC_PG_AUTH_METHOD: "password" } });
  if (isNew) {
    await Deno.copyFile(file, `${root}/import/${TRADES_FILE}`);
    const { error } = await server.exec(CREATE_TRADES);
    if (error) throw new Error(error);
  }
  return {
    name: "Sundial",
    pid: server.process.pid,
    ports: { http: server.httpPort, pg: server.pgPort },
    [Symbol.asyncDispose]: async () => void await server.stop(),
  };
}

async function bare(): Promise<Target> {
  return { name: "bare Deno", isBare: true, ...await startBareServer() };
}

async function questdb(work: string, _file: string, { questdb: jar }: LatencyOptions): Promise<Target | undefined> {
  if (jar === undefined) return undefined;
  const root = `${work}/questdb`, isNew = !await exists(root);
  const server = await startQuestDb({ jar, root, importDirectory: work });
  if (isNew) {
    const { error } = await server.exec(CREATE_TRADES);
    if (error) throw new Error(`QuestDB: ${error}`);
  }
  const { pid, httpPort, pgPort } = server;
  return {
    name: "QuestDB",
    pid,
    ports: { http: httpPort, pg: pgPort },
    refusesPipelining: "http",
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
