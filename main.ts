/**
 * The command line: reads the settings, makes the parts, wires them together, and ends them in order. Nothing else makes a part.
 */
import { isAbsolute, join, resolve } from "node:path";
import { constants } from "node:os";
import process from "node:process";
import about from "./deno.json" with { type: "json" };
import {
  type Address,
  askToStop,
  checkTag,
  type Config,
  DEFAULT_TAG,
  exposure,
  formatAddress,
  loadConfig,
  onAskedToStop,
  openRoot,
  type Root,
  type RunningServer,
  runningServer,
  sections,
  shippedFile,
  Tags,
} from "./src/config/mod.ts";
import { ConfigError, throwFaults } from "./src/errors.ts";
import {
  eventOutput,
  type Log,
  Log as LogWriters,
  type Logger,
  logger,
  openLog,
  standardOutput,
  windowsServiceName,
  wireLogger,
} from "./src/log/mod.ts";
import { VERSION } from "./src/version.ts";
import type { DatabaseOptions } from "./src/database/mod.ts";
import { createMetrics, HEALTH_WORD, type Metrics, readProcess } from "./src/metrics/mod.ts";
import { healthFault, probeHealth, startHealth } from "./src/wire/health/mod.ts";
import type { PgOptions } from "./src/wire/pg/mod.ts";
import type { Certificates } from "./src/wire/tls/mod.ts";
import {
  advice,
  defaultServiceRoot,
  defaultServiceUser,
  isServiceAction,
  limitsOf,
  serviceCommand,
  serviceName,
  thisSystem,
} from "./src/service/mod.ts";

const HELP = `Sundial ${VERSION}: a SQL time-series database

  sundial [start] [-d DIR] [-f] [-n] [-t TAG] [-Dout=FILE] [-Debug]
  sundial stop | status [-d DIR] [-t TAG]
  sundial health [-d DIR]
  sundial check-config [-d DIR] [-Dout=FILE]
  sundial service install | remove | status [-d DIR] [-t TAG] [--user NAME] [-Dout=FILE] [-Debug] [--print]
  sundial version
  sundial --help [keys]

  start          serves until SIGTERM or SIGINT; makes the root on first start
  stop           ends the server of that root, and waits until it has ended
  status         tells whether a server runs on that root
  health         asks the server of these settings how it is (http.min.bind.to); the exit status is 0 when it is well
  check-config   reports what is wrong in server.conf, log.conf and the environment, without starting
  service        makes the server a service of systemd, launchd or (through WinSW) Windows that starts with the machine,
                 takes it away, or asks about it; the data stays where it is

  -d DIR         the root directory (default: ./sundial-root; of a service: /var/lib/sundial)
  -f             exchanges shipped files in the root for this version's (changed ones are kept as *.bak), never conf/
  -n             goes on when the terminal closes (SIGHUP)
  -t TAG         a name for this server, by which stop and status find it without -d; of a service: a part of its name
  -Dout=FILE     log configuration instead of conf/log.conf
  -Debug         level DEBUG for every log writer
  --user NAME    who the service runs as (default: sundial, who is made; on macOS who calls)
  --print        shows what \`service\` would do, and does nothing
  --help keys    every setting with its default
`;

interface CommandLine {
  command: string;
  root: string;
  /** By -d. */
  isRootGiven: boolean;
  refresh: boolean;
  ignoreHangup: boolean;
  tag: string;
  logConf: string | undefined;
  debug: boolean;
  user: string | undefined;
  print: boolean;
  rest: string[];
}

const COMMANDS: Record<string, (line: CommandLine) => number | Promise<number>> = {
  start,
  stop,
  status,
  health,
  "check-config": checkConfig,
  service,
  version: () => print(VERSION),
  help: ({ rest }) => print(rest[0] === "keys" ? keysHelp() : HELP.trimEnd()),
};

/** Options that would be forgotten without a word. */
const OF_SERVICES = ["--user", "--print"];
const NOT_OF_SERVICES = ["-f", "-n"];

/** Commands that are followed by words. */
const TAKE_WORDS = ["help", "service"];

