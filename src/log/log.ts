/** Creates writers from log.conf, and distributes records to them. */
import { isAbsolute, join } from "node:path";
import { ConfigError, throwFaults } from "../errors.ts";
import { parseProperties, readFileIfThere as readIfThere } from "../config/mod.ts";
import { didYouMean, nearest } from "../nearest.ts";
import { dateFormat } from "./dates.ts";
import { setReceiver } from "./logger.ts";
import { type Output, type QueuedLine, WriterQueue } from "./queue.ts";
import { DEBUG_BIT, type Level, levelBit, type LevelSet, type LogRecord, parseLevels } from "./record.ts";
import { RecentRecords } from "./recent.ts";
import { isRefusal } from "./refused.ts";
import { EVENT_LEVELS } from "./windows.ts";
import {
  allProperties,
  classNames,
  refuse,
  sizeOf,
  writerClass,
  type WriterProperties,
  type WriterSurroundings,
} from "./writers.ts";

export interface LogOptions {
  root: string;
  env: Record<string, string>;
  /** From `-Dout=FILE`: replaces `<root>/conf/log.conf`. */
  out?: string;
  /** From `-Debug`; SVC_DEBUG=true has the same effect. */
  debug?: boolean;
  /** The shipped log.conf, which applies if there is no file. */
  defaults: string;
  /** The shipped alert template; `[]` if no alerts are sent. */
  alertTemplate?: string;
  /** Version of the product, for alerts. */
  version?: string;
  random?: () => number;
  /** log.level.verbose */
  verbose?: boolean;
  /** log.timestamp.* */
  timestamp?: { format: string; zone: string; locale: string };
  nowMicros?: () => number;
  stdout?: { write(bytes: Uint8Array): Promise<number> };
  /**
   * The system's event log, for services that have one: receives critical and advisory records in addition to the
   * writers.
   */
  events?: Output;
}

interface Route {
  scope: string;
  levels: LevelSet;
  queue: WriterQueue;
}

const LINE_END = "\r\n";
const COMMON_PROPERTIES = ["class", "level", "scope", "bufferSize"];
/** Accepted so that files for QuestDB load. The queues here size themselves. */
const GLOBAL_KEYS = ["writers", "queueDepth", "recordLength"];
const DEFAULT_BUFFER_BYTES = 4 * 2 ** 20;
/** Sets `${log.dir}`; the default is `<root>/log`. */
const LOG_DIRECTORY = "SVC_LOG_LOG_DIR";

export class Log {
  /** The source of the configuration, a sentence for the first line of the log. */
  readonly origin: string;
  /** Errors, and statements that were refused. */
  readonly recentErrors = new RecentRecords();
  readonly #routes: Route[] = [];
  readonly #events: WriterQueue | undefined;
  readonly #byLogger = new Map<string, Route[]>();
  readonly #time: (timeMicros: number) => string;
  readonly #levelText: (level: Level) => string;

