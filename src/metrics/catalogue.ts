/**
 * Every metric's name, kind and description, declared once. A new metric is one entry here. Names get the prefix
 * `service_`.
 */

/** Entry points of statements and rows. */
export const WIRES = ["exec", "exp", "imp", "pg", "line_http", "line_tcp"] as const;
export type Wire = (typeof WIRES)[number];

export interface MetricEntry {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Name of its label, if it has one. */
  readonly label?: string;
  /** Counted separately for each of these wires, which are the values of its label `wire`. */
  readonly wires?: readonly Wire[];
  /** The metric of one wire whose value this metric repeats, because dashboards for QuestDB use this name. */
  readonly same?: { readonly key: string; readonly wire: Wire };
}

const counter = (name: string, help: string) => ({ name: `${name}_total`, kind: "counter", help }) as const;
const gauge = (name: string, help: string, label?: string) => ({ name, kind: "gauge", help, label }) as const;
const histogram = (name: string, help: string) => ({ name, kind: "histogram", help }) as const;
const alias = <const K extends string>(name: string, key: K, wire: Wire) =>
  ({
    name: `${name}_total`,
    kind: "counter",
    help: `The same as ${key} of wire ${wire}.`,
    same: { key, wire },
  }) as const;
const byWire = <const E extends MetricEntry, const W extends Wire>(entry: E, ...wires: W[]) =>
  ({ ...entry, label: "wire", wires }) as const;

