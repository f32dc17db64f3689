/**
 * The benchmark: runs the same queries over the same rows in Sundial and in DuckDB, alternating in one run, and compares the answers.
 *
 *     deno task bench [--rows 10000000] [--rounds 7] [--only TEXT] [--suite queries|joins|ingest|latency|export|start|bounds|scale|memory|series|storage|packed|sensors|first|all] [--no-statistics] [--keep] [--questdb JAR] [--work DIR]
 *
 * Prints medians and ratios. Asserts only that the answers are equal. `--questdb`, or QUESTDB_JAR: the jar of a QuestDB that the
 * latency suite asks too. `--machine`: GiB of the machine from which the server of the memory suite takes its defaults. `--work`: a directory that is kept, so that the
 * latency, scale, packed, sensors and first suites find tables there the next time.
 */
import { parseArgs } from "node:util";
import { startServer, type TestServer } from "./server.ts";
import { describeMachine, geometricMean, median, table } from "./report.ts";
import { sameRows } from "./answers.ts";
import { firstSuite } from "./first.ts";
import { HttpConnection } from "./http.ts";
import { JOIN_QUERIES, JOIN_TABLES } from "./joins.ts";
import { type BenchQuery, QUERIES } from "./queries.ts";
import { CREATE_TRADES, TRADES_FILE, writeTradesParquet } from "./trades.ts";
import { Duck } from "./duckdb.ts";
import { boundsSuite } from "./bounds.ts";
import { ingestSuite } from "./ingest.ts";
import { latencySuite } from "./latency.ts";
import { scaleSuite } from "./scale.ts";
import { memorySuite } from "./memory.ts";
import { packedSuite } from "./packed.ts";
import { seriesSuite } from "./series.ts";
import { exportSuite, startSuite } from "./small.ts";
import { storageSuite } from "./storage.ts";

const { values: options } = parseArgs({
  args: Deno.args,
  options: {
    rows: { type: "string", default: "10000000" },
    rounds: { type: "string", default: "7" },
    only: { type: "string" },
    suite: { type: "string", default: "all" },
    "no-statistics": { type: "boolean", default: false },
    keep: { type: "boolean", default: false },
    questdb: { type: "string", default: Deno.env.get("QUESTDB_JAR") },
    sizes: { type: "string", default: "50000000,200000000" },
    memory: { type: "string", default: "4" },
    machine: { type: "string" },
    work: { type: "string" },
  },
});
const rowCount = Number(options.rows), rounds = Number(options.rounds);
const wants = (suite: string) => options.suite === "all" || options.suite === suite;

console.log(describeMachine());
const work = options.work ?? await Deno.makeTempDir({ prefix: "sundial-bench-" });
try {
  if (wants("queries")) await querySuite();
  if (options.suite === "joins") await joinSuite();
  if (wants("ingest")) await ingestSuite(work, rowCount);
  if (wants("latency")) await latencySuite(`${work}/latency`, { ...options, rows: rowCount, rounds });
  if (wants("export")) await exportSuite(work);
  if (wants("start")) await startSuite(work);
  if (wants("bounds")) await boundsSuite();
  if (options.suite === "series") await seriesSuite(`${work}/series-${rowCount}`, rowCount, rounds);
  if (options.suite === "storage") await storageSuite(work, rowCount);
  if (options.suite === "packed") await packedSuite(`${work}/packed-${rowCount}`, { ...options, rowCount, rounds });
  if (options.suite === "sensors") {
    await packedSuite(`${work}/sensors-${rowCount}`, { ...options, rowCount, rounds, sensors: true });
  }
  if (options.suite === "first") await firstSuite(`${work}/packed-${rowCount}`, { ...options, rowCount, rounds });
  if (options.suite === "memory") {
    const machineBytes = options.machine === undefined ? undefined : Number(options.machine) * 2 ** 30;
    await memorySuite({ rowCount, machineBytes, work, idleSeconds: 60 });
  }
  if (options.suite === "scale") {
    const sizes = options.sizes.split(",").map(Number);
    const keepsPeers = options.work !== undefined;
    await scaleSuite(work, { ...options, sizes, rounds, memoryGiB: Number(options.memory), keepsPeers });
  }
} finally {
  if (!options.keep && options.work === undefined) await Deno.remove(work, { recursive: true });
}

