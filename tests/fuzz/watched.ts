/** A server under attack. Records the results and times of statements, and at the same time health and memory. */
import { residentBytes } from "../memory.ts";
import { startServer, type TestServer } from "../server.ts";
import {
  at,
  BOUNDS,
  type Finding,
  type HealthAnswer,
  type HealthTimes,
  healthTimes,
  SLACK,
  type Span,
  timeFindings,
} from "./times.ts";

const MEMORY_LIMIT_BYTES = 256 << 20;
/** Small enough to be written within the time limit. */
const SPILL_LIMIT_BYTES = 256 << 20;
/** Bound on the growth of resident memory. */
export const GROWN_BYTES_MAX = MEMORY_LIMIT_BYTES + BOUNDS.extraBytes;

export interface Reply {
  ms: number;
  status: number;
  /** The message if it is an error. */
  error?: string;
}

/** A completed statement with measurements. Others may have run at the same time. */
interface Run extends Span {
  /** Peak resident memory, above that at the start. */
  peakBytes: number;
}

/** Number of worst statements to report by time, memory and health. */
const WORST = Number(Deno.env.get("SUNDIAL_WORST") ?? 0);

/** Number of the most frequent errors to report. */
const ERRORS = Number(Deno.env.get("SUNDIAL_ERRORS") ?? 0);

/** What a run of statements showed. */
export interface Measured extends HealthTimes {
  /** Ascending. */
  timesMs: number[];
  /** The statement that took longest. */
  slowest: string;
  healthCount: number;
  /** Peak resident memory, above that at the start. */
  grownBytes: number;
}

export function summary(measured: Measured): string {
  const { timesMs, healthP99Ms, healthMostMs, healthCount, lateP99Ms, grownBytes } = measured;
  return `${timesMs.length} statements, p50 ${at(timesMs, 0.5)} ms, p99 ${at(timesMs, 0.99)} ms, most ${
    at(timesMs, 1)
  } ms, ${timesMs.filter((ms) => ms > BOUNDS.answerMs).length} above ${BOUNDS.answerMs} ms; ` +
    `health p99 ${healthP99Ms.toFixed(1)} ms, most ${healthMostMs.toFixed(0)} ms of ${healthCount}, timers late by ${
      lateP99Ms.toFixed(1)
    } ms (p99); ` +
    `resident memory grew by ${mebibytes(grownBytes)} MiB at most, of ${mebibytes(GROWN_BYTES_MAX)}`;
}

export class Watched {
  readonly findings: Finding[] = [];
  /** How often each kind of error came. */
  private readonly errors = new Map<string, number>();
  private readonly runs: Run[] = [];
  private readonly startBytes: number;
  private readonly health: Worker;

  private constructor(readonly server: TestServer) {
    this.startBytes = residentBytes(server.process.pid);
    this.health = new Worker(import.meta.resolve("./health-probe.ts"), { type: "module" });
    this.health.postMessage(`http://127.0.0.1:${server.minPort}/status`);
  }

  static async start(env: Record<string, string> = {}): Promise<Watched> {
    const server = await startServer({
      env: {
        SVC_QUERY_TIMEOUT: `${BOUNDS.timeoutMs}ms`,
        SVC_CAIRO_QUERY_MEMORY_LIMIT: `${MEMORY_LIMIT_BYTES}`,
        SVC_QUERY_SPILL_LIMIT: `${SPILL_LIMIT_BYTES}`,
        SVC_SHARED_WORKER_COUNT: "2",
        ...env,
      },
    });
    return new Watched(server);
  }

  /** Peak resident memory since the last call. */
  private takePeak(): number {
    const peak = residentBytes(this.server.process.pid, "VmHWM") - this.startBytes;
    if (Deno.build.os === "linux") Deno.writeTextFileSync(`/proc/${this.server.process.pid}/clear_refs`, "5");
    return peak;
  }