/** Work under way gets so long to end by itself, and so long in all before the process ends without it. */
const DRAIN_MS = 3000;
const SHUTDOWN_MS = 5000;
/** For the log's writers, and of a process that ends without waiting. */
const LOG_CLOSE_MS = 3000;
const LAST_FLUSH_MS = 1000;
const SIGNAL_NUMBERS: Partial<Record<Deno.Signal, number>> = constants.signals;

function parseCommandLine(args: string[]): CommandLine {
  const line: CommandLine = {
    command: "",
    root: "sundial-root",
    isRootGiven: false,
    refresh: false,
    ignoreHangup: false,
    tag: DEFAULT_TAG,
    logConf: undefined,
    debug: false,
    user: undefined,
    print: false,
    rest: [],
  };
  for (let at = 0; at < args.length; at++) {
    const arg = args[at];
    const value = () => {
      if (args[at + 1] === undefined) throw new ConfigError(arg, `${arg} needs a value; see --help`);
      return args[++at];
    };
    if (arg === "-d") [line.root, line.isRootGiven] = [value(), true];
    else if (arg === "-t") checkTag(line.tag = value());
    else if (arg === "--user") line.user = value();
    else if (arg === "--print") line.print = true;
    else if (arg === "-f") line.refresh = true;
    else if (arg === "-n") line.ignoreHangup = true;
    else if (arg === "-Debug") line.debug = true;
    else if (arg.startsWith("-Dout=")) line.logConf = arg.slice("-Dout=".length);
    else if (arg === "--help" || arg === "-h") line.command = "help";
    else if (arg === "--version") line.command = "version";
    else if (arg.startsWith("-")) throw new ConfigError(arg, `unknown option ${arg}; see --help`);
    else if (line.command === "") line.command = arg;
    else line.rest.push(arg);
  }
  line.command ||= "start";
  line.root = isAbsolute(line.root) ? line.root : resolve(line.root);
  if (!Object.hasOwn(COMMANDS, line.command)) {
    throw new ConfigError(line.command, `unknown command ${line.command}; see --help`);
  }
  if (line.rest.length > 0 && !TAKE_WORDS.includes(line.command)) {
    throw new ConfigError(line.rest[0], `${line.command} does not take "${line.rest[0]}"; see --help`);
  }
  const isService = line.command === "service";
  const [stray] = args.filter((arg) => isService ? NOT_OF_SERVICES.includes(arg) : OF_SERVICES.includes(arg));
  if (stray !== undefined) throw new ConfigError(stray, `${line.command} does not take ${stray}; see --help`);
  return line;
}

function logOptions(line: CommandLine, config: Config) {
  const instance = config.get("instance.name");
  const env = { ...instance === "" ? {} : { INSTANCE_NAME: instance }, ...Deno.env.toObject() };
  const host = { os: Deno.build.os, env, dataDirectory: line.isRootGiven ? line.root : undefined, now: new Date() };
  const service = windowsServiceName(host);
  return {
    root: line.root,
    env,
    stdout: standardOutput(host, Deno.stdout),
    events: service === undefined ? undefined : eventOutput(service),
    out: line.logConf,
    debug: line.debug,
    defaults: shippedText("conf/log.conf"),
    alertTemplate: shippedText("conf/alert-manager-tpl.json"),
    version: VERSION,
    verbose: config.get("log.level.verbose"),
    timestamp: {
      format: config.get("log.timestamp.format"),
      zone: config.get("log.timestamp.timezone"),
      locale: config.get("log.timestamp.locale"),
    },
  };
}

const DATABASE = "database";

const shippedText = (path: string) => new TextDecoder().decode(shippedFile(path));

/** What runs, in the order in which it was started; ended the other way round. */
interface Part {
  name: string;
  close(): Promise<void>;
}

