/**
 * The packed suite: the queries of the benchmark, or those of sensors, over encoded and over raw columns, in two servers in turn, statistics off. First with a pool that
 * holds the values of either, then from the page cache, with one that is too small for either. Prints medians of time and of the servers'
 * processor time, and their ratios: raw to encoded.
 */
import { startServer, type TestServer } from "./server.ts";
import { sameRows } from "./answers.ts";
import { exists } from "./files.ts";
import { HttpConnection } from "./http.ts";
import { processorMs } from "./processor.ts";
import { type BenchQuery, QUERIES } from "./queries.ts";
import { geometricMean, median, table } from "./report.ts";
import { createSensors, SENSOR_QUERIES } from "./sensors.ts";
import { CREATE_TRADES, TRADES_FILE, writeTradesParquet } from "./trades.ts";

export interface PackedOptions {
  /** The readings of sensors instead of the trades. */
  sensors?: boolean;
  rowCount: number;
  rounds: number;
  only?: string;
}

const ENCODINGS = ["raw", "auto"] as const;
/** Bytes a row: the values take 40, encoded columns 11. */
const POOLS = [
  { title: "a pool for the values of all columns", rowBytes: 60 },
  { title: "from the page cache", rowBytes: 2 },
];
const POOL_MIB_MIN = 16;

export async function packedSuite(work: string, options: PackedOptions): Promise<void> {
  const { rowCount } = options;
  for (const encoding of ENCODINGS) await load(`${work}/${encoding}`, encoding, options);
  for (const { title, rowBytes } of POOLS) {
    const poolMiB = Math.max(POOL_MIB_MIN, Math.ceil(rowCount * rowBytes / 2 ** 20));
    await using raw = await start(`${work}/raw`, "raw", poolMiB);
    await using packed = await start(`${work}/auto`, "auto", poolMiB);
    console.log(
      `\n${rowCount} ${options.sensors ? "readings of sensors" : "trades"}, ${title}: ${poolMiB} MiB, statistics off`,
    );
    await compare([raw, packed], options);
  }
}

export function start(root: string, encoding: string, poolMiB: number): Promise<TestServer> {
  return startServer({
    root,
    env: {
      SVC_CAIRO_COLUMN_ENCODING: encoding,
      SVC_CAIRO_POOL_SIZE: `${poolMiB}m`,
      SVC_CAIRO_MEMORY_SIZE: "4095m",
      SVC_QUERY_STATISTICS_ENABLED: "false",
      SVC_QUERY_TIMEOUT: "10m",
    },
  });
}

/** Unless the root has the table already. */
export async function load(root: string, encoding: string, { rowCount, sensors }: PackedOptions): Promise<void> {
  if (await exists(root)) return;
  const unfinished = `${root}.new`;
  await Deno.mkdir(`${unfinished}/import`, { recursive: true });
  if (!sensors) await writeTradesParquet(rowCount, `${unfinished}/import/${TRADES_FILE}`);
  {
    await using server = await start(unfinished, encoding, 256);
    const { error } = await server.exec(sensors ? createSensors(rowCount) : CREATE_TRADES);
    if (error !== undefined) throw new Error(error);
  }
  await Deno.rename(unfinished, root);
}

async function compare(servers: TestServer[], { rounds, only, sensors }: PackedOptions): Promise<void> {
  const connections = await Promise.all(servers.map(({ httpPort }) => HttpConnection.open(httpPort)));
  const rows: string[][] = [], ratios: number[] = [];
  const queries: Pick<BenchQuery, "name" | "sundial">[] = sensors ? SENSOR_QUERIES : QUERIES;
  for (const { name, sundial } of queries.filter(({ name }) => !only || name.includes(only))) {
    const times: number[][] = [[], []], work: number[][] = [[], []], answers: unknown[][][] = [];
    for (let round = 0; round <= rounds; round++) {
      for (const [k, connection] of connections.entries()) {
        const { pid } = servers[k].process, used = processorMs(pid), start = performance.now();
        const parse = await connection.exec(sundial);
        times[k].push(performance.now() - start);
        work[k].push(processorMs(pid) - used);
        // Parsing makes garbage, and collecting that would take the processor from the servers.
        if (round < rounds) continue;
        const { error, dataset } = parse();
        if (error !== undefined) throw new Error(`${name}: ${error}`);
        answers[k] = dataset!;
      }
    }
    if (!sameRows(answers[0], answers[1])) throw new Error(`${name}: the answers differ`);
    const [raw, packed] = times.map((list) => median(list.slice(1)));
    const [rawWork, packedWork] = work.map((list) => median(list.slice(1)));
    ratios.push(raw / packed);
    rows.push([
      name,
      ...[raw, packed, raw / packed, rawWork, packedWork, rawWork / packedWork].map((value) => value.toFixed(2)),
    ]);
  }
  for (const connection of connections) connection.close();
  console.log(`medians of ${rounds} warm rounds in ms; ratio: raw to encoded`);
  console.log(table(["query", "raw", "encoded", "ratio", "raw, processor", "encoded", "ratio"], rows));
  console.log(`geometric mean of the ratios of time: ${geometricMean(ratios).toFixed(2)}`);
}
