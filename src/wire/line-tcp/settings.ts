/** The settings of the listener of lines over TCP. */
import { accessSettings } from "../../access/settings.ts";
import {
  address,
  bool,
  type Config,
  generalSettings,
  ignored,
  int,
  ms,
  oneOf,
  type Section,
  text,
} from "../../config/mod.ts";
import { lineErrorSettings, lineSettings } from "../line/settings.ts";

const listener = {
  enabled: bool(
    "line.tcp.enabled",
    true,
    "Line protocol over TCP, without authentication: everybody who can reach the port may write.",
  ),
  address: address("line.tcp.net.bind.to", "0.0.0.0:9009", "Address of line protocol over TCP."),
  asksWho: bool(
    "line.tcp.acl.enabled",
    true,
    "With acl.enabled, closes line protocol over TCP, whose clients cannot authenticate; false leaves it open to everybody.",
  ),
  authPath: text(
    "line.tcp.auth.db.path",
    "",
    "Keys for authentication over TCP, which is not supported: if a path is set, the server starts only with line.tcp.enabled=false.",
  ),
  connectionLimit: int("line.tcp.net.connection.limit", 256, "Maximum number of line-protocol connections over TCP.", {
    min: 1,
    reloadable: true,
    aliases: ["line.tcp.net.active.connection.limit"],
  }),
  idleTimeoutMs: ms(
    "line.tcp.net.connection.timeout",
    "0",
    "A connection without a line for this time is closed; 0: never.",
    {
      aliases: ["line.tcp.net.idle.timeout"],
    },
  ),
  disconnectOnError: bool("line.tcp.disconnect.on.error", true, "Closes a connection that sent an invalid line."),
  precision: oneOf("line.tcp.timestamp", ["n", "u", "ms", "s", "m", "h"], "n", "Unit of row times over TCP."),
};

/** Keys of QuestDB without a meaning here. */
const ignoredKeys = [
  ignored("line.tcp.commit.interval", "1s", "rows are committed as they arrive"),
  ignored("line.udp.enabled", "false", "line protocol is available only over HTTP and TCP"),
  ignored("line.udp.bind.to", "0.0.0.0:9009", "line protocol is available only over HTTP and TCP"),
];

export const lineTcpSettings = {
  ...listener,
  ...lineErrorSettings,
  lineSizeMax: lineSettings.lineLimits.sizeMax,
};

/** True if the listener is enabled. */
export function servesLineTcp(config: Config): boolean {
  const isClosed = config.get(accessSettings.enabled) && config.get(listener.asksWho);
  return config.get(listener.enabled) && !config.get(generalSettings.readOnly) && !isClosed;
}

export const lineSection: Section = {
  title: "Line protocol",
  settings: [lineSettings, lineErrorSettings, listener, ignoredKeys],
  check(config, refuse) {
    const { authPath, enabled } = listener;
    if (config.get(authPath) === "" || !config.get(enabled)) return;
    refuse(
      [authPath, enabled],
      "line protocol over TCP has no authentication: set line.tcp.enabled=false, or remove this key",
    );
  },
};
