/** Effects on the machine, injected so that tests can record them. */
import { dirname } from "node:path";
import { existsSync } from "../paths.ts";
import type { Command } from "./service.ts";

export interface System {
  os: typeof Deno.build.os;
  /** False if this user certainly may not change services. */
  isAdministrator: boolean;
  exists(path: string): boolean;
  write(path: string, text: string): void;
  remove(path: string): void;
  /** Returns the exit status. Output goes to the terminal unless `quiet`. */
  run(command: Command, quiet: boolean): number;
  print(line: string): void;
}

/** Exit status of a shell for an unknown command. */
const NOT_FOUND = 127;

export function thisSystem(): System {
  return {
    os: Deno.build.os,
    isAdministrator: Deno.build.os === "windows" || Deno.uid() === 0,
    exists: existsSync,
    write(path, text) {
      Deno.mkdirSync(dirname(path), { recursive: true });
      Deno.writeTextFileSync(path, text);
    },
    remove(path) {
      try {
        Deno.removeSync(path);
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    },
    run([program, ...args], quiet) {
      const stream = quiet ? "null" : "inherit";
      try {
        return new Deno.Command(program, { args, stdout: stream, stderr: stream }).outputSync().code;
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) return NOT_FOUND;
        throw error;
      }
    },
    print: (line) => console.log(line),
  };
}

/** Default data directory of a service; on Windows the same as QuestDB's. */
export function defaultServiceRoot(os: System["os"], name: string): string {
  if (os === "windows") return "C:\\Windows\\System32\\qdbroot";
  return os === "darwin" ? `/usr/local/var/${name}` : `/var/lib/${name}`;
}

/**
 * The default user of a service. On Linux a dedicated user. macOS cannot create one by a single command, so it is the
 * user who called sudo.
 */
export function defaultServiceUser(os: System["os"], env: Record<string, string | undefined>): string {
  return os === "darwin" ? env.SUDO_USER ?? env.USER ?? "root" : "sundial";
}
