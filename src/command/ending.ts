/** The order of shutting down, and the signals that cause it. */
import { constants } from "node:os";
import { onAskedToStop } from "../config/mod.ts";
import { type Log, logger } from "../log/mod.ts";
import type { CommandLine } from "./command-line.ts";

/** Time for running work to finish, and total time before the process ends anyway. */
const DRAIN_MS = 3000;
export const SHUTDOWN_MS = 5000;
/** Time for the log's writers: on a normal shutdown, and on one without waiting. */
const LOG_CLOSE_MS = 3000;
const LAST_FLUSH_MS = 1000;
const SIGNAL_NUMBERS: Partial<Record<Deno.Signal, number>> = constants.signals;

/** A running part. The wires are closed before the database. */
export interface Part {
  name: string;
  close(): Promise<void>;
}

/** The name of the part that the wires use. */
export const DATABASE = "database";

/**
 * Closes the wires first, all at once, so that no new work arrives, and then what they used. Returns false if the time
 * ran out.
 */
export async function closeParts(parts: Part[]): Promise<boolean> {
  const deadline = Date.now() + SHUTDOWN_MS;
  const late = (untilMs: number) =>
    new Promise<false>((done) => setTimeout(() => done(false), Math.max(0, untilMs - Date.now())));
  const close = async (part: Part) => {
    try {
      await part.close();
    } catch (error) {
      logger("server-main").error(`closing ${part.name}`, error);
    }
    return true as const;
  };
  const database = parts.find((part) => part.name === DATABASE);
  const wires = parts.splice(0).filter((part) => part !== database);
  await Promise.race([Promise.all(wires.map(close)), late(Date.now() + DRAIN_MS)]);
  return database === undefined || await Promise.race([close(database), late(deadline)]);
}

/** Uses a time limit, because output to a console that nobody reads blocks. */
export async function closeLog(log: Log): Promise<void> {
  await Promise.race([log.close(), pause(LOG_CLOSE_MS)]);
}

/** Waits for the signal that stops the server. */
export class Stopper {
  readonly signal: Promise<string>;
  constructor({ ignoreHangup, root }: CommandLine, log: Log) {
    this.signal = new Promise((resolve) => {
      let isStopping = false;
      const on = (signal: Deno.Signal) =>
        Deno.addSignalListener(signal, () => {
          if (isStopping) return endWithoutWaiting(signal, log);
          isStopping = true;
          resolve(signal);
        });
      on("SIGINT");
      if (Deno.build.os === "windows") {
        onAskedToStop(root, () => resolve("stop"));
        return on("SIGBREAK");
      }
      on("SIGTERM");
      if (ignoreHangup) Deno.addSignalListener("SIGHUP", () => {});
      else on("SIGHUP");
    });
  }
}

/** A second signal ends the process at once, after flushing the log. The exit status is that of the signal. */
async function endWithoutWaiting(signal: Deno.Signal, log: Log): Promise<void> {
  logger("server-main").advisory(`${signal} again: ending immediately`);
  await Promise.race([log.flush(), pause(LAST_FLUSH_MS)]);
  Deno.exit(128 + (SIGNAL_NUMBERS[signal] ?? 0));
}

export const pause = (timeMs: number) => new Promise<void>((resolve) => setTimeout(resolve, timeMs));
