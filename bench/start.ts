/**
 * Measures a start with many tables after the process was killed.
 *
 *     deno run -A --lock=dev.lock bench/start.ts [--tables=1000] [--partitions=10] [--rows=10] [--root=DIR]
 *
 * `--rows` is for each partition; 20,000 make about 10 GB for 1,000 × 10. An existing root is not filled again.
 */
import { startServer, type TestServer } from "./server.ts";

const option = (name: string, byDefault: number) =>
  Number(Deno.args.find((arg) => arg.startsWith(`--${name}=`))?.split("=")[1] ?? byDefault);
const tableCount = option("tables", 1000), partitionCount = option("partitions", 10), rowCount = option("rows", 10);
const root = Deno.args.find((arg) => arg.startsWith("--root="))?.slice("--root=".length) ?? Deno.makeTempDirSync();

const DAY_NS = 86_400_000_000_000n;
const BODY_LINES_MAX = 100_000;

async function fill(server: TestServer): Promise<void> {
  let lines: string[] = [];
  const send = async () => {
    const reply = await fetch(`${server.http}/write`, { method: "POST", body: lines.join("\n") + "\n" });
    if (reply.status !== 204) throw new Error(await reply.text());
    lines = [];
  };
  for (let table = 0; table < tableCount; table++) {
    for (let day = 0; day < partitionCount; day++) {
      for (let row = 0; row < rowCount; row++) {
        const time = 1_700_006_400_000_000_000n + BigInt(day) * DAY_NS + BigInt(row) * 4_000_000_000n;
        lines.push(
          `t${table},host=h${row % 8},region=r${row % 3} usage=${row / 7},count=${row}i,text="row ${row}" ${time}`,
        );
      }
    }
    if (lines.length >= BODY_LINES_MAX) await send();
  }
  if (lines.length > 0) await send();
}

async function killed(server: TestServer): Promise<void> {
  server.process.kill("SIGKILL");
  await server.process.status;
}

let isFilled = true;
try {
  Deno.statSync(`${root}/db`);
} catch {
  isFilled = false;
}
if (!isFilled) {
  const server = await startServer({ root });
  await fill(server);
  await killed(server);
}
for (let k = 0; k < 3; k++) {
  const before = performance.now();
  const server = await startServer({ root });
  const ready = performance.now() - before;
  const asked = performance.now();
  const { dataset, error } = await server.exec("select count() from t0");
  const answered = performance.now() - asked;
  if (error !== undefined || dataset![0][0] !== partitionCount * rowCount) {
    throw new Error(JSON.stringify({ dataset, error }));
  }
  const report = /ready after (\d+) ms/.exec(server.output())?.[1];
  const log = /\d+ blocks of the log[^\r\n]*/.exec(server.output())?.[0] ?? "nothing in the log";
  console.log(
    `start ${k + 1}: ready after ${Math.round(ready)} ms (its own count: ${report}), t0 after ${
      Math.round(answered)
    } ms more; ${log}`,
  );
  await (k < 2 ? killed(server) : server.stop());
}
