/**
 * Log outputs for Windows: a file for each start in addition to the console, and the Application event log for a
 * service. The system is injected, so that the rules can be tested on other systems.
 *
 * Events are written by eventcreate.exe, which is part of Windows and registers the source by itself.
 * @see https://learn.microsoft.com/windows-server/administration/windows-commands/eventcreate
 */
import { join } from "node:path/win32";
import type { Output, QueuedLine } from "./queue.ts";
import type { Level } from "./record.ts";

export interface Host {
  os: string;
  env: Record<string, string | undefined>;
  /** From `-d`. Undefined if it was not given. */
  dataDirectory: string | undefined;
  /** Time of the start, in local time. */
  now: Date;
}

/** WinSW, which runs the server as a service, sets this to the service's name. */
const SERVICE_VARIABLE = "WINSW_SERVICE_ID";
/** Working directory of a service; QuestDB uses it as the root. */
const SERVICE_DATA_DIRECTORY = "C:\\Windows\\System32\\qdbroot";

/** Returns undefined if this process is not a Windows service. */
export function windowsServiceName({ os, env }: Pick<Host, "os" | "env">): string | undefined {
  return os === "windows" && env[SERVICE_VARIABLE] ? env[SERVICE_VARIABLE] : undefined;
}

/** The file for this start's console output; undefined on other systems. */
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

/** The console, and on Windows also its file, which is created with the first message. */
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

/** Levels that a service writes to the event log: start, end, and critical messages. */
export const EVENT_LEVELS: readonly Level[] = ["CRITICAL", "ADVISORY"];
/** Longer texts are truncated. The file has the whole text. */
const DESCRIPTION_CHARS_MAX = 4000;

/** Arguments of eventcreate.exe. */
export function eventArguments(source: string, level: Level, text: string): string[] {
  const type = level === "CRITICAL" ? "ERROR" : "INFORMATION";
  const description = text.trim().slice(0, DESCRIPTION_CHARS_MAX);
  return ["/L", "APPLICATION", "/SO", source, "/T", type, "/ID", level === "CRITICAL" ? "2" : "1", "/D", description];
}

type Run = (program: string, args: string[]) => Promise<{ code: number }>;

/** Starts one process for each event, one at a time. */
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
