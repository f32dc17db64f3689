/**
 * Where people on Windows look for what a server says: a file for each start besides the console, and the Application event
 * log for a service. The system is handed in, so that the rules can be tested elsewhere.
 *
 * Events are written by eventcreate.exe, which every Windows has and which registers the source by itself.
 * @see https://learn.microsoft.com/windows-server/administration/windows-commands/eventcreate
 */
import { join } from "node:path/win32";
import type { Output, QueuedLine } from "./queue.ts";
import type { Level } from "./record.ts";

export interface Host {
  os: string;
  env: Record<string, string | undefined>;
  /** Of `-d`; undefined: not given. */
  dataDirectory: string | undefined;
  /** Of the start, in local time. */
  now: Date;
}

/** Set by WinSW, which runs the server as a service, to the service's name. */
const SERVICE_VARIABLE = "WINSW_SERVICE_ID";
/** What a service starts in, and the root that QuestDB's has there. */
const SERVICE_DATA_DIRECTORY = "C:\\Windows\\System32\\qdbroot";

/** Undefined: this is no Windows service. */
export function windowsServiceName({ os, env }: Pick<Host, "os" | "env">): string | undefined {
  return os === "windows" && env[SERVICE_VARIABLE] ? env[SERVICE_VARIABLE] : undefined;
}

/** The file that holds what this start says on the console; undefined: not on Windows. */
export function consoleFile(host: Host): string | undefined {
  if (host.os !== "windows") return undefined;
  const isService = windowsServiceName(host) !== undefined;
  const { now } = host;
  const two = (value: number) => String(value).padStart(2, "0");
  const date = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  const time = `${two(now.getHours())}-${two(now.getMinutes())}-${two(now.getSeconds())}`;
  const directory = host.dataDirectory ?? (isService ? SERVICE_DATA_DIRECTORY : ".");
  return join(directory, "log", `${isService ? "service" : "stdout"}-${date}T${time}.txt`);
}

export interface ByteTarget {
  write(bytes: Uint8Array): Promise<number>;
}

/** The console, and on Windows also its file, which is made with the first message. */
export function standardOutput(
  host: Host,
  console: ByteTarget,
  open: (path: string) => ByteTarget = append,
): ByteTarget {
  const path = consoleFile(host);
  if (path === undefined) return console;
  let file: ByteTarget | undefined;
  return {
    write: async (bytes) => {
      file ??= open(path);
      for (const target of [file, console]) {
        for (let at = 0; at < bytes.length;) at += await target.write(bytes.subarray(at));
      }
      return bytes.length;
    },
  };
}

function append(path: string): ByteTarget {
  Deno.mkdirSync(join(path, ".."), { recursive: true });
  return Deno.openSync(path, { create: true, append: true });
}

/** What a service tells the event log: that it started and ended, and what is critical. */
export const EVENT_LEVELS: readonly Level[] = ["CRITICAL", "ADVISORY"];
/** Longer ones are cut: they are in the file. */
const DESCRIPTION_CHARS_MAX = 4000;

/** Arguments of eventcreate.exe. */
export function eventArguments(source: string, level: Level, text: string): string[] {
  const type = level === "CRITICAL" ? "ERROR" : "INFORMATION";
  const description = text.trim().slice(0, DESCRIPTION_CHARS_MAX);
  return ["/L", "APPLICATION", "/SO", source, "/T", type, "/ID", level === "CRITICAL" ? "2" : "1", "/D", description];
}

type Run = (program: string, args: string[]) => Promise<{ code: number }>;

/** One process for each event, one after the other. */
export function eventOutput(source: string, run: Run = runProgram): Output {
  return {
    write: async (lines: QueuedLine[]) => {
      for (const { level, text } of lines) {
        const { code } = await run("eventcreate.exe", eventArguments(source, level, text));
        if (code !== 0) throw new Error(`eventcreate.exe ended with ${code}`);
      }
    },
    close: () => Promise.resolve(),
  };
}

const runProgram: Run = (program, args) => new Deno.Command(program, { args, stdout: "null", stderr: "null" }).output();
