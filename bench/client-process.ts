/** The client of `latency-client.ts` in a process of its own. */
import type { Order, Result } from "./latency-client.ts";

export function startClient(): AsyncDisposable & { ask(order: Order): Promise<Result> } {
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-lock", import.meta.resolve("./latency-client.ts")],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = process.stdin.getWriter();
  const reader = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  return {
    async ask(order) {
      await writer.write(new TextEncoder().encode(`${JSON.stringify(order)}\n`));
      while (!rest.includes("\n")) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`the client ended at ${JSON.stringify(order)}`);
        rest += value;
      }
      const end = rest.indexOf("\n"), line = rest.slice(0, end);
      rest = rest.slice(end + 1);
      return JSON.parse(line);
    },
    ...ending(process),
  };
}

/** Ends the process when it is disposed of. */
export function ending(process: Deno.ChildProcess): AsyncDisposable {
  return {
    async [Symbol.asyncDispose]() {
      process.kill("SIGKILL");
      await process.status;
    },
  };
}
