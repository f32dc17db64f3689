/**
 * Distributes messages to writers, as configured in log.conf. Main calls `openLog()`. A worker calls `logToMain()` with
 * its own `postMessage`, and main passes what arrives to `log.receive`. All other code calls `logger(name)`.
 */
import { setReceiver } from "./logger.ts";
import type { LogRecord } from "./record.ts";

export { askDirectly } from "./direct.ts";
export { Log, type LogOptions, openLog } from "./log.ts";
export { type Logger, logger } from "./logger.ts";
export {
  LimitedLines,
  type RefusedStatement,
  shownAddress,
  shownMessage,
  shownText,
  wireLogger,
  withoutSecrets,
} from "./refused.ts";
export { eventOutput, standardOutput, windowsServiceName } from "./windows.ts";
export { type LogRecord } from "./record.ts";

/** Posts this thread's records elsewhere. `debug`: includes those of level DEBUG. */
export function logToMain(post: (record: LogRecord) => void, debug = false): void {
  setReceiver(post, debug);
}
