/**
 * The function that all layers use: `logger("http-server").info("listening on …")`. LogTape passes the record to the one sink
 * that `openLog()` has installed. Before that, as in unit tests, messages are discarded.
 */
import { configureSync, getLogger, type LogLevel as TapeLevel, type LogRecord as TapeRecord } from "@logtape/logtape";
import type { Level, LogRecord } from "./record.ts";

export interface Logger {
  readonly name: string;
  /** True if the receiver takes DEBUG. */
  readonly isDebug: boolean;
  debug(message: string | (() => string)): void;
  info(message: string): void;
  error(message: string, error?: unknown): void;
  critical(message: string, error?: unknown): void;
  advisory(message: string): void;
  log(level: Level, message: string): void;
}

/**
 * LogTape has no ADVISORY, so it is passed as "warning". Writers filter by our levels, so the order of LogTape's does
 * not matter.
 */
const TAPE_LEVEL: Record<Level, TapeLevel> = {
  DEBUG: "debug",
  INFO: "info",
  ERROR: "error",
  CRITICAL: "fatal",
  ADVISORY: "warning",
};
const OUR_LEVEL: Record<TapeLevel, Level> = {
  trace: "DEBUG",
  debug: "DEBUG",
  info: "INFO",
  warning: "ADVISORY",
  error: "ERROR",
  fatal: "CRITICAL",
};

/** True if the receiver takes DEBUG. Asking LogTape takes microseconds, and each request asks. */
let hasDebug = false;

const nowMicros = () => Math.round((performance.timeOrigin + performance.now()) * 1000);

export function logger(name: string): Logger {
  const tape = getLogger(name);
  const log = (level: Level, message: string) =>
    // Uses emit() instead of info(): LogTape would interpret braces in SQL as placeholders, and emit() keeps
    // microseconds.
    tape.emit({
      level: TAPE_LEVEL[level],
      message: [message],
      rawMessage: message,
      timestamp: nowMicros() / 1000,
      properties: {},
    });
  return {
    name,
    log,
    get isDebug() {
      return hasDebug;
    },
    debug: (message) => {
      if (hasDebug) log("DEBUG", typeof message === "string" ? message : message());
    },
    info: (message) => log("INFO", message),
    error: (message, error) => log("ERROR", withError(message, error)),
    critical: (message, error) => log("CRITICAL", withError(message, error)),
    advisory: (message) => log("ADVISORY", message),
  };
}

function withError(message: string, error: unknown): string {
  if (error === undefined) return message;
  return `${message}: ${error instanceof Error ? error.stack ?? error.message : String(error)}`;
}

/** Installs the receiver of this thread's records, replacing any other. Undefined removes it. */
export function setReceiver(receive: ((record: LogRecord) => void) | undefined, debug = true): void {
  hasDebug = receive !== undefined && debug;
  if (receive === undefined) {
    return configureSync({ reset: true, sinks: {}, loggers: [{ category: ["logtape", "meta"], sinks: [] }] });
  }
  const sink = (record: TapeRecord) =>
    receive({
      timeMicros: Math.round(record.timestamp * 1000),
      level: OUR_LEVEL[record.level],
      logger: record.category.join("."),
      message: record.message.map(String).join(""),
    });
  configureSync({
    reset: true,
    sinks: { receive: sink },
    loggers: [
      { category: [], lowestLevel: debug ? "trace" : "info", sinks: ["receive"] },
      { category: ["logtape", "meta"], lowestLevel: "error", sinks: ["receive"] },
    ],
  });
}
