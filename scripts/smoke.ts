/**
 * Tests an executable on this machine: starts it with a new root and free ports, queries over HTTP and PG, checks health and metrics,
 * writes a row, restarts it and finds the row. The exit status is 0 if everything succeeded.
 *
 *     deno run -A --no-lock scripts/smoke.ts COMMAND…        such as dist/linux-x64/sundial, or deno task start
 */
import assert from "node:assert/strict";
import postgres from "postgres";

export interface SmokeOptions {
  cwd?: string;
  env?: Record<string, string>;
  say?: (line: string) => void;
}

/** Generous, because emulated and cold machines are slow. These are only upper bounds. */
const READY_MS = 120_000;
const STOPPED_MS = 60_000;

/** @throws {Error} if a check fails, with the server's output. */
export async function smoke(command: string[], options: SmokeOptions = {}): Promise<void> {
  const root = Deno.makeTempDirSync({ prefix: "sundial-smoke-" });
  const say = options.say ?? (() => {});
  const server = new Server(command, root, options);
  try {
    await server.start();
    say("started");
    assert.deepEqual(await server.exec("select count() from read_parquet('trades.parquet')"), [[100_000]]);
    say("read the embedded Parquet file over HTTP");
    await server.exec("create table smoke (ts timestamp, name symbol, value double) timestamp(ts) partition by day");
    const sql = server.postgres();
    await sql`insert into smoke values ('2026-01-01T00:00:00Z', ${"tea"}, ${1.5})`;
    const [row] = await sql`select name, value * 2 doubled from smoke where name = ${"tea"}`;
    assert.deepEqual({ ...row }, { name: "tea", doubled: 3 });
    await sql.end();
    say("wrote and read over the PostgreSQL wire");
    const health = await fetch(`http://127.0.0.1:${server.ports.health}/`);
    assert.deepEqual([health.status, await health.text()], [200, ""]);
    const metrics = await fetch(`http://127.0.0.1:${server.ports.health}/metrics`);
    assert.match(await metrics.text(), /^service_/m);
    say("healthy, with metrics");
    assert.equal((await fetch(`http://127.0.0.1:${server.ports.http}/`)).status, 200);
    say("served the page");
    assert.equal(await server.stop(), 0, "the status after stop");
    say("stopped with status 0");
    await server.start();
    assert.deepEqual(await server.exec("select name, value from smoke"), [["tea", 1.5]]);
    assert.equal(await server.stop(), 0, "the status after the second stop");
    say("started again with its rows, and stopped");
  } catch (error) {
    throw new Error(`${(error as Error).message}\nThe server printed:\n${server.output}`, { cause: error });
  } finally {
    await server.end();
    Deno.removeSync(root, { recursive: true });
  }
}

class Server {
  output = "";
  ports = { http: 0, pg: 0, health: 0 };
  #process: Deno.ChildProcess | undefined;
  #ended: Promise<number> | undefined;

  constructor(
    private readonly command: string[],
    private readonly root: string,
    private readonly options: SmokeOptions,
  ) {}

  async start(): Promise<void> {
    const [http, pg, health] = freePorts(3);
    this.ports = { http, pg, health };
    this.#process = this.#command("start", {
      SVC_HTTP_NET_BIND_TO: `127.0.0.1:${http}`,
      SVC_PG_NET_BIND_TO: `127.0.0.1:${pg}`,
      SVC_HTTP_MIN_BIND_TO: `127.0.0.1:${health}`,
      SVC_LINE_TCP_ENABLED: "false",
      SVC_METRICS_ENABLED: "true",
    }).spawn();
    this.#ended = this.#watch(this.#process);
    let ended: number | undefined;
    this.#ended.then((code) => (ended = code));
    for (const deadline = Date.now() + READY_MS;;) {
      try {
        await this.exec("select 1");
        return;
      } catch (error) {
        if (ended !== undefined) throw new Error(`it ended with status ${ended}`);
        if (Date.now() > deadline) throw new Error("it is not ready", { cause: error });
      }
      await new Promise((done) => setTimeout(done, 100));
    }
  }

  async exec(sql: string): Promise<unknown> {
    const reply = await fetch(`http://127.0.0.1:${this.ports.http}/exec?${new URLSearchParams({ query: sql })}`);
    const { error, dataset } = await reply.json();
    if (error !== undefined) throw new Error(`${sql}: ${error}`);
    return dataset;
  }

  postgres() {
    const account = { user: "admin", password: "quest", database: "qdb" };
    return postgres({ host: "127.0.0.1", port: this.ports.pg, max: 1, ...account });
  }

  /**
   * Stops the server and returns its exit status. Uses its own command, as signals differ between systems; a task
   * accepts only a signal.
   */
  async stop(): Promise<number> {
    if (this.#isTask) this.#process!.kill("SIGTERM");
    else assert.equal((await this.#command("stop").output()).code, 0, "the status of the command stop");
    const timer = setTimeout(() => this.#process!.kill("SIGKILL"), STOPPED_MS);
    const status = await this.#ended!;
    clearTimeout(timer);
    return status;
  }

  async end(): Promise<void> {
    if (this.#process === undefined) return;
    try {
      this.#process.kill("SIGKILL");
    } catch {
      // already ended
    }
    await this.#ended;
  }

  /** True for `deno task start`, which includes the command word. */
  get #isTask(): boolean {
    return this.command.at(-1) === "start";
  }

  #command(word: string, env: Record<string, string> = {}): Deno.Command {
    const [program, ...args] = this.command;
    return new Deno.Command(program, {
      args: [...args, ...this.#isTask ? [] : [word], "-d", this.root],
      cwd: this.options.cwd,
      env: { ...env, ...this.options.env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    });
  }

  async #watch(process: Deno.ChildProcess): Promise<number> {
    const drain = async (stream: ReadableStream<Uint8Array>) => {
      for await (const text of stream.pipeThrough(new TextDecoderStream())) this.output += text;
    };
    await Promise.all([drain(process.stdout), drain(process.stderr)]);
    return (await process.status).code;
  }
}

function freePorts(count: number): number[] {
  const listeners = Array.from({ length: count }, () => Deno.listen({ hostname: "127.0.0.1", port: 0 }));
  const ports = listeners.map(({ addr }) => (addr as Deno.NetAddr).port);
  for (const listener of listeners) listener.close();
  return ports;
}

if (import.meta.main) {
  if (Deno.args.length === 0) {
    console.error("smoke: which command starts it? As: deno run -A --no-lock scripts/smoke.ts dist/linux-x64/sundial");
    Deno.exit(1);
  }
  await smoke(Deno.args, { say: (line) => console.log(line) });
  console.log("ok");
}