async function start(line: CommandLine): Promise<number> {
  const config = loadConfig({ root: line.root, env: Deno.env.toObject() });
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
    failed.promise.catch(() => {}); // it may come while others are still started
    const fail = (reason: string) =>
      failed.reject(new Error(`the server ends, so that a new start recovers: ${reason}`));
    await startParts(line, config, root, log, parts, fail);
    const signal = await Promise.race([stopped.signal, failed.promise]);
    logger("server-main").advisory(`${signal}: shutting down`);
    const clean = await closeParts(parts);
    logger("server-main").advisory(
      clean ? "everything is on disk: goodbye" : `not all had ended after ${SHUTDOWN_MS} ms`,
    );
    return clean ? 0 : 1;
  } catch (error) {
    if (log) {
      logger("server-main").critical("the server ends", error instanceof ConfigError ? error.message : error);
    }
    await closeParts(parts);
    throw error;
  } finally {
    // A console that nobody reads takes nothing more.
    if (log) await Promise.race([log.close(), pause(LOG_CLOSE_MS)]);
    root.release();
  }
}

async function startParts(
  line: CommandLine,
  config: Config,
  root: Root,
  log: Log,
  parts: Part[],
  fail: (reason: string) => void,
): Promise<void> {
  const main = logger("server-main");
  const metrics = createMetrics();
  guardMain(main, metrics);
  main.advisory(
    `Sundial ${VERSION}, Deno ${Deno.version.deno}, ${config.machine.cores} cores, process ${Deno.pid}${
      tagText(line.tag)
    }`,
  );
  main.info(log.origin);
  main.advisory(`root: ${root.path}${root.isNew ? " (new)" : ""}`);
  for (const warning of config.warnings) main.advisory(`configuration: ${warning}`);
  for (const line of exposure(config)) main.advisory(line);
  const limits = limitsOf(config.machine.memoryBytes);
  for (const line of advice(limits, { memoryBytes: config.get("cairo.memory.size") })) main.advisory(line);
  metrics.read("diskFull", () => Atomics.load(metrics.healthWords, HEALTH_WORD.diskFull));
  metrics.read("logMessagesDropped", () => log.dropped);
  readProcess(metrics);
  const connections: Record<string, () => number> = {};
  metrics.read(
    "connections",
    () => Object.fromEntries(Object.entries(connections).map(([wire, count]) => [wire, count()])),
  );

  const certificates = await openCertificates(config, parts);
  // Health first: who watches sees that the process lives while a long log is replayed.
  if (config.get("http.min.enabled")) {
    const health = logger("http-min-server");
    const certificate = certificates?.of("http.min");
    const begin = (at: Address) => startHealth({ ...at, certificate, config, metrics, log: health });
    parts.push(await listen("http.min.bind.to", config.get("http.min.bind.to"), health, begin));
  }
  // The writer's thread reads its modules while this one reads those of everything else, which other commands do without.
  const writerThread = new Worker(new URL("./src/workers/writer.ts", import.meta.url), {
    type: "module",
    name: "writer",
  });
  const { openDatabase, withDevelopmentStatements } = await import("./src/database/mod.ts");
  const { httpConfigOf, loadConsole, startHttp } = await import("./src/wire/http/mod.ts");
  const { startPg } = await import("./src/wire/pg/mod.ts");
  const { startLineTcp } = await import("./src/wire/line-tcp/mod.ts");
  const opened = await openDatabase({
    ...databaseOptions(config, metrics, log.wantsDebug),
    reloadConfig: () => [reloadConfig(config), certificates?.reload()].includes(true),
    writerThread,
    onWriterFailed: (reason) => fail(`the writer has failed, ${reason}`),
  });
  const database = config.get("dev.mode.enabled") ? withDevelopmentStatements(opened) : opened;
  metrics.readAll(() => database.statistics());
  parts.push({ name: DATABASE, close: () => database.close() });
  if (config.get("http.enabled")) {
    const log = wireLogger("http-server");
    const certificate = certificates?.of("http");
    const begin = async (at: Address) => {
      const http = startHttp({
        ...at,
        certificate,
        database,
        config: httpConfigOf(config),
        log,
        metrics,
        console: loadConsole(await consoleDirectory()),
      });
      for (const wire of ["exec", "exp", "line_http"] as const) connections[wire] = () => http.inFlight()[wire];
      return http;
    };
    parts.push(await listen("http.net.bind.to", config.get("http.net.bind.to"), log, begin));
  }
  if (config.get("pg.enabled")) {
    const log = wireLogger("pg-server");
    const certificate = certificates?.of("pg");
    const begin = async (at: Address) => {
      const pg = await startPg(Object.assign(pgOptions(config), at, { certificate, database, log, metrics }));
      connections.pg = () => pg.connectionCount();
      return pg;
    };
    parts.push(await listen("pg.net.bind.to", config.get("pg.net.bind.to"), log, begin));
  }
  if (config.get("line.tcp.enabled") && !config.get("readonly")) {
    const log = logger("line-tcp-server");
    const certificate = certificates?.of("line.tcp");
    const begin = (at: Address) => {
      const line = startLineTcp(Object.assign(lineTcpOptions(config), at, { certificate, database, log, metrics }));
      connections.line_tcp = () => line.connectionCount();
      return Promise.resolve(line);
    };
    parts.push(await listen("line.tcp.net.bind.to", config.get("line.tcp.net.bind.to"), log, begin));
  }
  main.advisory(`ready after ${Math.round(performance.now())} ms`);
}

