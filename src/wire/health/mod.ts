/** The minimal HTTP server, on the main thread or on a separate thread, depending on the settings `http.min.*`. */
import type { Config } from "../../config/mod.ts";
import { ConfigError } from "../../errors.ts";
import { type Logger, shownText } from "../../log/mod.ts";
import type { Metrics } from "../../metrics/mod.ts";
import { metricsSettings } from "../../metrics/settings.ts";
import { httpSettings } from "../http/settings.ts";
import type { Certificate } from "../tls/mod.ts";
import { healthSettings } from "./settings.ts";
import { faultOf, type HealthServer, serveHealth } from "./server.ts";
import { startHealthThread, type ThreadSettings } from "./thread.ts";

export { probeHealth } from "./probe.ts";
export { type HealthOptions, serveHealth } from "./server.ts";

/** On machines with more cores than this, an additional thread that mostly sleeps has no noticeable cost. */
const SHARED_CORES_MAX = 16;

export interface HealthStart {
  hostname: string;
  /** 0 selects any free port. */
  port: number;
  /** Undefined if TLS is off. */
  certificate?: Certificate;
  config: Config;
  metrics: Metrics;
  log: Logger;
}

function workerCountOf(config: Config): number {
  return config.get(healthSettings.workerCount) ?? (config.machine.cores > SHARED_CORES_MAX ? 1 : 0);
}

/** Returns why this machine cannot fulfil the settings. */
export function healthFault(config: Config): ConfigError | undefined {
  const { key } = healthSettings.workerAffinity;
  const { cores } = config.machine;
  const core = config.get(healthSettings.workerAffinity);
  const isUsed = core !== null && workerCountOf(config) > 0 && Deno.build.os === "linux";
  if (isUsed && core >= cores) {
    return new ConfigError(key, `${key}: found ${core}, expected a core from 0 to ${cores - 1}`);
  }
}

/** @throws {ConfigError} as returned by `healthFault`. */
export async function startHealth(
  { hostname, port, certificate, config, metrics, log }: HealthStart,
): Promise<HealthServer> {
  const pessimistic = config.get(metricsSettings.enabled) && config.get(healthSettings.isPessimistic);
  const credentials = config.get(healthSettings.requiresAuthentication) && config.get(httpSettings.user) !== "";
  const settings: ThreadSettings = {
    hostname,
    port,
    connectionLimit: config.get(healthSettings.connectionLimit),
    connectionTimeoutMs: config.get(healthSettings.connectionTimeoutMs),
    queueTimeoutMs: config.get(healthSettings.queueTimeoutMs),
    credentials: credentials
      ? { user: config.get(httpSettings.user), password: config.get(httpSettings.password) }
      : undefined,
  };
  const metricsText = config.get(metricsSettings.enabled) ? () => metrics.text() : undefined;
  const fault = healthFault(config);
  if (fault !== undefined) throw fault;
  const workerCount = workerCountOf(config);
  const affinity = config.get(healthSettings.workerAffinity);
  if (affinity !== null) {
    if (workerCount === 0) {
      log.advisory(
        "http.min.worker.affinity is ignored: the minimal server has no separate thread (http.min.worker.count)",
      );
    } else if (Deno.build.os !== "linux") {
      log.advisory("http.min.worker.affinity is ignored: threads are pinned only on Linux");
    }
  }
  const onError = (error: unknown) => {
    metrics.unhandledErrors.inc();
    log.critical("unhandled error", error);
  };
  if (workerCount === 0) {
    const fault = () => pessimistic ? faultOf(metrics.healthWords) : undefined;
    const onAnswer = log.isDebug ? (line: string) => log.debug(shownText(line)) : undefined;
    return serveHealth({ ...settings, certificate, fault, metricsText, onError, onAnswer });
  }
  return startHealthThread({
    settings,
    certificate,
    healthWords: metrics.healthWords,
    pessimistic,
    affinity: Deno.build.os === "linux" ? affinity : null,
    haltOnError: config.get(healthSettings.haltOnError),
    metricsText,
    log,
    onError,
  });
}
