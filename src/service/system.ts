/** What is done to the machine: handed in, so that tests can look at it. */
import { dirname } from "node:path";

export interface System {
  os: typeof Deno.build.os;
  /** False: this user surely may not change services. */
  isAdministrator: boolean;
  exists(path: string): boolean;
  write(path: string, text: string): void;
  remove(path: string): void;
  /** Its exit status; its output goes to the terminal unless `quiet`. */
  run(command: readonly string[], quiet: boolean): number;
  print(line: string): void;
}

/** What a shell gives for a command that it does not find. */
const NOT_FOUND = 127;

export function thisSystem(): System {
  return {
    os: Deno.build.os,
    isAdministrator: Deno.build.os === "windows" || Deno.uid() === 0,
    exists(path) {
      try {
        Deno.statSync(path);
        return true;
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) return false;
        throw error;
      }
    },
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

/** Where a service keeps its data when nobody says otherwise; on Windows where QuestDB's does. */
export function defaultServiceRoot(os: System["os"], name: string): string {
  if (os === "windows") return "C:\\Windows\\System32\\qdbroot";
  return os === "darwin" ? `/usr/local/var/${name}` : `/var/lib/${name}`;
}

/** On Linux one of the service's own; macOS makes none by a single command, so it is whoever called sudo. */
export function defaultServiceUser(os: System["os"], env: Record<string, string | undefined>): string {
  return os === "darwin" ? env.SUDO_USER ?? env.USER ?? "root" : "sundial";
}