/** Undefined where TLS is off: its modules then need not be loaded. @throws {ConfigError} */
async function openCertificates(config: Config, parts: Part[]): Promise<Certificates | undefined> {
  const keys = [
    "tls.enabled",
    "http.tls.enabled",
    "http.min.tls.enabled",
    "pg.tls.enabled",
    "line.tcp.tls.enabled",
    "pg.tls.required",
  ] as const;
  if (!keys.some((key) => config.get(key))) return undefined;
  const { certificateFaults, Certificates } = await import("./src/wire/tls/mod.ts");
  throwFaults(certificateFaults(config));
  const certificates = new Certificates(config, logger("tls"));
  parts.push({ name: "tls", close: () => Promise.resolve(certificates.close()) });
  return certificates;
}

function databaseOptions(config: Config, metrics: Metrics, wantsDebug: boolean): DatabaseOptions {
  const log = logger("database");
  return {
    root: config.path("cairo.root"),
    importRoot: config.path("cairo.sql.copy.root"),
    backupRoot: config.path("cairo.backup.root"),
    heapSizeBytes: config.get("cairo.memory.size"),
    poolSizeBytes: config.get("cairo.pool.size"),
    commitMode: config.get("cairo.commit.mode") === "sync" ? "sync" : "nosync",
    checkpointLogBytes: config.get("cairo.checkpoint.log.size"),
    checkpointIntervalMs: config.get("cairo.checkpoint.interval"),
    syncDelayMs: config.get("dev.sync.delay"),
    execWorkerCount: config.get("shared.worker.count"),
    directRowsMax: config.get("query.direct.rows.max"),
    directWordsMax: config.get("query.direct.words.max"),
    wordsMax: config.get("query.words.max"),
    expressionsMax: config.get("query.expressions.max"),
    queryMemoryLimitBytes: config.get("cairo.query.memory.limit"),
    queryTimeoutMs: config.get("query.timeout"),
    useStatistics: config.get("query.statistics.enabled"),
    linePartitionBy: config.get("line.default.partition.by"),
    lineCreatesTables: config.get("line.auto.create.new.tables"),
    lineCreatesColumns: config.get("line.auto.create.new.columns"),
    lineTypes: {
      float: config.get("line.float.default.column.type"),
      integer: config.get("line.integer.default.column.type"),
      decimal: config.get("line.decimal.default.column.type"),
    },
    lineLimits: {
      sizeMax: config.get("line.tcp.max.measurement.size"),
      newTablesMax: config.get("line.auto.create.new.tables.max"),
      newColumnsMax: config.get("line.auto.create.new.columns.max"),
      memoryBytesMax: config.get("line.memory.size"),
    },
    statementCacheSize: config.get("cairo.statement.cache.size"),
    logsStatements: config.get("log.sql.query.progress.exe") ? "INFO" : wantsDebug ? "DEBUG" : undefined,
    tracesStatements: () => config.get("query.tracing.enabled") && !config.get("readonly"),
    log: log.log,
    pendingConfig: () => config.pending(),
    onDiskFull(isFull) {
      Atomics.store(metrics.healthWords, HEALTH_WORD.diskFull, Number(isFull));
      if (isFull) log.error("the disk is full: changes are refused until there is room");
      else log.advisory("the disk has room again: changes are taken");
    },
    onUnhandledError: () => metrics.unhandledErrors.inc(),
    parameters: () =>
      config.parameters().map((
        { path, envName, value, source, sensitive, reloadable },
      ) => [path, envName, value, source, sensitive, reloadable]),
  };
}

