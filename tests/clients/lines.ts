/** The official clients of the line protocol, as programs that send one row to `ticks` by each configuration they are given. */
import { join } from "node:path";
import { Sender } from "@questdb/nodejs-client";
import { fromFileUrl } from "../paths.ts";
import { CI_TOOLS } from "./tools.ts";

const PROGRAMS = fromFileUrl("./clients/lines/");
const PYTHON = join(CI_TOOLS, "python/bin/python");
const JARS = ["questdb-client-1.0.1.jar", "slf4j-api-2.0.17.jar"].map((name) => join(CI_TOOLS, name));

export interface LineClient {
  name: string;
  /** Sends a row. Returns "ok" or the client's error. */
  send(configuration: string): Promise<string>;
  close(): Promise<void>;
}

/** Those that are installed. Prints a line about each of the others. */
export async function lineClients(): Promise<LineClient[]> {
  const binary = await Deno.makeTempFile({ prefix: "lines-" });
  const programs = [
    { name: "Python", probe: [PYTHON, "-c", "import questdb"], command: [PYTHON, "lines_client.py"] },
    { name: "Go", probe: ["go", "build", "-C", "go", "-o", binary], command: [binary] },
    {
      name: "Java",
      probe: ["java", "-cp", JARS.join(":"), "LinesClient.java"],
      command: ["java", "-cp", JARS.join(":"), "LinesClient.java"],
    },
  ];
  const clients: LineClient[] = [{ name: "Node", send: sendFromNode, close: async () => {} }];
  for (const { name, probe, command } of programs) {
    if (await succeeds(probe)) clients.push(new Program(name, command));
    else console.log(`skipped: QuestDB's client for ${name} is not installed`);
  }
  // The system keeps a running program without its file.
  await Deno.remove(binary);
  return clients;
}

async function succeeds([program, ...args]: string[]): Promise<boolean> {
  try {
    const options = { args, cwd: PROGRAMS, stdin: "null", stdout: "null", stderr: "null" } as const;
    return (await new Deno.Command(program, options).output()).success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

async function sendFromNode(configuration: string): Promise<string> {
  const sender = await Sender.fromConfig(configuration);
  try {
    await sender.table("ticks").floatColumn("price", 1.5).at(1n, "us");
    await sender.flush();
    return "ok";
  } catch (error) {
    return (error as Error).message;
  } finally {
    await sender.close();
  }
}

/** A program that reads configurations, one a line, and answers each with a line. */
class Program implements LineClient {
  private readonly process: Deno.ChildProcess;
  private readonly writer: WritableStreamDefaultWriter<Uint8Array>;
  private readonly reader: ReadableStreamDefaultReader<string>;
  private text = "";

  constructor(readonly name: string, [program, ...args]: string[]) {
    const env = { PYTHONWARNINGS: "ignore" };
    const options = { args, cwd: PROGRAMS, env, stdin: "piped", stdout: "piped", stderr: "inherit" } as const;
    this.process = new Deno.Command(program, options).spawn();
    this.writer = this.process.stdin.getWriter();
    this.reader = this.process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  async send(configuration: string): Promise<string> {
    await this.writer.write(new TextEncoder().encode(`${configuration}\n`));
    while (!this.text.includes("\n")) {
      const { value } = await this.reader.read();
      if (value === undefined) throw new Error(`the client for ${this.name} has ended: ${this.text}`);
      this.text += value;
    }
    const [line, ...rest] = this.text.split("\n");
    this.text = rest.join("\n");
    return line;
  }

  async close(): Promise<void> {
    await this.writer.close();
    await this.reader.cancel();
    await this.process.status;
  }
}
