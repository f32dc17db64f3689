/**
 * Bytes a row on disk: of trades, logs and sensor readings, encoded and raw, and of DuckDB's file with the same rows. Asserts that no table takes more
 * than 1.2 times DuckDB's file, nor trades more than 12 bytes a row.
 */
import assert from "node:assert/strict";
import { startServer } from "./server.ts";
import { Duck } from "./duckdb.ts";
import { table } from "./report.ts";
import { CREATE_TRADES, TRADES_FILE, writeTradesParquet } from "./trades.ts";

const TRADE_BYTES_MAX = 12, DUCKDB_RATIO_MAX = 1.2;

/** Full-precision floats, a boolean, a counter and a battery with gaps. */
const sensors = (rowCount: number) =>
  `create table sensors as (select timestamp_sequence('2024-01-01', 100000) ts, ('sensor-' || x * 7919 % 1000)::symbol sensor,
    20 + 5 * sin(x / 5000.0) + rnd_double() t, 1013 + rnd_double() * 10 p, cast(50 + rnd_double() * 30 as float) h, rnd_double() v, x % 37 = 0 alarm,
    x / 1000 counter, case when x % 10 < 7 then null else cast(100 - x / 100000.0 as float) end battery
    from long_sequence(${rowCount})) timestamp(ts) partition by day`;
const logs = (rowCount: number) =>
  `create table logs as (select timestamp_sequence('2024-01-01', 86000 + x % 100) ts, rnd_symbol('DEBUG', 'INFO', 'INFO', 'INFO', 'WARN', 'ERROR') level,
    ('service-' || rnd_int(1, 40, 0))::symbol service, 'host-' || rnd_int(1, 200, 0) host, rnd_ipv4('10.0.0.0/16', 0) ip, rnd_uuid4() id,
    '/api/v1/' || rnd_str('users', 'orders', 'items', 'carts') || '/' || rnd_int(1, 100000, 0) path,
    'request ' || rnd_int(1, 1000000, 0) || ' of user ' || rnd_int(1, 5000, 0) || ' took ' || rnd_int(1, 3000, 0) || ' ms and ended with ' || x % 5 message,
    rnd_int(200, 204, 0)::short status
    from long_sequence(${rowCount})) timestamp(ts) partition by day`;

export async function storageSuite(work: string, rowCount: number): Promise<void> {
  const root = `${work}/storage`;
  await Deno.mkdir(`${root}/import`, { recursive: true });
  await writeTradesParquet(rowCount, `${root}/import/${TRADES_FILE}`);
  const statements = { trades: CREATE_TRADES, logs: logs(rowCount), sensors: sensors(rowCount) };
  await using server = await startServer({ root, env: { SVC_QUERY_TIMEOUT: "10m" } });
  const ask = async (sql: string): Promise<unknown[][]> => {
    const { dataset, error } = await server.exec(sql);
    assert.equal(error, undefined, sql);
    return dataset ?? [];
  };
  const rows: string[][] = [], faults: string[] = [];
  for (const [name, statement] of Object.entries(statements)) {
    await ask(statement);
    const [[raw, disk]] = await ask(`select sum(rawSize), sum(diskSize) from table_column_storage('${name}')`) as [
      number,
      number,
    ][];
    const parquet = await fetch(`${server.http}/exp?fmt=parquet&query=${encodeURIComponent(`select * from ${name}`)}`);
    const file = `${work}/${name}.parquet`, duckFile = `${work}/${name}.duckdb`;
    await Deno.writeFile(file, parquet.body!);
    {
      using duck = await Duck.open(duckFile);
      const columns = name === "logs" ? "* replace (id::uuid as id)" : "*";
      await duck.run(`create table t as select ${columns} from read_parquet('${file}')`);
      await duck.run("checkpoint");
    }
    const theirs = Deno.statSync(duckFile).size, ratio = disk / theirs, bytes = disk / rowCount;
    rows.push([name, ...[raw, disk, theirs].map((sizeBytes) => (sizeBytes / rowCount).toFixed(1)), ratio.toFixed(2)]);
    if (ratio > DUCKDB_RATIO_MAX) faults.push(`${name} takes ${ratio.toFixed(2)} times DuckDB's file`);
    if (name === "trades" && bytes > TRADE_BYTES_MAX) faults.push(`trades take ${bytes.toFixed(1)} bytes a row`);
    for (
      const [column, encodings, size] of await ask(
        `select column, max(encodings), sum(diskSize) from table_column_storage('${name}') order by 1`,
      )
    ) console.log(`${name}.${column}: ${((size as number) / rowCount).toFixed(2)} bytes a row, ${encodings}`);
  }
  console.log(`\nbytes a row, ${rowCount} rows`);
  console.log(table(["", "raw", "encoded", "DuckDB", "ratio"], rows));
  assert.deepEqual(faults, []);
}
