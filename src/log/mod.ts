/**
 * Messages → writers, as log.conf says. Main calls `openLog()`; a worker calls `logToMain()` with its own `postMessage`, and
 * main hands what it gets to `log.receive`. Everyone else calls `logger(name)`.
 */
import { setReceiver } from "./logger.ts";
import type { LogRecord } from "./record.ts";

export { askDirectly } from "./direct.ts";
export { Log, type LogOptions, openLog } from "./log.ts";
export { type Logger, logger } from "./logger.ts";
export {
  type RefusedStatement,
  shownAddress,
  shownMessage,
  shownText,
  type WireLogger,
  wireLogger,
} from "./refused.ts";
export { eventOutput, standardOutput, windowsServiceName } from "./windows.ts";
export { type Level, LEVELS, type LogRecord } from "./record.ts";

/** Sends this thread's records away; `debug`: also those of level DEBUG. */
export function logToMain(post: (record: LogRecord) => void, debug = false): void {
  setReceiver(post, debug);
}