function pgOptions(config: Config): Omit<PgOptions, "hostname" | "port" | "database" | "log" | "metrics"> {
  return {
    // Reloadable ones are read at their use.
    get user() {
      return config.get("pg.user");
    },
    get password() {
      return config.get("pg.password");
    },
    get readonlyUser() {
      return config.get("pg.readonly.user");
    },
    get readonlyPassword() {
      return config.get("pg.readonly.password");
    },
    get readonlyEnabled() {
      return config.get("pg.readonly.user.enabled");
    },
    get authMethod() {
      return config.get("pg.auth.method");
    },
    get scramIterations() {
      return config.get("pg.auth.scram.iterations");
    },
    get connectionLimit() {
      return config.get("pg.net.connection.limit");
    },
    get namedStatementLimit() {
      return config.get("pg.named.statement.limit");
    },
    get logInTimeoutMs() {
      return config.get("pg.login.timeout");
    },
    requiresTls: config.get("pg.tls.required"),
    readOnly: config.get("pg.security.readonly") || config.get("readonly"),
    idleTimeoutMs: config.get("pg.net.connection.timeout"),
    messageSizeMax: config.get("pg.message.size.max"),
    receiveSizeBytes: config.get("pg.recv.buffer.size"),
    get sendSizeBytes() {
      return config.get("pg.send.buffer.size");
    },
  };
}

function lineTcpOptions(config: Config) {
  return {
    // The stream carries no name: whoever may reach the port may write.
    identity: { name: config.get("pg.user"), groups: [] },
    precision: config.get("line.tcp.timestamp"),
    get connectionLimit() {
      return config.get("line.tcp.net.connection.limit");
    },
    idleTimeoutMs: config.get("line.tcp.net.connection.timeout"),
    lineSizeMax: config.get("line.tcp.max.measurement.size"),
    disconnectOnError: config.get("line.tcp.disconnect.on.error"),
    showsLines: config.get("line.log.message.on.error"),
  };
}

/** Names only: a value may be a secret. */
function reloadConfig(config: Config): boolean {
  const log = logger("server-main");
  let changes: ReturnType<Config["reload"]>;
  try {
    changes = config.reload();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.error(`configuration was not read again: ${error.message.replaceAll("\n", "; ")}`);
    return false;
  }
  for (const key of changes.changed) log.advisory(`configuration: ${key} has changed and takes effect`);
  for (const key of changes.ignored) {
    log.advisory(`configuration: ${key} has changed and takes effect at the next start`);
  }
  return changes.changed.length > 0;
}

/** Starts a listener, and says in the log where it listens, or in one line why it cannot. */
async function listen(
  key: string,
  address: Address,
  log: Logger,
  begin: (address: Address) => Promise<{ port: number; close(): Promise<void> }>,
): Promise<Part> {
  try {
    const { port, close } = await begin(address);
    log.advisory(`listening on ${formatAddress({ ...address, port })}`);
    return { name: log.name, close };
  } catch (error) {
    throw listenFault(key, address, error) ?? error;
  }
}

function listenFault(key: string, address: Address, error: unknown): ConfigError | undefined {
  const code = (error as { code?: string }).code;
  const shown = formatAddress(address);
  if (error instanceof Deno.errors.AddrInUse || code === "EADDRINUSE") {
    return new ConfigError(key, `${key}: ${shown} is in use by another process`);
  }
  // node:net of Deno says EINVAL of an address that no adapter has.
  if (error instanceof Deno.errors.AddrNotAvailable || code === "EADDRNOTAVAIL" || code === "EINVAL") {
    return new ConfigError(key, `${key}: no network adapter of this machine has the address of ${shown}`);
  }
  if (code === "ENOTFOUND" || /failed to lookup address/.test((error as Error).message)) {
    return new ConfigError(key, `${key}: no address is known for the host of ${shown}`);
  }
  if (error instanceof Deno.errors.PermissionDenied || code === "EACCES") {
    return new ConfigError(key, `${key}: not permitted to listen on ${shown}`);
  }
}

