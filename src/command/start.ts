/** `sundial start`: opens the root and the log, starts the parts, and ends them on request. */
import { openRoot } from "../config/mod.ts";
import { ConfigError } from "../errors.ts";
import { type Log, logger, openLog } from "../log/mod.ts";
import type { Command, CommandLine } from "./command-line.ts";
import { closeLog, closeParts, type Part, SHUTDOWN_MS, Stopper } from "./ending.ts";
import { logOptions } from "./log-options.ts";
import { startParts } from "./parts.ts";
import { loadSettings } from "./settings.ts";
import { takeTag } from "./tag.ts";

export const start: Command = { run: serve };

async function serve(line: CommandLine): Promise<number> {
  const config = loadSettings(line.root);
  const root = openRoot(line.root, {
    refresh: line.refresh,
    except: line.logConf === undefined ? [] : ["conf/log.conf"],
    tag: line.tag,
  });
  const parts: Part[] = [];
  let log: Log | undefined;
  try {
    log = openLog(logOptions(line, config));
    takeTag(line);
    const stopped = new Stopper(line, log);
    const failed = Promise.withResolvers<never>();
    failed.promise.catch(() => {}); // it may be rejected while other parts are still starting
    const fail = (reason: string) =>
      failed.reject(new Error(`stopping the server, so that the next start recovers: ${reason}`));
    await startParts({ line, config, root, log, parts, fail });
    const signal = await Promise.race([stopped.signal, failed.promise]);
    logger("server-main").advisory(`${signal}: shutting down`);
    const clean = await closeParts(parts);
    logger("server-main").advisory(
      clean ? "everything is on disk: goodbye" : `some parts had not ended after ${SHUTDOWN_MS} ms`,
    );
    return clean ? 0 : 1;
  } catch (error) {
    if (log) {
      logger("server-main").critical("the server ends", error instanceof ConfigError ? error.message : error);
    }
    await closeParts(parts);
    throw error;
  } finally {
    if (log) await closeLog(log);
    root.release();
  }
}
