/** A server under attack: what statements come to, how long they take, what health and memory do meanwhile. */
import { startServer, type TestServer } from "../server.ts";

/** What the server owes to everybody, whatever it is asked. */
export const BOUNDS = { timeoutMs: 1_000, answerMs: 2_000, healthMs: 20, extraBytes: 200 << 20 };
/** CI machines are shared, so tests allow this multiple of each bound and report the measured values. */
export const SLACK = 5;

const MEMORY_LIMIT_BYTES = 256 << 20;

export interface Finding {
  sql: string;
  what: string;
}

export interface Reply {
  ms: number;
  status: number;
  /** The error, if it is one. */
  error?: string;
}

/** A statement that has run, with what was seen meanwhile. Others may have run beside it. */
interface Run {
  sql: string;
  start: number;
  end: number;
  /** Of resident memory, above what there was at the start. */
  peakBytes: number;
}

/** An answer of health: when it was asked for, by `Date.now`, and how long it took. */
export interface HealthAnswer {
  start: number;
  ms: number;
}

/** So many of the worst statements are told by time, by memory and by health. */
const WORST = Number(Deno.env.get("SUNDIAL_WORST") ?? 0);

export class Watched {
  readonly findings: Finding[] = [];
  private readonly runs: Run[] = [];
  private readonly startBytes: number;
  private readonly health: Worker;

  private constructor(readonly server: TestServer) {
    this.startBytes = this.resident();
    this.health = new Worker(import.meta.resolve("./health-probe.ts"), { type: "module" });
    this.health.postMessage(`http://127.0.0.1:${server.minPort}/status`);
  }

  static async start(env: Record<string, string> = {}): Promise<Watched> {
    const server = await startServer({
      env: {
        SVC_QUERY_TIMEOUT: `${BOUNDS.timeoutMs}ms`,
        SVC_CAIRO_QUERY_MEMORY_LIMIT: `${MEMORY_LIMIT_BYTES}`,
        SVC_SHARED_WORKER_COUNT: "2",
        ...env,
      },
    });
    return new Watched(server);
  }

  /** In bytes; 0 where the system does not tell. */
  private resident(field = "VmRSS"): number {
    if (Deno.build.os !== "linux") return 0;
    const status = Deno.readTextFileSync(`/proc/${this.server.process.pid}/status`);
    return 1024 * Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? 0);
  }

  /** The most resident memory since the last call. */
  private takePeak(): number {
    const peak = this.resident("VmHWM") - this.startBytes;
    if (Deno.build.os === "linux") Deno.writeTextFileSync(`/proc/${this.server.process.pid}/clear_refs`, "5");
    return peak;
  }

  /** Runs a statement of the preparations, however long it takes. */
  async prepare(sql: string): Promise<void> {
    const reply = await fetch(`${this.server.http}/exec?${new URLSearchParams({ query: sql })}`, {
      headers: { "statement-timeout": "60000" },
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${sql}: ${text}`);
  }

  /** Runs a statement; what is wrong with what it comes to is a finding. */
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
      this.findings.push({ sql, what: `no answer: ${(error as Error).message}` });
    }
    const end = Date.now(), ms = end - start;
    this.runs.push({ sql, start, end, peakBytes: this.takePeak() });
    const error = /"error":"((?:[^"\\]|\\.)*)"/.exec(head)?.[1];
    if (status >= 500 || /internal error|worker that|thread that planned/.test(error ?? "")) {
      this.findings.push({ sql, what: `${status} ${error ?? head.slice(0, 200)}` });
    }
    if (ms > BOUNDS.answerMs * SLACK) this.findings.push({ sql, what: `${Math.round(ms)} ms` });
    return { ms, status, error };
  }

  /** Ends the server and says what there is to say. */
  async end({ holdsHealth }: { holdsHealth: boolean }): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<HealthAnswer[]>();
    this.health.onmessage = ({ data }: MessageEvent<HealthAnswer[]>) => resolve(data);
    this.health.postMessage("end");
    const answers = await promise;
    const health = answers.map(({ ms }) => ms).sort((a, b) => a - b);
    this.health.terminate();
    const grown = this.runs.reduce((most, { peakBytes }) => Math.max(most, peakBytes), this.takePeak());
    const status = await this.server.stop();
    if (status !== 0) this.findings.push({ sql: "", what: `the server ended with status ${status}` });
    if (/query worker \d+ failed|unhandled/i.test(this.server.output())) {
      this.findings.push({
        sql: "",
        what: /.*(?:query worker \d+ failed|unhandled).*/i.exec(this.server.output())![0],
      });
    }
    const p99 = at(health, 0.99);
    if (holdsHealth && p99 > BOUNDS.healthMs * SLACK) {
      this.findings.push({ sql: "", what: `p99 of health: ${p99.toFixed(1)} ms` });
    }
    if (grown > (MEMORY_LIMIT_BYTES + BOUNDS.extraBytes) * SLACK) {
      this.findings.push({ sql: "", what: `resident memory grew by ${mebibytes(grown)} MiB` });
    }
    const times = this.runs.map(({ start, end }) => end - start).sort((a, b) => a - b);
    if (WORST > 0) console.log(this.worst(answers));
    return `${times.length} statements, p50 ${at(times, 0.5).toFixed(1)} ms, p99 ${
      at(times, 0.99).toFixed(0)
    } ms, most ${at(times, 1).toFixed(0)} ms, ${
      times.filter((ms) => ms > BOUNDS.answerMs).length
    } above ${BOUNDS.answerMs} ms; ` +
      `health p99 ${p99.toFixed(1)} ms, most ${at(health, 1).toFixed(0)} ms of ${health.length}; ` +
      `resident memory grew by ${mebibytes(grown)} MiB at most, of ${
        mebibytes(MEMORY_LIMIT_BYTES + BOUNDS.extraBytes)
      }`;
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

const mebibytes = (bytes: number): number => Math.round(bytes / 2 ** 20);

const at = (sorted: readonly number[], share: number): number =>
  sorted.length === 0 ? 0 : sorted[Math.floor((sorted.length - 1) * share)];

/** The first bytes, and the last ones, where errors of started answers are; the rest is read and forgotten. */
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
