/** Settings that several files of the HTTP interface read. Each route declares its own settings. */
import { accessSettings } from "../../access/settings.ts";
import {
  address,
  bool,
  type Config,
  generalSettings,
  ignored,
  int,
  list,
  type Machine,
  ms,
  origins,
  redirect,
  seconds,
  size,
  text,
  type Values,
} from "../../config/mod.ts";
import type { OriginRules } from "./origin.ts";

const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** The machine's full name, its first part, and that part in the local network. */
const namesOf = ({ hostName }: Machine) => {
  const [first] = hostName.split(".");
  return [...new Set([hostName, first, `${first}.local`])].join(",");
};

const settings = {
  enabled: bool("http.enabled", true, "HTTP server: SQL, line protocol, import, export and the web console."),
  address: address("http.net.bind.to", "0.0.0.0:9000", "Where HTTP listens.", { aliases: ["http.bind.to"] }),
  user: text(
    "http.user",
    "",
    "User name for basic authentication over HTTP; requires http.password. Empty: no authentication.",
  ),
  password: text("http.password", "", "Password for basic authentication over HTTP; requires http.user.", {
    secret: true,
  }),
  hostNames: list(
    "http.host.names",
    namesOf,
    "Names by which browsers may address the server, for example behind a proxy. Addresses and localhost are always accepted.",
    { defaultSaid: "the machine's names", reloadable: true },
  ),
  corsOrigins: origins(
    "http.cors.origins",
    "Other origins whose pages may read answers and change data. Empty: none.",
    { reloadable: true },
  ),
  limits: {
    connectionsMax: int(
      "http.net.connection.limit",
      256,
      "Maximum number of HTTP connections served at a time. Further ones wait for a slot.",
      {
        min: 1,
        reloadable: true,
        aliases: ["http.net.active.connection.limit"],
      },
    ),
    idleTimeoutMs: ms(
      "http.net.connection.timeout",
      "5m",
      "A connection that neither sends nor reads for this time is closed.",
      {
        reloadable: true,
        aliases: ["http.net.idle.connection.timeout"],
      },
    ),
    queueTimeoutMs: ms(
      "http.net.connection.queue.timeout",
      "5s",
      "A connection that waits longer than this for a slot is refused with 503.",
      {
        reloadable: true,
        aliases: ["http.net.queued.connection.timeout"],
      },
    ),
    headSizeMax: size(
      "http.request.header.buffer.size",
      "64k",
      "Maximum size of the head of a request: request line and headers.",
      {
        min: 1024,
        reloadable: true,
      },
    ),
    headTimeoutMs: ms(
      "http.request.header.timeout",
      "30s",
      "A head that is incomplete after this time is refused with 408.",
      {
        reloadable: true,
      },
    ),
    bodyTimeoutMs: ms(
      "http.request.body.timeout",
      "30s",
      "Time for a body, plus a second for each http.request.body.rate.min bytes. After that, it is refused with 408.",
      { reloadable: true },
    ),
    bodyRateMin: size("http.request.body.rate.min", "1k", "Minimum rate of a body, in bytes per second.", {
      min: 1,
      reloadable: true,
    }),
    /** Also announced to clients. */
    spareIdleMs: seconds(
      "http.keep-alive.timeout",
      "5",
      "Seconds announced in the Keep-Alive header. While others wait for a slot, connections that idle for longer are closed.",
    ),
  },
  statementSizeMax: size("http.request.body.size.max", "16m", "Maximum size of the body of a POST with a statement.", {
    min: 1024,
    reloadable: true,
  }),
  keepAliveMax: int("http.keep-alive.max", 10_000, "Number of requests announced in the Keep-Alive header."),
  keepsConnections: bool("http.server.keep.alive", true, "Keeps connections open between requests."),
  compresses: bool(
    "http.allow.deflate.before.send",
    false,
    "Compresses /exec and /exp replies above 4 KiB for clients that accept zstd or gzip.",
  ),
  readOnly: bool("http.security.readonly", false, "Refuses all changes over HTTP."),
  maxResponseRows: int(
    "http.security.max.response.rows",
    UNLIMITED,
    "Maximum number of rows of one /exec or /exp reply.",
    {
      min: 1,
      defaultSaid: "no limit",
    },
  ),
  sessionTimeoutMs: ms(
    "http.session.timeout",
    "30m",
    "A session opened by /exec with session=true ends after this time without use.",
  ),
  consolePrefix: text(
    "http.context.web.console",
    "/",
    "Prefix of the console's path and of all other paths that are not set explicitly, except those of line protocol and its ping.",
  ),
  redirectCount: int("http.redirect.count", 1, "Number of http.redirect.N keys that are read.", { max: 4 }),
  redirects: {
    1: redirect("http.redirect.1", "/ -> /index.html", "A path that is answered 301, and its target."),
    2: redirect("http.redirect.2", "", "As http.redirect.1."),
    3: redirect("http.redirect.3", "", "As http.redirect.1."),
    4: redirect("http.redirect.4", "", "As http.redirect.1."),
  },
};

/** Keys of QuestDB without a meaning here. */
export const httpIgnored = [
  ignored("http.net.connection.hint", "false", "the system queues connections that are not accepted yet"),
  ignored("http.send.buffer.size", "2m", "the size of a reply's chunk depends on the batch of rows"),
  ignored("http.receive.buffer.size", "1m", "buffers grow as needed", { aliases: ["http.recv.buffer.size"] }),
  ignored("http.version", "HTTP/1.1", "replies are always HTTP/1.1"),
  ignored("http.settings.readonly", "false", "the console keeps no preferences on the server"),
  ignored("http.busy.retry.maximum.wait.before.retry", "1000", "statements do not retry on busy tables"),
  ignored("http.static.public.directory", "public", "no files are served"),
];

export const httpSettings = {
  ...settings,
  isServerReadOnly: generalSettings.readOnly,
  allowsClearText: accessSettings.allowsClearText,
  asksBrowsers: accessSettings.asksBrowsers,
};
export type HttpSettings = Values<typeof httpSettings>;
export const ownHttpSettings = settings;

export function isReadOnly(config: Config): boolean {
  const { readOnly, isServerReadOnly } = config.of(httpSettings);
  return readOnly || isServerReadOnly;
}

/** Names by which browsers may address the server, and origins whose pages may use it. */
export function originRules(config: Config): OriginRules {
  const { hostNames, address, corsOrigins } = config.of(httpSettings);
  return { hostNames: [...hostNames, address.hostname], corsOrigins };
}

/** The Keep-Alive header. */
export function keepAliveHeader(config: Config): string {
  const { limits, keepAliveMax } = config.of(httpSettings);
  return `timeout=${limits.spareIdleMs / 1000}, max=${keepAliveMax}`;
}

/** The prefix of the paths of console and routes, without a slash at the end. */
export function consolePrefix(config: Config): string {
  return config.of(httpSettings).consolePrefix.replace(/\/+$/, "");
}