  /**
   * @throws {ConfigError} with the key of log.conf, before anything is written. `check`: collects the faults and opens
   *   nothing.
   */
  constructor(options: LogOptions, check?: ConfigError[]) {
    const faults: ConfigError[] = [];
    this.#time = timeFormat(options, faults);
    this.#levelText = options.verbose ? (level) => level : (level) => level.charAt(0);
    const { text, origin } = readLogConf(options, faults);
    this.origin = origin;
    const debug = isDebugOn(options.env, faults) || options.debug === true;
    const surroundings: WriterSurroundings = {
      root: options.root,
      logDirectory: options.env[LOG_DIRECTORY] || join(options.root, "log"),
      ownLogDirectory: join(options.root, "log"),
      env: options.env,
      nowMicros: options.nowMicros ?? (() => Date.now() * 1000),
      stdout: options.stdout ?? Deno.stdout,
      alertTemplate: options.alertTemplate ?? "[]",
      version: options.version ?? "",
      random: options.random ?? Math.random,
    };
    const keys = readKeys(text, options.env, faults);
    const names = (keys.get("writers") ?? "").split(",").map((part) => part.trim()).filter((part) => part !== "");
    checkEnvironment(names, options.env, faults);
    const prepared = names.map((name) => this.#prepareWriter(name, keys, debug, surroundings, faults));
    if (check) {
      check.push(...faults);
      return;
    }
    throwFaults(faults);
    for (const open of prepared) if (open) this.#routes.push(open());
    if (options.events) {
      this.#events = this.#queue("events", options.events, DEFAULT_BUFFER_BYTES, surroundings.nowMicros);
    }
  }

  /** Checks log.conf and its environment without opening a writer. */
  static check(options: LogOptions): { faults: ConfigError[]; origin: string } {
    const faults: ConfigError[] = [];
    const { origin } = new Log(options, faults);
    return { faults, origin };
  }

  #prepareWriter(
    name: string,
    keys: Map<string, string>,
    debug: boolean,
    surroundings: WriterSurroundings,
    faults: ConfigError[],
  ): (() => Route) | undefined {
    const prefix = `w.${name}`;
    const get = (property: string) =>
      surroundings.env[logEnvName(`${prefix}.${property}`)] ?? keys.get(`${prefix}.${property}`);
    const properties: WriterProperties = { prefix, get, faults };
    const className = get("class");
    // A listed writer may have all its lines commented out, as in the shipped file. It is ignored.
    if (className === undefined || className === "") {
      if ([...COMMON_PROPERTIES, ...allProperties()].some((property) => get(property))) {
        refuse(properties, "class", `one of ${classNames().join(", ")}`);
      }
      return undefined;
    }
    const writer = writerClass(className);
    if (writer === undefined) {
      refuse(properties, "class", `one of ${classNames().join(", ")}`);
      return undefined;
    }
    const known = [...COMMON_PROPERTIES, ...writer.properties];
    for (const key of keys.keys()) {
      const property = key.startsWith(`${prefix}.`) ? key.slice(prefix.length + 1) : undefined;
      // `w.http.min.level` is not a property of a writer named `http`.
      if (property === undefined || known.includes(property) || property.includes(".")) continue;
      const near = nearest(property, known);
      const hint = near ? `; did you mean ${prefix}.${near}?` : `: known are ${known.join(", ")}`;
      faults.push(new ConfigError(key, `${key}: unknown property${hint}`));
    }
    for (const property of writer.required) if (!get(property)) refuse(properties, property, "a value");
    const levels = parseLevels(get("level") ?? "INFO") ??
      refuse(properties, "level", "DEBUG, INFO, ERROR, CRITICAL, ADVISORY or a list of them") ?? 0;
    const wanted = writer.faultsOnly ? levels & ~levelBit("ADVISORY") : levels;
    const limitBytes = sizeOf(properties, "bufferSize", DEFAULT_BUFFER_BYTES);
    const open = writer.prepare(properties, surroundings);
    return () => ({
      scope: get("scope") ?? "",
      levels: debug && !writer.faultsOnly ? wanted | DEBUG_BIT : wanted,
      queue: this.#queue(prefix, open(), limitBytes, surroundings.nowMicros),
    });
  }

  #queue(prefix: string, output: Output, limitBytes: number, nowMicros: () => number): WriterQueue {
    const tellDropped = (count: number) =>
      this.#line({
        timeMicros: nowMicros(),
        level: "ERROR",
        logger: "log",
        message: `${prefix}: ${count} messages were dropped, because they could not be written, or not fast enough`,
      });
    return new WriterQueue(output, limitBytes, tellDropped, (lines, error) => rescue(prefix, lines, error));
  }

  /** True if any writer has level DEBUG. */
  get wantsDebug(): boolean {
    return this.#routes.some((route) => (route.levels & DEBUG_BIT) !== 0);
  }

  readonly receive = (record: LogRecord): void => {
    if (isError(record)) this.recentErrors.add(record);
    let routes = this.#byLogger.get(record.logger);
    if (routes === undefined) this.#byLogger.set(record.logger, routes = this.#routesOf(record.logger));
    let line: QueuedLine | undefined;
    const bit = levelBit(record.level);
    for (const { levels, queue } of routes) if ((levels & bit) !== 0) queue.push(line ??= this.#line(record));
    if (this.#events && EVENT_LEVELS.includes(record.level)) this.#events.push(line ?? this.#line(record));
  };

  /**
   * Returns the writers with the longest scope that is a prefix of the logger's name. Writers without a scope get the
   * remaining loggers.
   */
  #routesOf(loggerName: string): Route[] {
    const fitting = this.#routes.filter((route) => loggerName.startsWith(route.scope));
    const longest = Math.max(...fitting.map((route) => route.scope.length));
    return fitting.filter((route) => route.scope.length === longest);
  }

  #line({ timeMicros, level, logger, message }: LogRecord): QueuedLine {
    return {
      timeMicros,
      level,
      text: `${this.#time(timeMicros)} ${this.#levelText(level)} ${logger} ${message}${LINE_END}`,
    };
  }

  /** Resolves when everything received so far is written. */
  async flush(): Promise<void> {
    await Promise.all(this.#queues().map((queue) => queue.flush()));
  }

  async close(): Promise<void> {
    setReceiver(undefined);
    await Promise.all(this.#queues().map((queue) => queue.close()));
  }

  #queues(): WriterQueue[] {
    const queues = this.#routes.map((route) => route.queue);
    return this.#events ? [...queues, this.#events] : queues;
  }

  get dropped(): number {
    return this.#routes.reduce((sum, route) => sum + route.queue.state.dropped, 0);
  }
}

