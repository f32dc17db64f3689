/** Every metric's name, kind and sentence, once. A new one is an entry here; names get the prefix `service_`. */
export interface MetricEntry {
  readonly name: string;
  readonly kind: "counter" | "gauge";
  readonly help: string;
  /** Name of its one label, when it has several values. */
  readonly label?: string;
}

const counter = (name: string, help: string): MetricEntry & { kind: "counter" } => ({
  name: `${name}_total`,
  kind: "counter",
  help,
});
/** Read when it is asked for. */
const gauge = (name: string, help: string, label?: string): MetricEntry & { kind: "gauge" } => ({
  name,
  kind: "gauge",
  help,
  label,
});

export const metricCatalogue = {
  jsonQueries: counter("json_queries", "Requests of /exec."),
  jsonQueriesCompleted: counter("json_queries_completed", "Requests of /exec that ended well."),
  jsonQueriesCancelled: counter("json_queries_cancelled", "Requests of /exec that were cancelled or timed out."),
  jsonQuerySeconds: counter("json_query_seconds", "Time that /exec requests took."),
  httpConnections: gauge("http_connections", "HTTP requests in flight."),
  pgQueries: counter("pg_wire_queries", "Statements begun over the PostgreSQL wire."),
  pgQueriesCompleted: counter("pg_wire_queries_completed", "Statements over the PostgreSQL wire that ended well."),
  pgQueriesCancelled: counter(
    "pg_wire_queries_cancelled",
    "Statements over the PostgreSQL wire that were cancelled or timed out.",
  ),
  pgQuerySeconds: counter("pg_wire_query_seconds", "Time that statements over the PostgreSQL wire took."),
  pgErrors: counter("pg_wire_errors", "Errors sent over the PostgreSQL wire."),
  pgConnections: gauge("pg_wire_connections", "PostgreSQL wire connections."),
  lineHttpConnections: gauge("line_http_connections", "Line-protocol requests in flight."),
  lineHttpRecvBytes: counter("line_http_recv_bytes", "Line-protocol bytes received over HTTP."),
  authenticationsSucceeded: counter("authentications_succeeded", "Log-ins that were let in."),
  authenticationsFailed: counter("authentications_failed", "Log-ins that were refused."),
  queryErrors: counter("query_errors", "Queries refused or failed by the client's fault."),
  unhandledErrors: counter(
    "unhandled_errors",
    "Errors that reached the top of a thread, failed handlers, and commits that could not be applied.",
  ),
  bytesOut: counter("bytes_out", "Bytes of results sent."),
  rowsOut: counter("rows_out", "Rows of results sent."),
  commits: counter("commits", "Commits."),
  committedRows: counter("committed_rows", "Rows committed."),
  commitGroups: counter("commit_groups", "Groups of commits that shared a write of the log."),
  fsyncs: counter("fsyncs", "Calls of fsync."),
  fsyncSeconds: counter("fsync_seconds", "Time that fsync took."),
  rewrittenSegments: counter("rewritten_segments", "Segments written anew for late rows, UPDATE and DELETE."),
  logBytesSinceCheckpoint: gauge(
    "log_bytes_since_checkpoint",
    "Bytes of the write-ahead log that a start would replay.",
  ),
  deadExtentBytes: gauge("dead_extent_bytes", "Bytes in data files that no snapshot lists."),
  pinnedVersions: gauge("pinned_versions", "Snapshots that readers hold."),
  poolHits: counter("pool_hits", "Column chunks found in the pool."),
  poolMisses: counter("pool_misses", "Column chunks read from files."),
  poolEvictions: counter("pool_evictions", "Frames of the pool given to another chunk."),
  poolPins: gauge("pool_pins", "Frames in use."),
  workersBusy: gauge("workers_busy", "Query threads at work."),
  morsels: gauge("morsels", "Morsels processed since the start."),
  kernelRows: gauge("kernel_rows", "Rows that passed through compiled kernels since the start."),
  kernelsCompiled: gauge("kernels_compiled", "Kernels compiled since the start."),
  kernelsReused: gauge("kernels_reused", "Kernels found in a thread's cache since the start."),
  statementsCached: gauge("statements_cached", "Compiled statements kept."),
  memoryUsed: gauge("memory_mem_used", "Bytes of the shared memory in use."),
  memoryTag: gauge("memory_tag_bytes", "Bytes of the shared memory in use, by purpose.", "tag"),
  memoryRss: gauge("memory_rss", "Resident memory of the process, in bytes."),
  memoryJsHeap: gauge("memory_js_heap", "Bytes in use of the main thread's JavaScript heap."),
  logMessagesDropped: gauge(
    "log_messages_dropped",
    "Log messages dropped since the start, as they came faster than they could be written.",
  ),
  cpuSeconds: counter("process_cpu_seconds", "Processor time of the process."),
  uptimeSeconds: gauge("process_uptime_seconds", "Time since the start."),
} as const satisfies Record<string, MetricEntry>;

type Catalogue = typeof metricCatalogue;
export type MetricKey = keyof Catalogue;
export type CounterKey = { [K in MetricKey]: Catalogue[K]["kind"] extends "counter" ? K : never }[MetricKey];
export type GaugeKey = Exclude<MetricKey, CounterKey>;