/** What keeps listeners from their addresses, whoever is on their ports now. */
function addressFaults(config: Config): ConfigError[] {
  const listeners = [
    ["http.min.bind.to", "http.min.enabled"],
    ["http.net.bind.to", "http.enabled"],
    ["pg.net.bind.to", "pg.enabled"],
    ["line.tcp.net.bind.to", "line.tcp.enabled"],
  ] as const;
  return listeners.flatMap(([key, enabled]) => {
    if (!config.get(enabled)) return [];
    const address = config.get(key);
    try {
      Deno.listen({ hostname: address.hostname, port: 0 }).close();
      return [];
    } catch (error) {
      return listenFault(key, address, error) ?? [];
    }
  });
}

/** An error that reached the top of this thread is logged and counted, and the server goes on. */
function guardMain(log: Logger, metrics: Metrics): void {
  addEventListener("error", (event) => {
    event.preventDefault();
    metrics.unhandledErrors.inc();
    log.critical("unhandled error", event.error ?? event.message);
  });
  addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    metrics.unhandledErrors.inc();
    log.critical("unhandled rejection", event.reason);
  });
}

/** Wires first, all at once, so that no new work comes; then what they used. False when the time was over before the end. */
async function closeParts(parts: Part[]): Promise<boolean> {
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

class Stopper {
  readonly signal: Promise<string>;
  constructor({ ignoreHangup, root }: CommandLine, log: Log) {
    this.signal = new Promise((resolve) => {
      let asked = false;
      const on = (signal: Deno.Signal) =>
        Deno.addSignalListener(signal, () => {
          if (asked) return endWithoutWaiting(signal, log);
          asked = true;
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

/** Whoever asks twice does not want to wait; the log is written all the same, and the exit status is that of a signal's end. */
async function endWithoutWaiting(signal: Deno.Signal, log: Log): Promise<void> {
  logger("server-main").advisory(`${signal} again: ends without waiting`);
  await Promise.race([log.flush(), pause(LAST_FLUSH_MS)]);
  Deno.exit(128 + (SIGNAL_NUMBERS[signal] ?? 0));
}

/** The server that the command line means. @throws {ConfigError} */
function find({ root, isRootGiven, tag }: CommandLine): { root: string; server: RunningServer | undefined } {
  if (tag === DEFAULT_TAG) return { root, server: runningServer(root) };
  const place = isRootGiven ? root : new Tags().root(tag) ?? root;
  const server = runningServer(place);
  return { root: place, server: server?.tag === tag ? server : undefined };
}

const tagText = (tag: string) => tag === DEFAULT_TAG ? "" : `, tag ${tag}`;

async function stop(line: CommandLine): Promise<number> {
  const { root, server } = find(line);
  if (server === undefined) return print(`no server runs on ${root}${tagText(line.tag)}`, 1);
  if (Deno.build.os === "windows") askToStop(root);
  else process.kill(server.pid, "SIGTERM");
  for (const until = Date.now() + 2 * SHUTDOWN_MS; Date.now() < until;) {
    if (runningServer(root)?.pid !== server.pid) return print(`process ${server.pid} has ended`);
    await pause(50);
  }
  return print(`process ${server.pid} is still running`, 1);
}

const pause = (timeMs: number) => new Promise<void>((resolve) => setTimeout(resolve, timeMs));

function status(line: CommandLine): number {
  const { root, server } = find(line);
  if (server === undefined) return print(`no server runs on ${root}${tagText(line.tag)}`, 1);
  return print(`process ${server.pid} runs on ${root}${tagText(server.tag)}`);
}

async function health({ root }: CommandLine): Promise<number> {
  const { isHealthy, said } = await probeHealth(loadConfig({ root, env: Deno.env.toObject() }));
  return print(said, isHealthy ? 0 : 1);
}

/** Remembers where this tag is. @throws {ConfigError} when a server of another root has it. */
function takeTag({ tag, root }: CommandLine): void {
  if (tag === DEFAULT_TAG) return;
  const tags = new Tags();
  const other = tags.root(tag);
  const server = other === undefined || other === root ? undefined : runningServer(other);
  if (server?.tag === tag) {
    throw new ConfigError("-t", `-t: process ${server.pid} has the tag ${tag} already, on ${other}`);
  }
  try {
    tags.keep(tag, root);
  } catch (error) {
    logger("server-main").advisory(
      `stop and status will need -d: the tag could not be kept: ${(error as Error).message}`,
    );
  }
}

function service({ rest, tag, root, isRootGiven, user, print, logConf, debug }: CommandLine): number {
  const [action = "nothing", ...more] = rest;
  if (!isServiceAction(action) || more.length > 0) {
    const found = [action, ...more].join(" ");
    throw new ConfigError("service", `service: found "${found}", expected install, remove or status; see --help`);
  }
  const system = thisSystem();
  return serviceCommand(
    action,
    {
      tag,
      root: isRootGiven ? root : defaultServiceRoot(system.os, serviceName(tag)),
      program: program(),
      user: user ?? defaultServiceUser(system.os, Deno.env.toObject()),
      options: [...logConf === undefined ? [] : [`-Dout=${resolve(logConf)}`], ...debug ? ["-Debug"] : []],
    },
    print,
    system,
  );
}

/** The files of the console. Releases have them; a start from the sources builds them once. */
async function consoleDirectory(): Promise<string> {
  const here = import.meta.dirname!;
  const released = join(here, "build/console");
  try {
    if (Deno.statSync(released).isDirectory) return released;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  // The address is computed, so that the bundler is no part of the program's module graph.
  const builder: typeof import("./scripts/console/mod.ts") = await import(
    import.meta.resolve("./scripts/console/mod.ts")
  );
  return await builder.consoleDirectory(here);
}

/** What starts this program, from any directory. */
function program(): string[] {
  if (Deno.build.standalone) return [Deno.execPath()];
  const here = import.meta.dirname!;
  const words = about.tasks.start.replace(/^deno /, "").replace(/ main\.ts.*$/, "").split(" ");
  const flags = words.map((word) => word.replace(/^--lock=/, (option) => option + join(here, "/")));
  return [Deno.execPath(), ...flags, join(here, "main.ts")];
}

/** Opens no file of the root for writing. */
async function checkConfig(line: CommandLine): Promise<number> {
  const faults: ConfigError[] = [];
  const config = loadConfig({ root: line.root, env: Deno.env.toObject(), faults });
  const log = LogWriters.check(logOptions(line, config));
  faults.push(...log.faults, ...addressFaults(config));
  if (config.get("http.min.enabled")) faults.push(...[healthFault(config) ?? []].flat());
  const { certificateFaults } = await import("./src/wire/tls/mod.ts");
  faults.push(...certificateFaults(config));
  // All at once: an unknown key is often why another one is missed.
  if (faults.length > 0) { for (const warning of config.warnings) console.error(`sundial: warning: ${warning}`); }
  throwFaults(faults);
  for (const warning of config.warnings) console.log(`warning: ${warning}`);
  if (line.logConf !== undefined) console.log(log.origin);
  for (const { path, value, source } of config.parameters()) {
    if (source !== "default") console.log(`${path}=${value} (${source})`);
  }
  return print(`the configuration of ${join(line.root, "conf")} is valid`);
}

function keysHelp(): string {
  const lines: string[] = [];
  for (const [title, section] of Object.entries(sections)) {
    lines.push("", title);
    for (const [key, setting] of Object.entries(section)) {
      const byDefault = setting.secret
        ? ""
        : setting.defaultSaid ?? (typeof setting.default === "string" ? setting.default : "");
      lines.push(`  ${key}${byDefault === "" ? "" : ` (${byDefault})`}`, `      ${setting.sentence}`);
    }
  }
  return lines.join("\n").trimStart();
}

function print(text: string, status = 0): number {
  console.log(text);
  return status;
}

if (import.meta.main) {
  try {
    const line = parseCommandLine(Deno.args);
    Deno.exit(await COMMANDS[line.command](line));
  } catch (error) {
    // What the user can mend is a line for each fault; what we must mend keeps its stack.
    if (error instanceof ConfigError) {
      for (const line of error.message.split("\n")) console.error(`sundial: ${line}`);
    } else console.error(`sundial: ${error instanceof Error ? error.stack : String(error)}`);
    Deno.exit(1);
  }
}