async function querySuite(): Promise<void> {
  const root = `${work}/queries`;
  await Deno.mkdir(`${root}/import`, { recursive: true });
  const file = `${root}/import/${TRADES_FILE}`;
  await writeTradesParquet(rowCount, file);
  const passes: { title: string; env: Record<string, string> }[] = [
    { title: "pool larger than the data", env: {} },
    { title: "statistics switched off", env: { SVC_QUERY_STATISTICS_ENABLED: "false" } },
    { title: "pool of a quarter of the data", env: { SVC_CAIRO_POOL_SIZE: `${Math.ceil(rowCount * 10 / 2 ** 20)}m` } },
  ];
  let loaded = false;
  using duck = await Duck.open(`${work}/duck.db`);
  for (const { title, env } of options["no-statistics"] ? passes.slice(1, 2) : passes) {
    await using server = await startServer({ root, env: { ...env, SVC_QUERY_TIMEOUT: "10m" } });
    if (!loaded) {
      await load(server, duck, file);
      loaded = true;
    }
    await compare(title, server, duck);
  }
}

/** Not part of `all`, because joins have no targets. */
async function joinSuite(): Promise<void> {
  const root = `${work}/joins`;
  await Deno.mkdir(`${root}/import`, { recursive: true });
  const file = `${root}/import/${TRADES_FILE}`;
  await writeTradesParquet(rowCount, file);
  using duck = await Duck.open(`${work}/duck.db`);
  await using server = await startServer({ root, env: { SVC_QUERY_TIMEOUT: "10m" } });
  await load(server, duck, file);
  for (const { sundial, duckdb } of JOIN_TABLES) {
    const created = await server.exec(sundial);
    if (created.error) throw new Error(`${sundial}: ${created.error}`);
    await duck.run(duckdb);
  }
  await compare("joins and sorts", server, duck, JOIN_QUERIES);
}

async function load(server: TestServer, duck: Duck, file: string): Promise<void> {
  let start = performance.now();
  const created = await server.exec(CREATE_TRADES);
  if (created.error) throw new Error(`CREATE TABLE AS failed: ${created.error}`);
  const ours = performance.now() - start;
  start = performance.now();
  await duck.run(`create table trades as select * from read_parquet('${file}')`);
  await duck.run("checkpoint");
  const theirs = performance.now() - start;
  console.log(
    `\ncreate table as select from Parquet: Sundial ${(rowCount / ours / 1000).toFixed(2)}M rows/s, DuckDB ${
      (rowCount / theirs / 1000).toFixed(2)
    }M rows/s`,
  );
}

async function compare(
  title: string,
  server: TestServer,
  duck: Duck,
  queries: readonly BenchQuery[] = QUERIES,
): Promise<void> {
  console.log(`\n${rowCount} trades, ${title}; milliseconds, cold once and the median of ${rounds} warm rounds`);
  const rows: string[][] = [];
  const ratios: number[] = [];
  let faster = 0, slowest = Infinity, wrong = 0;
  const connection = await HttpConnection.open(server.httpPort);
  for (const query of queries.filter((q) => !options.only || q.name.includes(options.only))) {
    const ours: number[] = [], theirs: number[] = [];
    let answer: unknown[][] = [], expected: unknown[][] = [];
    for (let round = 0; round <= rounds; round++) {
      let start = performance.now();
      const parse = await connection.exec(query.sundial);
      ours.push(performance.now() - start);
      const reply = parse();
      if (reply.error) throw new Error(`${query.name}: ${reply.error}`);
      answer = reply.dataset!;
      start = performance.now();
      const convert = await duck.ask(query.duckdb);
      theirs.push(performance.now() - start);
      expected = convert();
    }
    const equal = sameRows(answer, expected);
    if (!equal) {
      wrong++;
      console.log(
        `${query.name}: ANSWERS DIFFER\n  Sundial ${JSON.stringify(answer.slice(0, 3))}\n  DuckDB  ${
          JSON.stringify(expected.slice(0, 3))
        }`,
      );
    }
    const mine = median(ours.slice(1)), its = median(theirs.slice(1)), ratio = its / mine;
    ratios.push(Math.min(10, ratio));
    if (ratio > 1) faster++;
    slowest = Math.min(slowest, ratio);
    rows.push([
      query.name,
      ours[0].toFixed(1),
      mine.toFixed(2),
      theirs[0].toFixed(1),
      its.toFixed(2),
      ratio.toFixed(2),
      equal ? "equal" : "DIFFERENT",
    ]);
  }
  connection.close();
  console.log(table(["query", "cold", "Sundial", "cold", "DuckDB", "ratio", "answers"], rows));
  console.log(
    `geometric mean of the ratios, each capped at 10: ${
      geometricMean(ratios).toFixed(2)
    }; faster in ${faster} of ${ratios.length}; the slowest ratio is ${slowest.toFixed(2)}`,
  );
  if (wrong) throw new Error(`${wrong} answers differ`);
}
