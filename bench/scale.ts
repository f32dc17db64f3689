/**
 * The scale suite: the queries of the benchmark over 50M and 200M trades, in Sundial, DuckDB and, if its jar is given, QuestDB, in turn.
 * Each may use as much memory as the others. Prints times, their growth with the rows, load rates and memory.
 */
import { residentBytes } from "../tests/memory.ts";
import { startServer } from "./server.ts";
import { sameRows } from "./answers.ts";
import { Duck } from "./duckdb.ts";
import { exists, remove } from "./files.ts";
import { type ExecAnswer, HttpConnection } from "./http.ts";
import { type BenchQuery, QUERIES } from "./queries.ts";
import { startQuestDb } from "./questdb.ts";
import { geometricMean, median, table } from "./report.ts";
import { CREATE_TRADES, gapMicrosOf, TRADES_FILE, writeTradesParquet } from "./trades.ts";

export interface ScaleOptions {
  /** Numbers of rows, ascending. */
  sizes: number[];
  rounds: number;
  only?: string;
  /** Path of questdb.jar. */
  questdb?: string;
  /** Memory of each database, in GiB. */
  memoryGiB: number;
  /** Keeps the Parquet files and the other databases for the next run, which does not load them again. */
  keepsPeers: boolean;
  "no-statistics": boolean;
}

/** What a database is started with. */
interface Place extends ScaleOptions {
  rowCount: number;
  root: string;
  /** Has the Parquet file. */
  importDirectory: string;
}

/** A database with the trades. */
interface Peer extends AsyncDisposable {
  readonly name: string;
  /** Undefined if its table was kept. */
  readonly loadMs: number | undefined;
  /** Reads the whole answer, which the function that it returns parses. */
  ask(query: BenchQuery): Promise<() => unknown[][]>;
  /** Resident bytes of its process: now, and the most ever. NaN where the system does not tell. */
  memory(): { now: number; peak: number };
}

const GIB = 2 ** 30;
/** Threads of QuestDB look for work for a while after an answer. They would take the processor from whoever is asked next. */
const PAUSE_MS = 100;
/**
 * A query that takes less than this in one of the databases is asked more often, because its first executions compile the code that answers it (in V8
 * and in Java's virtual machine).
 */
const QUICK_MS = 20;
const QUICK_ROUNDS = 25;
/** Asked after a pause, in which the processor's cores may have gone to sleep. */
const FIRST: BenchQuery = { name: "first", sundial: "select 1", duckdb: "select 1" };
/** A table of this many rows has 30 days, larger ones have more. */
const THIRTY_DAYS_ROWS = 50_000_000;

export async function scaleSuite(work: string, options: ScaleOptions): Promise<void> {
  const times = new Map<string, number[][]>();
  for (const [k, rowCount] of options.sizes.entries()) {
    const root = `${work}/${rowCount}`, file = `${root}/${TRADES_FILE}`;
    const importDirectory = `${root}/sundial/import`;
    await remove(`${root}/sundial`);
    await Deno.mkdir(importDirectory, { recursive: true });
    // A day has as many rows at each size, also in runs of one size.
    const gapMicros = gapMicrosOf(Math.min(THIRTY_DAYS_ROWS, options.sizes[0]!));
    if (!await exists(file)) {
      await writeTradesParquet(rowCount, `${file}.new`, gapMicros);
      await Deno.rename(`${file}.new`, file);
    }
    await Deno.link(file, `${importDirectory}/${TRADES_FILE}`);
    await using stack = new AsyncDisposableStack();
    const peers: Peer[] = [];
    for (const start of [sundial, duckdb, questdb]) {
      const peer = await start({ ...options, rowCount, root, importDirectory });
      if (peer !== undefined) peers.push(stack.use(peer));
    }
    console.log(
      `\n${rowCount} trades, ${options.memoryGiB} GiB for each${options["no-statistics"] ? ", statistics off" : ""}`,
    );
    for (const { name, loadMs } of peers) {
      if (loadMs === undefined) continue;
      console.log(`load from Parquet, ${name}: ${(rowCount / loadMs / 1000).toFixed(2)}M rows/s`);
    }
    await compare(peers, options, (query, medians) => {
      const known = times.get(query) ?? [];
      known[k] = medians;
      times.set(query, known);
    });
    for (const peer of peers) {
      const { now, peak } = peer.memory();
      console.log(`memory, ${peer.name}: ${(now / GIB).toFixed(2)} GiB resident, at most ${(peak / GIB).toFixed(2)}`);
    }
    await stack.disposeAsync();
    await remove(options.keepsPeers ? `${root}/sundial` : root);
  }
  if (options.sizes.length > 1) printGrowth(times, options.sizes);
}

