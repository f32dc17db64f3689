/**
 * Distributes messages to writers, as configured in log.conf. Main calls `openLog()`. All other code calls `logger(name)`.
 */
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
