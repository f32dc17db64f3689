/** Makes the parts of the server and wires them together. */
import type { IdentityProvider } from "../auth/oidc/mod.ts";
import { oidcSettings } from "../auth/oidc/settings.ts";
import { type Config, generalSettings, type Root } from "../config/mod.ts";
import { databaseSettings } from "../database/settings.ts";
import { throwFaults } from "../errors.ts";
import { type Log, type Logger, logger } from "../log/mod.ts";
import { createMetrics, HEALTH_WORD, type Metrics, readDisk, readProcess } from "../metrics/mod.ts";
import { advice, limitsOf } from "../service/mod.ts";
import { VERSION } from "../version.ts";
import { BusyPoll, eventsOfThisThread } from "../workers/busy-poll.ts";
import { directSockets } from "../workers/direct-sockets.ts";
import { watchMemory } from "../workers/memory-pressure.ts";
import { collectIfGrown } from "../workers/memory-release.ts";
import { startHealth } from "../wire/health/mod.ts";
import { LargeStatements } from "../wire/large-statements.ts";
import { healthSettings } from "../wire/health/settings.ts";
import type { Certificates } from "../wire/tls/mod.ts";
import { tlsSettings } from "../wire/tls/settings.ts";
import type { CommandLine } from "./command-line.ts";
import { DATABASE, type Part } from "./ending.ts";
import { exposure } from "./exposure.ts";
import { listen } from "./listeners.ts";
import { reloadConfig } from "./reload.ts";
import type { Shared } from "./shared.ts";
import { tagText } from "./tag.ts";

export interface Start {
  line: CommandLine;
  config: Config;
  root: Root;
  log: Log;
  /** Parts that have been started, in order. They are closed even if a later part fails. */
  parts: Part[];
  /** Ends the server. */
  fail(reason: string): void;
}

export async function startParts({ line, config, root, log, parts, fail }: Start): Promise<void> {
  const main = logger("server-main");
  const metrics = createMetrics();
  guardMain(main, metrics);
  tellStart(main, { line, config, root, log });
  metrics.read("diskFull", () => Atomics.load(metrics.healthWords, HEALTH_WORD.diskFull));
  metrics.read("logMessagesDropped", () => log.dropped);
  readProcess(metrics);
  readDisk(metrics, root.path);
  const connections = new Map<string, () => number>();
  metrics.read("connections", () => Object.fromEntries([...connections].map(([wire, count]) => [wire, count()])));
  const certificates = await openCertificates(config, parts);
  // Before other threads start, whose descriptors it would find.
  const events = eventsOfThisThread();
  // With a single core, the client needs it.
  const busyMicros = config.machine.cores > 1 ? config.get(generalSettings.busyMicros) : 0;
  const poll = events && new BusyPoll(events, busyMicros), sockets = poll && directSockets(poll);
  const largeStatements = new LargeStatements(config.get(generalSettings.largeStatementBytes));
  const shared: Shared = { config, metrics, certificates, connections, sockets, largeStatements };
  // Health starts first, so that monitors see a living process while a long log is replayed.
  if (config.get(healthSettings.enabled)) parts.push(await beginHealth(shared));
  const provider = await createProvider(config, parts);
  const providerOpened = provider?.open();
  // A failure is reported below, where the promise is awaited.
  providerOpened?.catch(() => {});
  // The writer's thread loads its modules while this thread loads all others, which other commands do not need.
  const writerThread = new Worker(new URL("../workers/writer.ts", import.meta.url), { type: "module", name: "writer" });
  // It may fail before the database listens to it.
  const writerFailed = new Promise<never>((_, reject) => {
    writerThread.onerror = (event) => {
      event.preventDefault();
      reject(new Error(`the writer has failed: ${event.message}`));
    };
  });
  writerFailed.catch(() => {}); // awaited below
  const { openDatabase } = await import("../database/mod.ts");
  const wires = await import("./wires.ts");
  const opening = openDatabase(Object.assign(databaseServices(config, metrics, log.wantsDebug), {
    reloadConfig: () => [reloadConfig(config), certificates?.reload()].includes(true),
    writerThread,
    busyMicros,
    awaitAnswer: poll?.awaitAnswer,
    awaitWriter: poll?.awaitWriter,
    // A collection stops this thread for some 50 ms, so it waits for a rest.
    onRest: collectIfGrown,
    watchMemory: (memory: Parameters<typeof watchMemory>[1]) => watchMemory(config.machine.memoryBytes, memory),
    recentErrors: () => log.recentErrors.list(),
    provider,
    onWriterFailed: (reason: string) => fail(`the writer has failed: ${reason}`),
  }));
  const database = await Promise.race([opening, writerFailed]);
  metrics.readAll(() => database.statistics());
  parts.push({ name: DATABASE, close: () => database.close() });
  await providerOpened;
  await wires.startWires({ ...shared, database, parts });
  main.advisory(`ready after ${Math.round(performance.now())} ms`);
}

