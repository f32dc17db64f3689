/** A server under attack: what statements come to, how long they take, what health and memory do meanwhile. */
import { startServer, type TestServer } from "../server.ts";

/** What the server owes to everybody, whatever it is asked. */
export const BOUNDS = { timeoutMs: 1_000, answerMs: 2_000, healthMs: 20, extraBytes: 200 << 20 };
/** Machines of CI are busy: tests hold the bounds at so many times, and report the real figures. */
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

export class Watched {
  readonly findings: Finding[] = [];
  readonly times: number[] = [];
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
    const start = performance.now();
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
    const ms = performance.now() - start;
    this.times.push(ms);
    const error = /"error":"((?:[^"\\]|\\.)*)"/.exec(head)?.[1];
    if (status >= 500 || /internal error|worker that|thread that planned/.test(error ?? "")) {
      this.findings.push({ sql, what: `${status} ${error ?? head.slice(0, 200)}` });
    }
    if (ms > BOUNDS.answerMs * SLACK) this.findings.push({ sql, what: `${Math.round(ms)} ms` });
    return { ms, status, error };
  }

  /** Ends the server and says what there is to say. */
  async end({ holdsHealth }: { holdsHealth: boolean }): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<number[]>();
    this.health.onmessage = ({ data }: MessageEvent<number[]>) => resolve(data);
    this.health.postMessage("end");
    const health = (await promise).sort((a, b) => a - b);
    this.health.terminate();
    const grown = this.resident("VmHWM") - this.startBytes;
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
    const times = this.times.sort((a, b) => a - b);
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