const isError = ({ level, message }: LogRecord) =>
  level === "ERROR" || level === "CRITICAL" || level === "INFO" && isRefusal(message);

/** Writes severe lines to stderr if a full or broken disk keeps them out of the log. */
function rescue(prefix: string, lines: QueuedLine[], error: Error): void {
  const grave = lines.filter((line) => line.level !== "DEBUG" && line.level !== "INFO").map((line) => line.text).join(
    "",
  );
  try {
    Deno.stderr.writeSync(new TextEncoder().encode(`${prefix}: cannot write the log: ${error.message}\n${grave}`));
  } catch {
    // stderr is not writable either
  }
}

function isDebugOn({ SVC_DEBUG: text = "" }: Record<string, string | undefined>, faults: ConfigError[]): boolean {
  if (/^(true|false|)$/i.test(text)) return text.toLowerCase() === "true";
  faults.push(new ConfigError("SVC_DEBUG", `SVC_DEBUG: found "${text}", expected true or false`));
  return false;
}

function timeFormat({ timestamp }: LogOptions, faults: ConfigError[]): (timeMicros: number) => string {
  const { format = "yyyy-MM-ddTHH:mm:ss.SSSUUUz", zone = "Z", locale = "en" } = timestamp ?? {};
  const isKnown = (check: () => void, key: string, found: string, expected: string) => {
    try {
      check();
      return true;
    } catch {
      faults.push(new ConfigError(key, `${key}: found "${found}", expected ${expected}`));
      return false;
    }
  };
  const hasZone = isKnown(() => dateFormat("", zone), "log.timestamp.timezone", zone, "Z or the name of a time zone");
  const hasLocale = isKnown(
    () => dateFormat("", "Z", locale),
    "log.timestamp.locale",
    locale,
    "the name of a locale, such as en",
  );
  return dateFormat(format, hasZone ? zone : "Z", hasLocale ? locale : "en");
}

function readLogConf({ root, out, defaults }: LogOptions, faults: ConfigError[]): { text: string; origin: string } {
  const readFileIfThere = (path: string) => {
    try {
      return readIfThere(path);
    } catch (error) {
      faults.push(new ConfigError("log.conf", `cannot read ${path}: ${(error as Error).message}`));
      return "";
    }
  };
  if (out !== undefined) {
    const text = readFileIfThere(isAbsolute(out) ? out : join(Deno.cwd(), out));
    if (text !== undefined) return { text, origin: `Log configuration loaded from: ${out}` };
    return { text: defaults, origin: `Log configuration loaded using factory defaults: ${out} does not exist` };
  }
  const path = join(root, "conf", "log.conf");
  const text = readFileIfThere(path);
  if (text !== undefined) return { text, origin: `Reading log configuration from ${path}` };
  return { text: defaults, origin: "Log configuration loaded using factory defaults" };
}

const logEnvName = (key: string) => `SVC_LOG_${key.toUpperCase().replace(/[.-]/g, "_")}`;

function readKeys(text: string, env: Record<string, string>, faults: ConfigError[]): Map<string, string> {
  const keys = new Map<string, string>();
  for (const { key, value, line } of parseProperties(text)) {
    if (!key.startsWith("w.") && !GLOBAL_KEYS.includes(key)) {
      faults.push(new ConfigError(key, `log.conf:${line}: unknown key ${key}${didYouMean(key, GLOBAL_KEYS)}`));
      continue;
    }
    keys.set(key, value);
  }
  const writers = env[logEnvName("writers")];
  if (writers !== undefined) keys.set("writers", writers);
  return keys;
}

/**
 * Finds environment names that begin like a writer's keys but are not properties of any class, because a misspelt name
 * would leave the default in force.
 */
function checkEnvironment(writers: string[], env: Record<string, string>, faults: ConfigError[]): void {
  const known = [...COMMON_PROPERTIES, ...allProperties()];
  const knownNames = new Set(writers.flatMap((name) => known.map((property) => logEnvName(`w.${name}.${property}`))));
  for (const name of Object.keys(env)) {
    if (knownNames.has(name) || !writers.some((writer) => name.startsWith(logEnvName(`w.${writer}.`)))) continue;
    faults.push(new ConfigError(name, `${name}: no writer has this property${didYouMean(name, knownNames)}`));
  }
}

/** Opens the writers and installs them as the receiver of this thread's messages. @throws {ConfigError} */
export function openLog(options: LogOptions): Log {
  const log = new Log(options);
  setReceiver(log.receive, log.wantsDebug);
  return log;
}