function tellStart(main: Logger, { line, config, root, log }: Pick<Start, "line" | "config" | "root" | "log">): void {
  const { cores, memoryBytes } = config.machine;
  const tag = tagText(line.tag);
  main.advisory(`Sundial ${VERSION}, Deno ${Deno.version.deno}, ${cores} cores, process ${Deno.pid}${tag}`);
  main.info(log.origin);
  main.advisory(`root: ${root.path}${root.isNew ? " (new)" : ""}`);
  for (const warning of config.warnings) main.advisory(`configuration: ${warning}`);
  for (const sentence of exposure(config)) main.advisory(sentence);
  const wanted = { memoryBytes: config.get(databaseSettings.heapSizeBytes) };
  for (const sentence of advice(limitsOf(memoryBytes), wanted)) main.advisory(sentence);
}

function beginHealth({ config, metrics, certificates }: Shared): Promise<Part> {
  const log = logger("http-min-server");
  const certificate = certificates?.of("health");
  return listen(config, healthSettings, log, (at) => startHealth({ ...at, certificate, config, metrics, log }));
}

/** Undefined if TLS is off, so that its modules need not be loaded. @throws {ConfigError} */
async function openCertificates(config: Config, parts: Part[]): Promise<Certificates | undefined> {
  const { shared, http, health, pg, lineTcp } = config.of(tlsSettings);
  const isOn = [shared, http, health, pg, lineTcp].some(({ enabled }) => enabled);
  if (!isOn && !pg.required) return undefined;
  const { certificateFaults, Certificates } = await import("../wire/tls/mod.ts");
  throwFaults(certificateFaults(config));
  const certificates = new Certificates(config, logger("tls"));
  parts.push({ name: "tls", close: () => Promise.resolve(certificates.close()) });
  return certificates;
}

/** Undefined without sign-on, so that its modules need not be loaded. @throws {ConfigError} */
async function createProvider(config: Config, parts: Part[]): Promise<IdentityProvider | undefined> {
  const settings = config.of(oidcSettings);
  if (!settings.enabled) return undefined;
  const { authoritiesFault, IdentityProvider } = await import("../auth/oidc/mod.ts");
  throwFaults([authoritiesFault(settings) ?? []].flat());
  const provider = new IdentityProvider(settings);
  parts.push({ name: "sign-on", close: () => Promise.resolve(provider.close()) });
  return provider;
}

/** The settings of the database, and its callbacks to other parts. */
function databaseServices(config: Config, metrics: Metrics, logsDebug: boolean) {
  const log = logger("database");
  // A view, so that reloaded settings are read on each use.
  return Object.assign(config.view(databaseSettings), {
    logsDebug,
    log: log.log,
    audit: (line: string) => logger("audit").advisory(line),
    pendingConfig: () => config.pending(),
    onDiskFull(isFull: boolean) {
      Atomics.store(metrics.healthWords, HEALTH_WORD.diskFull, Number(isFull));
      if (isFull) log.error("the disk is full: changes are refused until there is space");
      else log.advisory("the disk has space again: changes are accepted");
    },
    metrics: () => metrics.samples(),
    onUnhandledError: () => metrics.unhandledErrors.inc(),
    parameters: () =>
      config.parameters().map((
        { path, envName, value, source, sensitive, reloadable },
      ) => [path, envName, value, source, sensitive, reloadable]),
  });
}

/** Logs and counts uncaught errors of this thread. The server continues. */
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
