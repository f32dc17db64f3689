/**
 * Runs a Markdown page against its own server, from top to bottom, block by block:
 *
 *     sql              through psql
 *     sh               through bash; 127.0.0.1 and the documented ports stand for the server, /var/lib/sundial for its root
 *     ts, python       as a program
 *     ini, yaml        as server.conf, log.conf or Prometheus' configuration, which is checked
 *     text, json, csv  after one of those: the expected output; `…` matches anything
 *     other languages  are not run
 *
 * A comment `<!-- not run: why -->` before a block excludes it, and `<!-- server: KEY=VALUE … -->` configures the page's server.
 */
import { pythonWithDriver } from "./programs.ts";
import { join } from "node:path";
import { START_FLAGS } from "../scripts/flags.ts";
import { startServer, type TestServer } from "./server.ts";
import { fromFileUrl } from "./paths.ts";

const BLOCK = /(?:<!-- (not run|with): ([^\n]*?) -->\n+)?^```(\w+)\n([\s\S]*?)^```$/gm;
const SHOWN = new Set(["text", "json", "csv"]);
/** Programs that blocks may use and that not every machine has. */
const PROGRAMS = ["bash", "psql", "curl", "promtool", "prometheus", "python3"];

export interface PageRun {
  /** The page with the actual outputs. */
  text: string;
  /** Blocks that were not run, with the reason. */
  skipped: string[];
  ran: number;
}

