/**
 * One series among 10,000: queries of one symbol, first after a start and then from memory, beside the same ones without the index. 300 series have
 * ended on the first day, which LATEST ON has to find. Asserts that the answers are equal.
 */
import assert from "node:assert/strict";
import { HttpConnection } from "./http.ts";
import { median, table } from "./report.ts";
import { startServer } from "./server.ts";

const SERIES = 10_000, DAYS = 30;
/** Before the rounds that are measured: frames are made, and code is compiled. */
const WARMING_ROUNDS = 20;
const ONE = "sym = 'S77'", ONE_BY_SCAN = "sym || '' = 'S77'";

const QUERIES = {
  "average": "select avg(amount), count() from t where $",
  "all its rows": "select * from t where $",
  "its last day": "select * from t where $ and ts in '2024-01-30'",
  "averages by hour": "select ts, avg(amount) from t where $ sample by 1h",
  "its newest 10 rows": "select * from t where $ order by ts desc limit 10",
  "its last row": "select * from t where $ latest on ts partition by sym",
  "last rows of all": "select * from t latest on ts partition by sym",
};

/** `root`: kept, with its table for the next time. */
export async function seriesSuite(root: string, rowCount: number, rounds: number): Promise<void> {
  const env = { SVC_QUERY_STATISTICS_ENABLED: "false", SVC_QUERY_TIMEOUT: "1h" };
  let server = await startServer({ root, env });
  let connection = await HttpConnection.open(server.httpPort);
  const ask = async (sql: string): Promise<{ ms: number; answer: string }> => {
    const start = performance.now(), parse = await connection.exec(sql), ms = performance.now() - start;
    const { dataset, error } = parse();
    assert.equal(error, undefined, sql);
    return { ms, answer: JSON.stringify(dataset) };
  };
  await ask(`create table if not exists t as (
    select timestamp_sequence('2024-01-01', ${Math.floor(DAYS * 86_400e6 / rowCount)}) ts,
      (case when x < 30000 and x % 10 = 7 then 'E' || x % 3000 else 'S' || (x * 7919 % ${SERIES}) end)::symbol sym,
      x % 1000 / 100.0 price, x amount
    from long_sequence(${rowCount})
  ) timestamp(ts) partition by day`);
  const rows: string[][] = [];
  for (const [name, query] of Object.entries(QUERIES)) {
    const isOne = query.includes("$"), row = [name], answers = new Set<string>();
    for (const condition of isOne ? [ONE, ONE_BY_SCAN] : [""]) {
      connection.close();
      await server.stop();
      server = await startServer({ root, env });
      connection = await HttpConnection.open(server.httpPort);
      await ask("select ts from t limit 1");
      const sql = query.replace("$", condition), first = await ask(sql), later: number[] = [];
      for (let round = 0; round < WARMING_ROUNDS; round++) await ask(sql);
      for (let round = 0; round < rounds; round++) later.push((await ask(sql)).ms);
      answers.add(first.answer);
      row.push(first.ms.toFixed(1), median(later).toFixed(1));
    }
    assert.equal(answers.size, 1, query);
    rows.push(isOne ? row : [...row, "", ""]);
  }
  connection.close();
  await server.stop();
  console.log(`\none series of ${SERIES}, ${rowCount} rows, ms`);
  console.log(table(["", "first", "from memory", "scan: first", "from memory"], rows));
}
