/** The settings of the minimal HTTP server. */
import { address, bool, ignored, int, ms, optionalInt, type Section } from "../../config/mod.ts";

export const healthSettings = {
  enabled: bool("http.min.enabled", true, "The minimal HTTP server."),
  address: address(
    "http.min.bind.to",
    "0.0.0.0:9003",
    "Address of the minimal server. Host 0 binds all adapters; any other address must belong to one.",
    { aliases: ["http.min.net.bind.to"] },
  ),
  connectionLimit: int(
    "http.min.net.connection.limit",
    4,
    "Maximum number of connections served at a time. Further ones wait for a slot.",
    {
      min: 1,
      aliases: ["http.min.net.active.connection.limit"],
    },
  ),
  connectionTimeoutMs: ms(
    "http.min.net.connection.timeout",
    "300000",
    "A connection without a request for this long is closed.",
    {
      aliases: ["http.min.net.idle.connection.timeout"],
    },
  ),
  queueTimeoutMs: ms(
    "http.min.net.connection.queue.timeout",
    "300000",
    "A connection that waits longer than this for a slot is closed.",
    { aliases: ["http.min.net.queued.connection.timeout"] },
  ),
  workerCount: optionalInt(
    "http.min.worker.count",
    "Empty: on the main thread with up to 16 cores, otherwise on a separate thread. 0: on the main thread. 1: on a separate thread.",
    { max: 1 },
  ),
  workerAffinity: optionalInt(
    "http.min.worker.affinity",
    "Core to which the minimal server's thread is pinned, on Linux. Empty: any.",
    { max: 4095 },
  ),
  haltOnError: bool(
    "http.min.worker.haltOnError",
    false,
    "Ends the minimal server's thread at its first unhandled error, instead of continuing.",
  ),
  requiresAuthentication: bool(
    "http.health.check.authentication.required",
    false,
    "Requires http.user and http.password on the minimal server as well.",
  ),
  isPessimistic: bool(
    "http.pessimistic.health.check.enabled",
    false,
    "With metrics enabled: the health check answers 500 once an unhandled error has been counted, and while the disk is full.",
  ),
};

/** Keys of QuestDB without a meaning here. */
const ignoredKeys = [
  ignored("http.min.net.connection.hint", "false", "the system queues connections that are not accepted yet"),
];

export const healthSection: Section = {
  title: "Minimal HTTP server (health and metrics)",
  settings: [healthSettings, ignoredKeys],
};
