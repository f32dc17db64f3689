/** The settings of metrics. */
import { bool, type Section } from "../config/mod.ts";

export const metricsSettings = {
  enabled: bool(
    "metrics.enabled",
    false,
    "Counts the server's activity and serves it at /metrics of the minimal server, in the Prometheus text format.",
  ),
};

export const metricsSection: Section = { title: "Metrics", settings: [metricsSettings] };
