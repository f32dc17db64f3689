/** Reports the bounds of the fuzz suite over the functions' catalogue as they are; the suite itself asserts five times the bounds. */
import { shuffledStatements, TABLE } from "../tests/fuzz/catalogue.ts";
import { randomOf } from "../tests/fuzz/random.ts";
import { BOUNDS } from "../tests/fuzz/times.ts";
import { GROWN_BYTES_MAX, mebibytes, told, Watched } from "../tests/fuzz/watched.ts";
import { percentile, table } from "./report.ts";

/** The same statements in each run, so that runs can be compared. */
const SEED = 1;

/** One statement at a time, so that each figure belongs to its statement. */
export async function boundsSuite(): Promise<void> {
  const statements = shuffledStatements(randomOf(SEED), 1);
  const watched = await Watched.start();
  for (const sql of TABLE) await watched.prepare(sql);
  const answered = await watched.runAll(statements, 1);
  const { timesMs, slowest, healthP99Ms, healthMostMs, grownBytes } = await watched.end();
  console.log(
    `\n${timesMs.length} calls of all functions with extreme arguments, time-out ${BOUNDS.timeoutMs} ms, ${answered} answered`,
  );
  console.log(table(["", "bound", "measured"], [
    ["worst answer", `${BOUNDS.answerMs} ms`, `${timesMs.at(-1)} ms; p99 ${percentile(timesMs, 0.99)} ms`],
    ["health, p99", `${BOUNDS.healthMs} ms`, `${healthP99Ms.toFixed(1)} ms; worst ${healthMostMs.toFixed(0)} ms`],
    ["resident growth", `${mebibytes(GROWN_BYTES_MAX)} MiB`, `${mebibytes(grownBytes)} MiB`],
  ]));
  console.log(`the slowest: ${slowest}`);
  if (watched.findings.length > 0) throw new Error(told(watched.findings));
}
