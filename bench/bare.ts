/** Starts `bare-server.ts`. */
import { ending } from "./client-process.ts";

export interface BareServer extends AsyncDisposable {
  pid: number;
  ports: { http: number; pg: number };
}

/** `handsOver`: it gives each PostgreSQL request to a worker. */
export async function startBareServer({ handsOver = false } = {}): Promise<BareServer> {
  const file = new URL("bare-server.ts", import.meta.url).pathname;
  const args = ["run", "-A", "--no-lock", file, ...handsOver ? ["--hand-over"] : []];
  const process = new Deno.Command(Deno.execPath(), { args, stdout: "piped" }).spawn();
  const { value } = await process.stdout.getReader().read();
  return { pid: process.pid, ports: JSON.parse(new TextDecoder().decode(value)), ...ending(process) };
}
