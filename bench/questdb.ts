/** A QuestDB server in a process of its own, for comparison. Its jar comes from Maven Central (org.questdb:questdb). */
import { freePorts } from "../tests/server.ts";

export interface QuestDb extends AsyncDisposable {
  readonly pid: number;
  readonly httpPort: number;
  readonly pgPort: number;
  exec(sql: string): Promise<{ error?: string; dataset?: unknown[][] }>;
}

/** `importDirectory`: where `read_parquet` finds files. */
export async function startQuestDb(
  { jar, root, importDirectory, env = {} }: {
    jar: string;
    root: string;
    importDirectory: string;
    env?: Record<string, string>;
  },
): Promise<QuestDb> {
  const [httpPort, pgPort] = freePorts(2);
  await Deno.mkdir(root, { recursive: true });
  const process = new Deno.Command("java", {
    args: ["-p", jar, "-m", "io.questdb/io.questdb.ServerMain", "-d", root],
    env: {
      QDB_HTTP_BIND_TO: `127.0.0.1:${httpPort}`,
      QDB_PG_NET_BIND_TO: `127.0.0.1:${pgPort}`,
      QDB_HTTP_MIN_ENABLED: "false",
      QDB_LINE_TCP_ENABLED: "false",
      QDB_TELEMETRY_ENABLED: "false",
      QDB_CAIRO_SQL_COPY_ROOT: importDirectory,
      ...env,
    },
    stdout: "null", // its log can fill a disk
    stderr: "null",
  }).spawn();
  const exec = async (query: string) => {
    const reply = await fetch(`http://127.0.0.1:${httpPort}/exec?${new URLSearchParams({ query })}`);
    return await reply.json();
  };
  for (let tries = 0; !await exec("select 1").then(() => true, () => false); tries++) {
    if (tries === 300) throw new Error("QuestDB is not ready after 30 s");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return {
    pid: process.pid,
    httpPort,
    pgPort,
    exec,
    async [Symbol.asyncDispose]() {
      process.kill("SIGKILL");
      await process.status;
    },
  };
}