export const metricCatalogue = {
  queriesStarted: byWire(counter("queries_started", "Statements that clients sent."), "exec", "exp", "pg"),
  queriesCompleted: byWire(
    counter("queries_completed", "Statements that completed, including the last row."),
    "exec",
    "exp",
    "pg",
  ),
  queriesCancelled: byWire(
    counter("queries_cancelled", "Statements that were cancelled or timed out, or whose client disconnected."),
    "exec",
    "exp",
    "pg",
  ),
  queriesFailed: byWire(counter("queries_failed", "Statements that were refused or failed."), "exec", "exp", "pg"),
  querySeconds: byWire(
    histogram("query_seconds", "Time from a statement to the end of its answer, successful or not."),
    "exec",
    "exp",
    "pg",
  ),
  rowsIn: byWire(
    counter("rows_in", "Rows of INSERT, of imported files and of line protocol."),
    "exec",
    "imp",
    "pg",
    "line_http",
    "line_tcp",
  ),
  bytesIn: byWire(
    counter("bytes_in", "Bytes of statements, their arguments, files and line protocol received."),
    "exec",
    "exp",
    "imp",
    "pg",
    "line_http",
    "line_tcp",
  ),
  rowsOut: byWire(counter("rows_out", "Rows of results sent."), "exec", "exp", "pg"),
  bytesOut: byWire(counter("bytes_out", "Bytes of result rows sent."), "exec", "exp", "pg"),
  lineErrors: byWire(counter("line_errors", "Line-protocol requests and lines refused."), "line_http", "line_tcp"),
  authenticationsSucceeded: byWire(
    counter("authentications_succeeded", "Successful log-ins; over HTTP every request is one."),
    "exec",
    "exp",
    "imp",
    "pg",
    "line_http",
  ),
  authenticationsFailed: byWire(
    counter("authentications_failed", "Refused log-ins."),
    "exec",
    "exp",
    "imp",
    "pg",
    "line_http",
  ),
  authenticationsDelayed: byWire(
    counter("authentications_delayed", "Log-ins that were delayed or refused because of earlier wrong passwords."),
    "exec",
    "exp",
    "imp",
    "pg",
    "line_http",
  ),
  signOns: {
    ...counter(
      "sign_ons",
      "Tokens and passwords that were checked by the identity provider, by outcome: accepted, refused, unavailable.",
    ),
    label: "outcome",
  },
  signOnCacheHits: counter(
    "sign_on_cache_hits",
    "Tokens and passwords with a cached outcome, so that the provider was not asked.",
  ),
  signOnsCached: gauge("sign_ons_cached", "Tokens and passwords with a cached outcome."),
  signOnCacheAge: gauge("sign_on_cache_age_seconds", "Age of the oldest cached outcome that is still valid."),
  providerRequests: {
    ...counter("provider_requests", "Requests to the identity provider, by outcome: answered, failed."),
    label: "outcome",
  },
  providerSeconds: histogram("provider_request_seconds", "Time of requests to the identity provider."),
  httpRequests: {
    ...counter("http_requests", "Requests over HTTP by route, without those for unknown paths."),
    label: "route",
  },
  connections: gauge("connections", "Connections; over HTTP requests that are being answered.", "wire"),
  jsonQueries: alias("json_queries", "queriesStarted", "exec"),
  jsonQueriesCompleted: alias("json_queries_completed", "queriesCompleted", "exec"),
  pgQueries: alias("pg_wire_queries", "queriesStarted", "pg"),
  pgQueriesCompleted: alias("pg_wire_queries_completed", "queriesCompleted", "pg"),
  queryErrors: counter("query_errors", "Statements refused or failed because of a client error."),
  unhandledErrors: counter(
    "unhandled_errors",
    "Uncaught errors of a thread, failed handlers, and commits that could not be applied.",
  ),
  diskFull: gauge("disk_full", "1 while changes are refused because the disk is full."),
  diskFreeBytes: gauge("disk_free_bytes", "Bytes of the root's disk that are available to the server."),
  diskSizeBytes: gauge("disk_size_bytes", "Size of the root's disk in bytes."),
  statementsCached: gauge("statements_cached", "Compiled statements kept."),
  longStatements: counter("long_statements", "Long statements that were planned by a separate thread."),

  commits: counter("commits", "Commits."),
  committedRows: counter("committed_rows", "Rows committed."),
  commitGroupSize: histogram("commit_group_size", "Commits that shared a write and a sync of the log."),
  fsyncSeconds: histogram("fsync_seconds", "Time of a sync of the write-ahead log."),
  rewrittenSegments: counter("rewritten_segments", "Segments rewritten for late rows, UPDATE and DELETE."),
  mergedSegmentsOfHelpers: counter(
    "late_segments_merged_by_query_threads",
    "Rewritten segments that query threads merged with late rows, for the writer.",
  ),
  flushedSegments: counter("flushed_segments", "Segments that were written from memory to data files."),
  flushedSegmentsOfHelpers: counter(
    "flushed_segments_encoded_by_query_threads",
    "Flushed segments whose columns were encoded by query threads, while commits went on.",
  ),
  repackedSegments: counter(
    "repacked_segments",
    "Segments with columns that were stored raw, or by an older version, and were encoded while the server was idle.",
  ),
  logBytesSinceCheckpoint: gauge(
    "log_bytes_since_checkpoint",
    "Bytes of the write-ahead log that a start would replay.",
  ),
  heldLogBytes: gauge(
    "held_log_bytes",
    "Bytes of the write-ahead log that are kept only for readers that follow it, as of the last checkpoint.",
  ),
  deadExtentBytes: gauge(
    "dead_extent_bytes",
    "Bytes in data files that no snapshot refers to, as of the last checkpoint.",
  ),
  pinnedVersions: gauge("pinned_versions", "Snapshots that readers hold."),

  poolHits: counter("pool_hits", "Column chunks found in the pool."),
  poolMisses: counter("pool_misses", "Column chunks read from files."),
  poolEvictions: counter("pool_evictions", "Pool frames that were reused for another chunk."),
  poolPins: gauge("pool_pins", "Frames in use."),
  poolPackedBytes: gauge("pool_packed_bytes", "Bytes of frames with column chunks that each scan decodes."),

  workersBusy: gauge("workers_busy", "Query threads that are busy."),
  morsels: counter("morsels", "Morsels processed."),
  kernelRows: counter("kernel_rows", "Rows that passed through compiled kernels."),
  kernelsCompiled: counter("kernels_compiled", "Kernels compiled."),
  kernelsReused: counter("kernels_reused", "Kernels found in a thread's cache."),

  spillSize: gauge("query_spill_size", "Bytes that running queries have in query.spill.root."),
  spilledBytes: counter("query_spilled_bytes", "Bytes that queries have written to query.spill.root."),
  spilledParts: counter(
    "query_spilled_parts",
    "Partitions and sorted runs that queries have written to query.spill.root.",
  ),

  memoryUsed: gauge("memory_mem_used", "Bytes of the shared memory in use, without the further memories of the pool."),
  memoryLimit: gauge("memory_mem_limit", "Size of this memory in bytes: cairo.memory.size, at most 4095 MiB."),
  memoryFurtherUsed: gauge("memory_further_used", "Bytes of the pool's further memories in use."),
  memoryFurtherLimit: gauge(
    "memory_further_limit",
    "Size of these in bytes: 0 if cairo.memory.size is at most 4095 MiB.",
  ),
  memoryTag: gauge("memory_tag_bytes", "Bytes of all shared memory in use, by purpose.", "tag"),
  memoryRss: gauge("memory_rss", "Resident memory of the process, in bytes."),
  memoryJsHeap: gauge("memory_js_heap", "Used bytes of the main thread's JavaScript heap."),
  logMessagesDropped: counter(
    "log_messages_dropped",
    "Log messages dropped because they could not be written, or not fast enough.",
  ),
  cpuSeconds: counter("process_cpu_seconds", "Processor time of the process."),
  startTimeSeconds: gauge("process_start_time_seconds", "Start time of the process, in seconds since 1970."),
  uptimeSeconds: gauge("process_uptime_seconds", "Time since the start."),
  openFiles: gauge("process_open_fds", "Open file descriptors, if the system reports them."),
  openFilesMax: gauge("process_max_fds", "Maximum of open file descriptors, if the system reports it."),
} as const satisfies Record<string, MetricEntry>;

type Catalogue = typeof metricCatalogue;
export type MetricKey = keyof Catalogue;
type KeyOf<Kind extends MetricEntry["kind"]> = {
  [K in MetricKey]: Catalogue[K]["kind"] extends Kind ? K : never;
}[MetricKey];
type SharedByWires = { [K in MetricKey]: Catalogue[K] extends { wires: readonly Wire[] } ? K : never }[MetricKey];
type Aliases = { [K in MetricKey]: Catalogue[K] extends { same: unknown } ? K : never }[MetricKey];

export type CounterKey = Exclude<KeyOf<"counter">, SharedByWires | Aliases>;
/** Metrics that are read from elsewhere instead of being counted here. */
export type ReadKey = Exclude<MetricKey, SharedByWires | Aliases>;
/** The counters of a wire; for a union of wires, those that they have in common. */
export type WireCounterKey<W extends Wire> = {
  [K in SharedByWires & KeyOf<"counter">]: [W] extends [Catalogue[K]["wires"][number]] ? K : never;
}[SharedByWires & KeyOf<"counter">];
export type WireHistogramKey<W extends Wire> = {
  [K in SharedByWires & KeyOf<"histogram">]: [W] extends [Catalogue[K]["wires"][number]] ? K : never;
}[SharedByWires & KeyOf<"histogram">];
