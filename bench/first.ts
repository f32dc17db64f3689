/**
 * The first suite: the first executions of a statement in a new process, whose data is in the page cache. Each round starts a server, waits, and asks the
 * same query several times. Prints medians of time and of the server's processor time by execution.
 */
import { HttpConnection } from "./http.ts";
import { load, type PackedOptions, start } from "./packed.ts";
import { processorMs } from "./processor.ts";
import { QUERIES } from "./queries.ts";
import { median, table } from "./report.ts";

const EXECUTIONS = 6;
/** Until the threads have loaded. */
const WAIT_MS = 1_500;
const POOL_MIB = 1024;
const ASKED = ["one day by symbol", "filter two doubles, sum", "group by symbol"];

export async function firstSuite(work: string, options: PackedOptions): Promise<void> {
  const root = `${work}/auto`, rows: string[][] = [];
  await load(root, "auto", options);
  for (const { name, sundial } of QUERIES.filter(({ name }) => options.only?.includes(name) ?? ASKED.includes(name))) {
    const times: number[][] = [], work: number[][] = [];
    for (let round = 0; round < options.rounds; round++) {
      await using server = await start(root, "auto", POOL_MIB);
      const connection = await HttpConnection.open(server.httpPort), { pid } = server.process;
      await new Promise((done) => setTimeout(done, WAIT_MS));
      for (let k = 0; k < EXECUTIONS; k++) {
        const used = processorMs(pid), since = performance.now();
        const parse = await connection.exec(sundial);
        (times[k] ??= []).push(performance.now() - since);
        (work[k] ??= []).push(processorMs(pid) - used);
        const { error } = parse();
        if (error !== undefined) throw new Error(`${name}: ${error}`);
      }
      connection.close();
    }
    rows.push([name, "time", ...times.map((list) => median(list).toFixed(1))]);
    rows.push(["", "processor", ...work.map((list) => median(list).toFixed(1))]);
  }
  console.log(`\n${options.rowCount} trades, medians of ${options.rounds} processes in ms, by execution`);
  console.log(table(["query", "", ...Array.from({ length: EXECUTIONS }, (_, k) => String(k + 1))], rows));
}