export async function runPage(path: string): Promise<PageRun> {
  const page = Deno.readTextFileSync(path).replaceAll("\r\n", "\n");
  if (![...page.matchAll(BLOCK)].some(([, not, , language]) => not === undefined && isRun(language))) {
    return { text: page, skipped: [], ran: 0 };
  }
  const settings = /<!-- server: (.*?) -->/.exec(page)?.[1].split(" ") ?? [];
  const env = Object.fromEntries(settings.map((setting) => setting.split("=") as [string, string]));
  await using server = await startServer({ env });
  const directory = await Deno.makeTempDir({ prefix: "sundial-page-" });
  const runner = new Runner(server, directory, env);
  try {
    return await runner.run(page);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

const isRun = (language: string) => ["sql", "sh", "ts", "python", "ini", "yaml"].includes(language);
/** Programs that each language needs. */
const NEEDS: Record<string, string[]> = { sql: ["psql"], python: ["python3"], yaml: ["promtool"] };
/** Blocks of these use no data of the server. */
const FILES = ["ini", "yaml"];
const PATIENCE_MS = 60_000;

class Runner {
  private readonly skipped: string[] = [];
  private ran = 0;
  /** The first block that needs a missing program: later ones may use the rows that it stores. */
  private skippedFrom?: number;

  constructor(
    private readonly server: TestServer,
    private readonly directory: string,
    private readonly env: Record<string, string>,
  ) {
    // The executable, as on a user's PATH.
    const shim = join(directory, "sundial");
    const flags = START_FLAGS.map((flag) =>
      flag === "--lock=deno.lock" ? `--lock=${fromFileUrl("../deno.lock")}` : flag
    );
    Deno.writeTextFileSync(
      shim,
      `#!/bin/sh\nexec "${Deno.execPath()}" run ${flags.join(" ")} "${fromFileUrl("../main.ts")}" "$@"\n`,
      { mode: 0o755 },
    );
    for (const path of ["docs/alert-rules.yml", "docs/grafana-dashboard.json"]) {
      Deno.mkdirSync(join(directory, "docs"), { recursive: true });
      Deno.copyFileSync(fromFileUrl(`../${path}`), join(directory, path));
    }
  }

  async run(page: string): Promise<PageRun> {
    const parts: string[] = [];
    let at = 0;
    let waiting: { language: string; body: string; line: number } | undefined;
    const runWaiting = async (): Promise<string | undefined> => {
      const block = waiting;
      waiting = undefined;
      return block && await this.runBlock(block.language, block.body, block.line);
    };
    for (const match of page.matchAll(BLOCK)) {
      const [whole, mark, why, language, body] = match;
      const line = page.slice(0, match.index).split("\n").length;
      let shown = body;
      if (mark === "not run") {
        await runWaiting();
        this.skipped.push(`line ${line}: ${why}`);
      } else if (isRun(language)) {
        await runWaiting();
        waiting = { language, body, line };
      } else if (SHOWN.has(language) && waiting !== undefined) {
        const output = await runWaiting();
        if (output !== undefined && !fits(output, body)) shown = output;
      }
      parts.push(page.slice(at, match.index), whole.slice(0, whole.length - body.length - 3), shown, "```");
      at = match.index + whole.length;
    }
    await runWaiting();
    return { text: parts.join("") + page.slice(at), skipped: this.skipped, ran: this.ran };
  }

  /** Returns the output; undefined if the block cannot be run here. */
  private async runBlock(language: string, body: string, line: number): Promise<string | undefined> {
    const words = NEEDS[language] ?? (language === "sh" ? ["bash", ...wordsOf(body)] : []);
    const missing = PROGRAMS.find((program) => words.includes(program) && !isInstalled(program)) ??
      (language === "python" && pythonWithDriver() === undefined ? "psycopg" : undefined);
    const isFile = FILES.includes(language);
    if (missing !== undefined) {
      this.skipped.push(`line ${line}: ${missing} is not installed`);
      if (!isFile) this.skippedFrom ??= line;
      return undefined;
    }
    if (this.skippedFrom !== undefined && !isFile) {
      this.skipped.push(`line ${line}: line ${this.skippedFrom} was not run`);
      return undefined;
    }
    this.ran++;
    const text = this.localised(body);
    const output = await this.runText(language, text).catch((error) => {
      throw new Error(`line ${line}: ${(error as Error).message}\n${body}`);
    });
    const shown = this.globalised(output).trimEnd();
    return shown === "" ? "" : `${shown}\n`;
  }

  private runText(language: string, text: string): Promise<string> {
    switch (language) {
      case "sql":
        return this.psql(text);
      case "sh":
        return this.command("bash", ["-euo", "pipefail", "-c", text]);
      case "ini":
        return this.settings(text);
      case "yaml":
        return this.prometheus(text);
      default:
        return this.program(language, text);
    }
  }

  private async settings(text: string): Promise<string> {
    const root = await Deno.makeTempDir({ dir: this.directory });
    await Deno.mkdir(join(root, "conf"));
    await Deno.writeTextFile(join(root, "conf", text.includes("writers=") ? "log.conf" : "server.conf"), text);
    return await this.command(join(this.directory, "sundial"), ["check-config", "-d", root]);
  }

  private async prometheus(text: string): Promise<string> {
    // Beside the rules file, which it refers to.
    const path = join(this.directory, "docs", "prometheus.yml");
    await Deno.writeTextFile(path, text);
    return await this.command("promtool", ["check", "config", path]);
  }

  private psql(sql: string): Promise<string> {
    const where = ["-h", "127.0.0.1", "-p", String(this.server.pgPort), "-U", "admin", "-d", "qdb"];
    return this.command("psql", ["-X", "-q", ...where, "-v", "ON_ERROR_STOP=1", "-f", "-"], sql);
  }

  private async program(language: string, text: string): Promise<string> {
    const path = join(this.directory, `page.${language === "ts" ? "ts" : "py"}`);
    await Deno.writeTextFile(path, text);
    if (language === "python") return await this.command(pythonWithDriver()!, [path]);
    // Uses the drivers of the tests.
    const { imports, scopes } = JSON.parse(Deno.readTextFileSync(fromFileUrl("../deno.json")));
    const map = join(this.directory, "imports.json");
    await Deno.writeTextFile(map, JSON.stringify({ imports: { ...imports, ...scopes["./tests/"] } }));
    return await this.command(Deno.execPath(), [
      "run",
      "-A",
      "-q",
      "--no-lock",
      "--no-config",
      `--import-map=${map}`,
      path,
    ]);
  }

  private async command(program: string, args: string[], input = ""): Promise<string> {
    const child = new Deno.Command(program, {
      args,
      cwd: this.directory,
      env: {
        ...this.env,
        PATH: `${this.directory}:${Deno.env.get("PATH")}`,
        PGPASSWORD: "quest",
        NO_COLOR: "1",
        SVC_HTTP_MIN_BIND_TO: `127.0.0.1:${this.server.minPort}`,
      },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
      signal: AbortSignal.timeout(PATIENCE_MS),
    }).spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(input)).catch(() => {});
    await writer.close().catch(() => {});
    const { code, stdout, stderr } = await child.output();
    const decoder = new TextDecoder();
    if (code !== 0) throw new Error(`status ${code}: ${decoder.decode(stdout)}${decoder.decode(stderr)}`);
    return decoder.decode(stdout).replaceAll("\r\n", "\n");
  }

  private get places(): [documented: string, here: string][] {
    const { httpPort, pgPort, minPort, linePort, root } = this.server;
    return [
      ["127.0.0.1:9000", `127.0.0.1:${httpPort}`],
      ["127.0.0.1:9003", `127.0.0.1:${minPort}`],
      ["127.0.0.1/9009", `127.0.0.1/${linePort}`],
      ["127.0.0.1:8812", `127.0.0.1:${pgPort}`],
      ["8812", String(pgPort)],
      ["/var/lib/sundial", root],
      ["deno run -A main.ts", "sundial"],
    ];
  }

  private localised(text: string): string {
    return this.places.reduce((result, [documented, here]) => result.replaceAll(documented, here), text);
  }

  private globalised(text: string): string {
    const places = this.places.filter(([, here]) => here !== "sundial");
    return places.reduce((result, [documented, here]) => result.replaceAll(here, documented), text);
  }
}

/** `…` in the expected output matches anything. */
function fits(output: string, shown: string): boolean {
  if (!shown.includes("…")) return output === shown;
  const pattern = shown.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("[\\s\\S]*?");
  return new RegExp(`^${pattern}$`).test(output);
}

const wordsOf = (script: string) => script.split(/[^\w-]+/);

const known = new Map<string, boolean>();

function isInstalled(program: string): boolean {
  let found = known.get(program);
  if (found === undefined) {
    try {
      found = new Deno.Command(program, { args: ["--version"], stdout: "null", stderr: "null" }).outputSync().success;
    } catch {
      found = false;
    }
    known.set(program, found);
  }
  return found;
}