async function compare(
  peers: Peer[],
  options: ScaleOptions,
  keep: (query: string, medians: number[]) => void,
): Promise<void> {
  const rows: string[][] = [], ratios: number[] = [];
  let wrong = 0;
  for (const query of QUERIES.filter(({ name }) => !options.only || name.includes(options.only))) {
    const times: number[][] = peers.map(() => []), answers: unknown[][][] = [], failures: (string | undefined)[] = [];
    let rounds = options.rounds;
    for (let round = 0; round <= rounds; round++) {
      for (const [k, peer] of peers.entries()) {
        if (failures[k] !== undefined) continue;
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        (await peer.ask(FIRST))();
        const start = performance.now();
        try {
          const parse = await peer.ask(query);
          times[k].push(performance.now() - start);
          answers[k] = parse();
        } catch (error) {
          failures[k] = (error as Error).message;
          console.log(`${query.name}: ${peer.name} failed: ${failures[k]}`);
        }
      }
      const isLast = round === options.rounds;
      if (isLast && times.some((values) => values.at(-1)! < QUICK_MS)) rounds = Math.max(rounds, QUICK_ROUNDS);
    }
    const medians = times.map((values, k) => failures[k] === undefined ? median(values.slice(1)) : NaN);
    keep(query.name, medians);
    const differing = peers.filter((_, k) =>
      k > 0 && failures[k] === undefined && failures[0] === undefined && !sameRows(answers[0], answers[k])
    );
    if (differing.length > 0 || failures[0] !== undefined) wrong++;
    const best = Math.min(...medians.slice(1).filter((value) => !isNaN(value)));
    const ratio = best / medians[0];
    if (!isNaN(ratio)) ratios.push(Math.min(10, ratio));
    rows.push([
      query.name,
      ...times.flatMap((values, k) => [(values[0] ?? NaN).toFixed(1), medians[k].toFixed(1)]),
      ratio.toFixed(2),
      differing.length === 0 ? "equal" : `DIFFERENT: ${differing.map(({ name }) => name).join(", ")}`,
    ]);
  }
  console.log(
    `milliseconds, cold once and the median of ${options.rounds} warm rounds, ${QUICK_ROUNDS} if one takes less than ${QUICK_MS}; ratio: best of the others to Sundial`,
  );
  console.log(table(["query", ...peers.flatMap(({ name }) => ["cold", name]), "ratio", "answers"], rows));
  console.log(
    `geometric mean of the ratios, each capped at 10: ${geometricMean(ratios).toFixed(2)}; faster in ${
      ratios.filter((ratio) => ratio > 1).length
    } of ${rows.length}; failed or different: ${wrong}`,
  );
}

function printGrowth(times: Map<string, number[][]>, sizes: number[]): void {
  console.log(`\ntime of Sundial at ${sizes.at(-1)} rows, divided by that at ${sizes[0]}`);
  console.log(table(
    ["query", "growth"],
    [...times].map(([query, bySize]) => [
      query,
      (bySize.at(-1)![0] / bySize[0][0]).toFixed(2),
    ]),
  ));
}

async function sundial({ root, memoryGiB, "no-statistics": isWithout }: Place): Promise<Peer> {
  const server = await startServer({
    root: `${root}/sundial`,
    env: {
      SVC_QUERY_TIMEOUT: "30m",
      SVC_CAIRO_MEMORY_SIZE: `${Math.min(4095, memoryGiB * 1024)}m`,
      SVC_QUERY_STATISTICS_ENABLED: String(!isWithout),
    },
  });
  const connection = await HttpConnection.open(server.httpPort);
  const loadMs = await timed(async () => rowsOf(await connection.exec(CREATE_TRADES)));
  return {
    name: "Sundial",
    loadMs,
    ask: async (query) => {
      const parse = await connection.exec(query.sundial);
      return () => rowsOf(parse);
    },
    memory: () => memoryOf(server.process.pid),
    [Symbol.asyncDispose]: async () => {
      connection.close();
      await server.stop();
    },
  };
}

/** DuckDB runs in this process, which holds little else. */
async function duckdb({ root, importDirectory, memoryGiB }: Place): Promise<Peer> {
  const isKept = await exists(`${root}/duck.db`);
  const duck = await Duck.open(`${root}/duck.db`);
  await duck.run(`set memory_limit = '${memoryGiB}GiB'`);
  const loadMs = isKept ? undefined : await timed(async () => {
    await duck.run(`create table trades as select * from read_parquet('${importDirectory}/${TRADES_FILE}')`);
    await duck.run("checkpoint");
  });
  return {
    name: "DuckDB",
    loadMs,
    ask: (query) => duck.ask(query.duckdb),
    memory: () => memoryOf(Deno.pid),
    [Symbol.asyncDispose]: () => Promise.resolve(duck[Symbol.dispose]()),
  };
}

async function questdb({ rowCount, root, importDirectory, memoryGiB, questdb }: Place): Promise<Peer | undefined> {
  if (questdb === undefined) return undefined;
  const isKept = await exists(`${root}/questdb`);
  const server = await startQuestDb({
    jar: questdb,
    root: `${root}/questdb`,
    importDirectory,
    env: { QDB_RAM_USAGE_LIMIT_BYTES: String(memoryGiB * GIB), JAVA_TOOL_OPTIONS: "-Xmx1g" },
  });
  const connection = await HttpConnection.open(server.httpPort);
  const exec = async (sql: string) => rowsOf(await connection.exec(sql));
  const loadMs = isKept ? undefined : await timed(async () => {
    await exec(CREATE_TRADES);
    // The rows are in its log and become visible later.
    while ((await exec("select count() from trades"))[0][0] !== rowCount) {
      await new Promise((done) => setTimeout(done, 50));
    }
  });
  return {
    name: "QuestDB",
    loadMs,
    ask: async (query) => {
      const parse = await connection.exec(query.sundial);
      return () => rowsOf(parse);
    },
    memory: () => memoryOf(server.pid),
    [Symbol.asyncDispose]: async () => {
      connection.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

function rowsOf(parse: () => ExecAnswer): unknown[][] {
  const { error, dataset } = parse();
  if (error) throw new Error(error);
  return dataset ?? [];
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function memoryOf(pid: number): { now: number; peak: number } {
  return { now: residentBytes(pid), peak: residentBytes(pid, "VmHWM") };
}
