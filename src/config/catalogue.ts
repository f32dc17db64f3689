/**
 * Every key of server.conf, declared once. The loader, `check-config`, SHOW PARAMETERS, the shipped server.conf and the manual
 * are made of this list; a new setting is one entry here.
 */
import { formatSize } from "./units.ts";
import {
  address,
  bool,
  decimalType,
  int,
  list,
  type Machine,
  ms,
  oneOf,
  optionalBool,
  optionalInt,
  origins,
  redirect,
  seconds,
  type Setting,
  size,
  taken,
  text,
} from "./setting.ts";

const MIB = 2 ** 20;
const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** A part of the machine's memory, in whole MiB. */
const memoryShare = (divisor: number, maxBytes: number) => (machine: Machine) =>
  formatSize(Math.max(64 * MIB, Math.min(maxBytes, Math.floor(machine.memoryBytes / divisor / MIB) * MIB)));

/** The machine's whole name, its first part, and that part in the local network. */
const namesOf = ({ hostName }: Machine) => {
  const [first] = hostName.split(".");
  return [...new Set([hostName, first, `${first}.local`])].join(",");
};

const UNITS = ["n", "u", "ms", "s", "m", "h"] as const;
const PARTITIONS = ["NONE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"] as const;

/** The headings are those of the manual; the order is that of server.conf. */
export const sections = {
  "General": {
    "config.validation.strict": bool(
      false,
      "Refuses to start when server.conf holds an unknown key; otherwise each is a warning.",
    ),
    "shared.worker.count": int((machine) => String(machine.cores), "Threads that run queries.", {
      defaultSaid: "one per core",
      max: 256,
      aliases: ["shared.query.worker.count"],
    }),
    "telemetry.enabled": taken("false", "this server sends no telemetry"),
    "dev.mode.enabled": bool(false, "Allows statements that exist for tests only, such as simulate_crash()."),
    "dev.sync.delay": ms("0", "Lets every sync of the writer take so much longer, to measure what slow disks do."),
    "instance.name": text(
      "",
      "Name of this instance: told by /settings, and in alerts where the environment gives no INSTANCE_NAME.",
    ),
  },
  "HTTP server": {
    "http.enabled": bool(true, "HTTP server: SQL, line protocol, import, export and the web console."),
    "http.net.bind.to": address("0.0.0.0:9000", "Where HTTP listens.", { aliases: ["http.bind.to"] }),
    "http.user": text(
      "",
      "User name for basic authentication over HTTP; needs http.password. Empty: no authentication.",
    ),
    "http.password": text("", "Password for basic authentication over HTTP; needs http.user.", { secret: true }),
    "http.host.names": list(
      namesOf,
      "Names by which browsers may address the server, as behind a proxy. Addresses and localhost always work.",
      { defaultSaid: "the machine's names", reloadable: true },
    ),
    "http.cors.origins": origins(
      "Other origins whose pages may read answers and change data. Empty: none.",
      { reloadable: true },
    ),
    "http.net.connection.limit": int(256, "Most HTTP connections served at a time; one more waits for a slot.", {
      min: 1,
      reloadable: true,
      aliases: ["http.net.active.connection.limit"],
    }),
    "http.net.connection.timeout": ms("5m", "A connection that neither asks nor reads for this long is closed.", {
      reloadable: true,
      aliases: ["http.net.idle.connection.timeout"],
    }),
    "http.net.connection.queue.timeout": ms(
      "5s",
      "A connection that waits for a slot for longer is refused with 503.",
      {
        reloadable: true,
        aliases: ["http.net.queued.connection.timeout"],
      },
    ),
    "http.net.connection.hint": taken("false", "the system holds the connections that are not accepted yet"),
    "http.json.query.connection.limit": int(
      -1,
      "Most /exec requests in flight; one more is answered 429. -1: no limit of their own.",
      { min: -1, reloadable: true },
    ),
    "http.ilp.connection.limit": int(
      -1,
      "Most line-protocol requests in flight; one more is answered 429. -1: no limit of their own.",
      { min: -1, reloadable: true },
    ),
    "http.export.connection.limit": int(
      -1,
      "Most /exp requests in flight; one more is answered 429. -1: no limit of their own.",
      { min: -1, reloadable: true },
    ),
    "http.send.buffer.size": taken("2m", "a chunk of a reply is what a batch of rows makes"),
    "http.receive.buffer.size": taken("1m", "buffers grow with what they hold", { aliases: ["http.recv.buffer.size"] }),
    "http.request.header.buffer.size": size("64k", "Longest head of a request: request line and headers.", {
      min: 1024,
      reloadable: true,
    }),
    "http.request.header.timeout": ms("30s", "A head that has not come whole after this time is refused with 408.", {
      reloadable: true,
    }),
    "http.request.body.size.max": size("16m", "Longest body of a POST to /exec.", { min: 1024, reloadable: true }),
    "http.request.body.timeout": ms(
      "30s",
      "Time for a body, beside a second for each http.request.body.rate.min bytes; it is refused with 408 afterwards.",
      { reloadable: true },
    ),
    "http.request.body.rate.min": size("1k", "Bytes a second that a client must send of a body.", {
      min: 1,
      reloadable: true,
    }),
    "http.multipart.header.buffer.size": taken("512", "no endpoint takes bodies of several parts"),
    "http.allow.deflate.before.send": bool(
      false,
      "Compresses /exec and /exp replies above 4 KiB for clients that accept zstd or gzip.",
    ),
    "http.version": taken("HTTP/1.1", "replies are of HTTP/1.1"),
    "http.server.keep.alive": bool(true, "Keeps connections open between requests."),
    "http.keep-alive.timeout": seconds("5", "Seconds told in the Keep-Alive header."),
    "http.keep-alive.max": int(10_000, "Requests told in the Keep-Alive header."),
    "http.static.public.directory": text("public", "Directory of extra static files, relative to the root."),
    "http.redirect.count": int(1, "How many http.redirect.N keys are read.", { max: 4 }),
    "http.redirect.1": redirect("/ -> /index.html", "A path that is answered 301, and where it leads."),
    "http.redirect.2": redirect("", "As http.redirect.1."),
    "http.redirect.3": redirect("", "As http.redirect.1."),
    "http.redirect.4": redirect("", "As http.redirect.1."),
    "http.context.web.console": text(
      "/",
      "Prefix of the console's path and of those below that are not set, but for line protocol and its ping.",
    ),
    "http.context.execute": list("/exec,/api/v1/sql/execute", "Paths of the SQL endpoint."),
    "http.context.import": taken("/imp", "there is no import over HTTP; read_parquet() and line protocol take rows"),
    "http.context.export": list("/exp", "Paths of the export endpoint."),
    "http.context.settings": list("/settings", "Paths of the settings endpoint."),
    "http.context.table.status": list("/chk", "Paths of the endpoint that tells whether a table exists."),
    "http.context.warnings": list("/warnings", "Paths of the warnings endpoint."),
    "http.context.ilp": list("/write,/api/v2/write", "Paths of the line-protocol endpoint."),
    "http.context.ilp.ping": list("/ping", "Paths of the line-protocol ping."),
    "http.security.readonly": bool(false, "Refuses every change over HTTP."),
    "http.security.max.response.rows": int(UNLIMITED, "Most rows of one /exec or /exp reply.", {
      min: 1,
      defaultSaid: "no limit",
    }),
    "http.settings.readonly": taken("false", "the console keeps no preferences on the server"),
    "http.session.timeout": ms(
      "30m",
      "A session that /exec with session=true has opened ends after this long without use.",
    ),
    "http.text.analysis.max.lines": taken("1000", "there is no import over HTTP"),
    "http.export.timeout": ms(
      "300s",
      "A Parquet export that takes longer is ended, whatever query.timeout is; 0: query.timeout holds.",
    ),
    "http.busy.retry.maximum.wait.before.retry": taken("1000", "no statement waits for a busy table by trying again"),
    "http.health.check.authentication.required": bool(
      false,
      "Asks for http.user and http.password on the minimal server as well.",
    ),
    "http.pessimistic.health.check.enabled": bool(
      false,
      "With metrics enabled: the health check answers 500 once an unhandled error has been counted.",
    ),
  },
  "Minimal HTTP server (health and metrics)": {
    "http.min.enabled": bool(true, "The minimal HTTP server."),
    "http.min.bind.to": address(
      "0.0.0.0:9003",
      "Where the minimal server listens; host 0 binds all adapters, else the address must belong to one.",
      { aliases: ["http.min.net.bind.to"] },
    ),
    "http.min.net.connection.limit": int(4, "Most connections served at a time; one more waits until a slot is free.", {
      min: 1,
      aliases: ["http.min.net.active.connection.limit"],
    }),
    "http.min.net.connection.timeout": ms("300000", "A connection without a request for this long is closed.", {
      aliases: ["http.min.net.idle.connection.timeout"],
    }),
    "http.min.net.connection.queue.timeout": ms(
      "300000",
      "A connection that waits longer than this for a slot is closed.",
      { aliases: ["http.min.net.queued.connection.timeout"] },
    ),
    "http.min.net.connection.hint": taken("false", "the system holds the connections that are not accepted yet"),
    "http.min.worker.count": optionalInt(
      "Empty: on the main thread with 16 cores or fewer, on a thread of its own above. 0: on the main thread. 1: on a thread of its own.",
      { max: 1 },
    ),
    "http.min.worker.affinity": optionalInt(
      "Core that the minimal server's own thread is pinned to, on Linux; empty: any.",
      { max: 4095 },
    ),
    "http.min.worker.haltOnError": bool(
      false,
      "Ends the minimal server's thread at its first unhandled error, instead of going on.",
    ),
  },
  "TLS": {
    "tls.enabled": bool(false, "TLS 1.2 and 1.3 on every listener."),
    "tls.cert.path": text(
      "",
      "PEM file of the certificate and those between it and the authority, relative to the root. It is read again when it " +
        "changes and by reload_config(); connections stay.",
    ),
    "tls.private.key.path": text(
      "",
      "PEM file of the private key without a password (PKCS#8, PKCS#1 or SEC1), relative to the root. Read again likewise.",
    ),
    "http.tls.enabled": optionalBool("TLS for HTTP. Empty: as tls.enabled."),
    "http.tls.cert.path": text("", "Certificate for HTTP. Empty: tls.cert.path."),
    "http.tls.private.key.path": text("", "Private key for HTTP. Empty: tls.private.key.path."),
    "http.min.tls.enabled": optionalBool("TLS for the minimal HTTP server. Empty: as tls.enabled."),
    "http.min.tls.cert.path": text("", "Certificate for the minimal HTTP server. Empty: tls.cert.path."),
    "http.min.tls.private.key.path": text("", "Private key for the minimal HTTP server. Empty: tls.private.key.path."),
    "pg.tls.enabled": optionalBool("TLS for the PostgreSQL wire. Empty: as tls.enabled."),
    "pg.tls.required": bool(false, "Refuses clients of the PostgreSQL wire without TLS, but for requests to cancel."),
    "pg.tls.cert.path": text("", "Certificate for the PostgreSQL wire. Empty: tls.cert.path."),
    "pg.tls.private.key.path": text("", "Private key for the PostgreSQL wire. Empty: tls.private.key.path."),
    "line.tcp.tls.enabled": optionalBool("TLS for line protocol over TCP. Empty: as tls.enabled."),
    "line.tcp.tls.cert.path": text("", "Certificate for line protocol over TCP. Empty: tls.cert.path."),
    "line.tcp.tls.private.key.path": text("", "Private key for line protocol over TCP. Empty: tls.private.key.path."),
  },
  "Metrics": {
    "metrics.enabled": bool(
      false,
      "Counts what the server does and serves it at /metrics of the minimal server, in the Prometheus text format.",
    ),
  },
  "Queries": {
    "query.timeout": ms("60s", "A query that runs longer is ended with an error; 0: never.", {
      aliases: ["query.timeout.sec"],
    }),
    "query.direct.rows.max": int(
      10_000,
      "Queries that read at most so many rows run on the thread that received them, without a worker; -1: always in workers.",
      { min: -1 },
    ),
    "query.direct.words.max": int(
      400,
      "Statements of at most so many words are read by the thread that received them, others by one of their own; 0: all of them.",
    ),
    "query.words.max": int(
      50_000,
      "Words and marks of a statement, besides lists of values; longer ones are refused. Reading them takes 10 to 30 us each.",
      { min: 1_000 },
    ),
    "query.expressions.max": int(
      200_000,
      "Expressions of a statement, counted as often as names of sub-queries, columns and variables repeat them.",
      { min: 1_000 },
    ),
    "query.tracing.enabled": bool(
      false,
      "Keeps time, text, duration and user of each statement of the last day in the table _query_trace.",
      { reloadable: true },
    ),
    "cairo.query.memory.limit": size(
      memoryShare(4, 1024 * MIB),
      "Most memory of one query; a query that needs more fails with an error.",
      { min: MIB, defaultSaid: "a quarter of the machine's memory, at most 1g", aliases: ["query.memory.limit"] },
    ),
    "cairo.sql.jit.mode": taken("on", "every query is compiled"),
    "cairo.statement.cache.size": int(1000, "Compiled statements that are kept, each by its text; 0: none."),
    "query.statistics.enabled": bool(
      true,
      "Answers count, sum, min and max from the segments' statistics where they are exact.",
    ),
  },
  "Storage": {
    "cairo.root": text("db", "Directory of the database, relative to the root.", { aliases: ["cairo.root.dir"] }),
    "cairo.commit.mode": oneOf(
      ["sync", "async", "nosync"],
      "sync",
      "`sync`: a change is acknowledged when it is on stable storage. `nosync`: it survives a killed process, but not a lost power supply. `async` is read as `nosync`.",
    ),
    "cairo.pool.size": size(memoryShare(4, 2048 * MIB), "Memory that keeps column data between queries.", {
      min: 16 * MIB,
      max: 3 * 1024 * MIB,
      defaultSaid: "a quarter of the machine's memory, at most 2g",
    }),
    "cairo.memory.size": size(
      memoryShare(2, 4095 * MIB),
      "Memory shared by all threads: the pool, fresh rows, dictionaries and the working memory of queries. Pages are taken when they are first used.",
      { min: 64 * MIB, max: 4095 * MIB, defaultSaid: "half of the machine's memory, at most 4095m" },
    ),
    "cairo.checkpoint.log.size": size("256m", "A checkpoint begins when the write-ahead log has grown by this much.", {
      min: MIB,
    }),
    "cairo.checkpoint.interval": ms(
      "60s",
      "A checkpoint begins after this long as well, when there is something to write and no change comes for a second.",
    ),
    "cairo.default.symbol.capacity": taken("256", "symbol tables grow as they need to"),
    "cairo.default.symbol.cache.flag": taken("true", "all symbols are in memory"),
    "cairo.max.file.name.length": int(127, "Longest name of a table or column.", { min: 1, max: 255 }),
    "cairo.sql.copy.root": text("import", "Directory that read_parquet() and COPY FROM read, relative to the root.", {
      aliases: ["cairo.sql.copy.root.dir"],
    }),
    "cairo.sql.copy.export.root": text("export", "Directory that COPY TO writes, relative to the root.", {
      reloadable: true,
    }),
    "cairo.backup.root": text("backup", "Directory that BACKUP DATABASE writes to, relative to the root.", {
      aliases: ["cairo.sql.backup.root"],
    }),
    "cairo.snapshot.instance.id": taken("", "a restored copy starts like any other root"),
    "readonly": bool(false, "Refuses every change on every interface.", { aliases: ["readonly.instance"] }),
  },
  "PostgreSQL wire": {
    "pg.enabled": bool(true, "PostgreSQL wire protocol."),
    "pg.net.bind.to": address("0.0.0.0:8812", "Where the PostgreSQL wire listens.", { aliases: ["pg.bind.to"] }),
    "pg.user": text("admin", "User name.", { reloadable: true }),
    "pg.password": text("quest", "Password of pg.user.", { secret: true, reloadable: true }),
    "pg.readonly.user.enabled": bool(false, "A second user who may only read.", { reloadable: true }),
    "pg.readonly.user": text("user", "Name of the second user.", { reloadable: true }),
    "pg.readonly.password": text("quest", "Password of pg.readonly.user.", { secret: true, reloadable: true }),
    "pg.auth.method": oneOf(
      ["scram-sha-256", "password"],
      "scram-sha-256",
      "How clients prove their password: by SCRAM-SHA-256, which never sends it, or password: in clear text, for drivers " +
        "without SCRAM.",
      { reloadable: true },
    ),
    "pg.auth.scram.iterations": int(4096, "Rounds of SCRAM-SHA-256: more slow down guessing, and every log-in.", {
      min: 4096,
      max: 1_000_000,
      reloadable: true,
    }),
    "pg.security.readonly": bool(false, "Refuses every change over the PostgreSQL wire."),
    "pg.net.connection.limit": int(64, "Most connections; one more is refused with an error.", {
      min: 1,
      reloadable: true,
      aliases: ["pg.net.active.connection.limit"],
    }),
    "pg.net.connection.timeout": ms("5m", "A connection without a message for this long is closed; 0: never.", {
      aliases: ["pg.net.idle.timeout"],
    }),
    "pg.login.timeout": ms("10s", "A client that has not logged in after this long is sent away; 0: never.", {
      reloadable: true,
    }),
    "pg.net.connection.queue.timeout": taken("5m", "a connection above the limit is refused at once"),
    "pg.net.connection.hint": taken("false", "the system holds the connections that are not accepted yet"),
    "pg.named.statement.limit": int(10_000, "Most named prepared statements of one connection.", {
      min: 1,
      reloadable: true,
    }),
    "pg.send.buffer.size": size("64k", "Answers to small messages are sent together until they are of this size.", {
      min: 1024,
      reloadable: true,
    }),
    "pg.recv.buffer.size": size("64k", "Most bytes of a client that are read at once, but for longer messages.", {
      min: 16_384,
    }),
    "pg.message.size.max": size("64m", "Longest message of a client.", { min: 65_536 }),
  },
  "Line protocol": {
    "line.http.enabled": bool(true, "Line protocol over HTTP: /write and /api/v2/write."),
    "line.http.ping.version": text("v2.7.4", "Version told by /ping."),
    "line.http.max.recv.buffer.size": size("1g", "Longest line-protocol request, also after it is inflated.", {
      min: 1024,
      reloadable: true,
    }),
    "line.http.inflate.ratio.max": int(
      200,
      "A gzip request that is more than 16 MiB when inflated may be so many times as large as its gzip.",
      { min: 1 },
    ),
    "line.memory.size": size(
      "1g",
      "Rows of line-protocol requests that wait for their commit. A request above it waits for the others, or is refused.",
      { min: MIB },
    ),
    "line.default.partition.by": oneOf(PARTITIONS, "DAY", "Partitioning of tables that the line protocol makes.", {
      aliases: ["line.tcp.default.partition.by"],
    }),
    "line.auto.create.new.tables": bool(true, "Makes tables that do not exist."),
    "line.auto.create.new.tables.max": int(1_000, "Most tables that one request can make.", { min: 1 }),
    "line.auto.create.new.columns": bool(true, "Makes columns that do not exist."),
    "line.auto.create.new.columns.max": int(10_000, "Most columns that one request can make.", { min: 1 }),
    "line.float.default.column.type": oneOf(["DOUBLE", "FLOAT"], "DOUBLE", "Type of new columns for numbers."),
    "line.integer.default.column.type": oneOf(
      ["LONG", "INT", "SHORT", "BYTE"],
      "LONG",
      "Type of new columns for whole numbers.",
    ),
    "line.decimal.default.column.type": decimalType("DECIMAL(38,18)", "Type of new columns for decimals."),
    "line.log.message.on.error": bool(true, "Shows the line at fault in the log, and not only what is wrong with it."),
    "line.tcp.enabled": bool(true, "Line protocol over TCP, without log-in: whoever reaches its port may write."),
    "line.tcp.auth.db.path": text(
      "",
      "Keys for log-in over TCP, which is not supported: with a path here the server starts only with line.tcp.enabled=false.",
    ),
    "line.tcp.net.bind.to": address("0.0.0.0:9009", "Where line protocol over TCP listens."),
    "line.tcp.net.connection.limit": int(256, "Most line-protocol connections over TCP.", {
      min: 1,
      reloadable: true,
      aliases: ["line.tcp.net.active.connection.limit"],
    }),
    "line.tcp.net.connection.timeout": ms("0", "A connection without a line for this long is closed; 0: never.", {
      aliases: ["line.tcp.net.idle.timeout"],
    }),
    "line.tcp.disconnect.on.error": bool(true, "Closes a connection that sent a line at fault."),
    "line.tcp.timestamp": oneOf(UNITS, "n", "Unit of row times over TCP."),
    "line.tcp.max.measurement.size": size("16m", "Longest line, over HTTP too. A longer one is at fault.", {
      min: 1024,
      aliases: ["line.tcp.msg.buffer.size", "line.tcp.max.recv.buffer.size"],
    }),
    "line.tcp.commit.interval": taken("1s", "rows are committed as they arrive"),
    "line.udp.enabled": taken("false", "line protocol comes over HTTP and TCP only"),
    "line.udp.bind.to": taken("0.0.0.0:9009", "line protocol comes over HTTP and TCP only"),
  },
  "Log (the writers are in log.conf)": {
    "log.level.verbose": bool(false, "Levels as words instead of letters."),
    "log.timestamp.timezone": text("Z", "Time zone of the log's times: Z or a name such as Europe/Berlin."),
    "log.timestamp.format": text("yyyy-MM-ddTHH:mm:ss.SSSUUUz", "Form of the log's times."),
    "log.timestamp.locale": text("en", "Language of month and day names in log.timestamp.format."),
    "log.sql.query.progress.exe": bool(
      false,
      "Lines in the log when a statement begins and when it ends, with its text.",
    ),
  },
} as const satisfies Record<string, Record<string, Setting<unknown>>>;

type Sections = typeof sections;
type Union<T> = T extends unknown ? (value: T) => void : never;
type Merged = Union<Sections[keyof Sections]> extends (value: infer All) => void ? All : never;
/** What a key's text is read as. */
export type Settings = { readonly [K in keyof Merged]: Merged[K] extends Setting<infer T> ? T : never };
export type Key = keyof Settings;

export const catalogue: ReadonlyMap<Key, Setting<unknown>> = new Map(
  Object.values(sections).flatMap((section) => Object.entries(section) as [Key, Setting<unknown>][]),
);
