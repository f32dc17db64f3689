/** External programs for test suites: found on the PATH, started on free ports, stopped with the test. */
import { freePort } from "./server.ts";

/** True if the program is installed and ends without an error. */
export async function succeeds([program, ...args]: readonly string[]): Promise<boolean> {
  try {
    return (await new Deno.Command(program!, { args, stdout: "null", stderr: "null" }).output()).success;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return false;
  }
}

/** Fails also for the `node` that Deno offers to its tasks where Node is not installed. */
export const NODE_PROBE = ["node", "-e", "process.exit(process.versions.deno === undefined ? 0 : 1)"];

/** Returns the installed programs of `names`. Prints one line about the missing ones, as their suites are skipped. */
export async function installed(names: string[], suite: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of names) {
    if (await succeeds([name, "--version"])) found.push(name);
    else console.log(`skipped: ${suite}: ${name} is not installed`);
  }
  return found;
}

/** A Python with psycopg: the system's Python may have it even if the first on the PATH does not. */
export function pythonWithDriver(): string | undefined {
  return ["python3", "/usr/bin/python3"].find((program) => {
    try {
      return new Deno.Command(program, { args: ["-c", "import psycopg"], stdout: "null", stderr: "null" }).outputSync()
        .success;
    } catch {
      return false;
    }
  });
}

export interface Program {
  port: number;
  /** Sends SIGKILL, to simulate a failing machine. */
  kill(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a program and waits until `http://…/-/ready` answers, as with Prometheus' programs. */
export async function startProgram(
  name: string,
  args: (port: number, directory: string) => string[],
  port = freePort(),
): Promise<Program> {
  const directory = await Deno.makeTempDir({ prefix: `${name}-` });
  const process = new Deno.Command(name, {
    args: args(port, directory),
    cwd: directory,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  let output = "";
  const drained = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of process.stderr) output += decoder.decode(chunk, { stream: true });
  })();
  let hasEnded = false;
  const ended = process.status.then(() => void (hasEnded = true));
  const program: Program = {
    port,
    kill: async () => {
      if (!hasEnded) process.kill("SIGKILL");
      await Promise.all([ended, drained]);
    },
    [Symbol.asyncDispose]: async () => {
      await program.kill();
      await Deno.remove(directory, { recursive: true });
    },
  };
  try {
    await until(`${name} is ready`, async () => {
      if (hasEnded) throw new Error(`${name} has ended:\n${output}`);
      const reply = await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => undefined);
      await reply?.body?.cancel();
      return reply?.ok;
    });
    return program;
  } catch (error) {
    await program[Symbol.asyncDispose]();
    throw error;
  }
}

/** Retries until the result is truthy, and returns it. */
export async function until<T>(
  what: string,
  attempt: () => Promise<T> | T,
  patienceMs = 60_000,
): Promise<NonNullable<T>> {
  for (const end = Date.now() + patienceMs;;) {
    const value = await attempt();
    if (value) return value;
    if (Date.now() > end) throw new Error(`not within ${patienceMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