  /** Runs a preparatory statement without a time limit. */
  async prepare(sql: string): Promise<void> {
    const reply = await fetch(`${this.server.http}/exec?${new URLSearchParams({ query: sql })}`, {
      headers: { "statement-timeout": "60000" },
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${sql}: ${text}`);
  }

  /** Runs a statement and records violations as findings. */
  async run(sql: string): Promise<Reply> {
    const start = Date.now();
    let status = 0, head = "";
    try {
      const reply = await fetch(`${this.server.http}/exec?${new URLSearchParams({ query: sql, nm: "true" })}`, {
        signal: AbortSignal.timeout(BOUNDS.answerMs * 15),
      });
      status = reply.status;
      head = await headOf(reply);
    } catch (error) {
      this.findings.push({ sql, what: `no answer: ${reasonOf(error as Error)}` });
    }
    const end = Date.now(), ms = end - start;
    this.runs.push({ sql, start, end, peakBytes: this.takePeak() });
    const error = /"error":"((?:[^"\\]|\\.)*)"/.exec(head)?.[1];
    if (error !== undefined) {
      const kind = error.replace(/[\d.]+|'[^']*'/g, "…").slice(0, 60);
      this.errors.set(kind, (this.errors.get(kind) ?? 0) + 1);
    }
    if (status >= 500 || /internal error|worker that|thread that planned/.test(error ?? "")) {
      this.findings.push({ sql, what: `${status} ${error ?? head.slice(0, 200)}` });
    }
    return { ms, status, error };
  }

  /** Runs all statements, `alongside` at a time, and returns how many were answered without an error. */
  async runAll(statements: readonly string[], alongside: number): Promise<number> {
    const left = statements.values();
    let answered = 0;
    await Promise.all(Array.from({ length: alongside }, async () => {
      for (const sql of left) {
        const { error, status } = await this.run(sql);
        if (status === 0) break;
        if (error === undefined) answered++;
      }
    }));
    return answered;
  }

  /** Stops the server. `findings` are complete then. */
  async end(): Promise<Measured> {
    const { promise, resolve } = Promise.withResolvers<HealthAnswer[]>();
    this.health.onmessage = ({ data }: MessageEvent<HealthAnswer[]>) => resolve(data);
    this.health.postMessage("end");
    const answers = await promise;
    this.health.terminate();
    const grownBytes = this.runs.reduce((most, { peakBytes }) => Math.max(most, peakBytes), this.takePeak());
    const status = await this.server.stop();
    if (status !== 0) this.findings.push({ sql: "", what: `the server ended with status ${status}` });
    const failure = /.*(?:query worker \d+ failed|unhandled).*/i.exec(this.server.output());
    if (failure !== null) this.findings.push({ sql: "", what: failure[0] });
    this.findings.push(...timeFindings(this.runs, answers));
    if (grownBytes > GROWN_BYTES_MAX * SLACK) {
      this.findings.push({ sql: "", what: `resident memory grew by ${mebibytes(grownBytes)} MiB` });
    }
    if (WORST > 0) console.log(this.worst(answers));
    for (const [kind, count] of [...this.errors].sort((a, b) => b[1] - a[1]).slice(0, ERRORS)) {
      console.log(`  ${count} times: ${kind}`);
    }
    const slowest = this.runs.toSorted((a, b) => (b.end - b.start) - (a.end - a.start))[0];
    return {
      timesMs: this.runs.map(({ start, end }) => end - start).sort((a, b) => a - b),
      slowest: slowest?.sql ?? "",
      ...healthTimes(answers),
      healthCount: answers.length,
      grownBytes,
    };
  }

  private worst(answers: readonly HealthAnswer[]): string {
    const byTime = this.runs.toSorted((a, b) => (b.end - b.start) - (a.end - a.start)).slice(0, WORST);
    const growth = this.runs.map(({ sql, peakBytes }, k) => ({
      sql,
      peakBytes,
      bytes: peakBytes - (this.runs[k - 1]?.peakBytes ?? 0),
    }));
    const byMemory = growth.sort((a, b) => b.bytes - a.bytes).slice(0, WORST);
    const late = answers.toSorted((a, b) => b.ms - a.ms).slice(0, WORST);
    const lines = [
      ...byTime.map(({ sql, start, end }) => `${end - start} ms: ${sql}`),
      ...byMemory.map(({ sql, bytes, peakBytes }) => `${mebibytes(bytes)} to ${mebibytes(peakBytes)} MiB: ${sql}`),
      ...late.flatMap(({ start, ms }) => {
        const during = this.runs.filter((run) => run.end >= start && run.start <= start + ms);
        return [`health after ${ms.toFixed(0)} ms:`, ...during.map(({ sql }) => `  ${sql}`)];
      }),
    ];
    return lines.join("\n");
  }
}

/** fetch() itself says no more than "fetch failed". */
const reasonOf = ({ message, cause }: Error): string =>
  cause instanceof Error ? `${message}: ${cause.message}` : message;

export const mebibytes = (bytes: number): number => Math.round(bytes / 2 ** 20);

/** Returns the first bytes, and the last ones, which contain errors of partial answers; discards the rest. */
async function headOf(reply: Response): Promise<string> {
  const decoder = new TextDecoder();
  let head = "", last = new Uint8Array(0);
  for await (const chunk of reply.body!) {
    if (head.length < 4_000) head += decoder.decode(chunk.subarray(0, 4_000));
    last = chunk.subarray(-2_000);
  }
  return head + decoder.decode(last);
}

export function told(findings: readonly Finding[]): string {
  return findings.slice(0, 20).map(({ what, sql }) => `${what}\n    ${sql}`).join("\n");
}
