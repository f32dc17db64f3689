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
    "Line protocol over TCP, without log-in: whoever reaches its port may write.",
  ),
  address: address("line.tcp.net.bind.to", "0.0.0.0:9009", "Where line protocol over TCP listens."),
  asksWho: bool(
    "line.tcp.acl.enabled",
    true,
    "With acl.enabled, closes line protocol over TCP, whose clients cannot say who they are; false leaves it open to all.",
  ),
  authPath: text(
    "line.tcp.auth.db.path",
    "",
    "Keys for log-in over TCP, which is not supported: with a path here the server starts only with line.tcp.enabled=false.",
  ),
  connectionLimit: int("line.tcp.net.connection.limit", 256, "Most line-protocol connections over TCP.", {
    min: 1,
    reloadable: true,
    aliases: ["line.tcp.net.active.connection.limit"],
  }),
  idleTimeoutMs: ms(
    "line.tcp.net.connection.timeout",
    "0",
    "A connection without a line for this long is closed; 0: never.",
    {
      aliases: ["line.tcp.net.idle.timeout"],
    },
  ),
  disconnectOnError: bool("line.tcp.disconnect.on.error", true, "Closes a connection that sent a line at fault."),
  precision: oneOf("line.tcp.timestamp", ["n", "u", "ms", "s", "m", "h"], "n", "Unit of row times over TCP."),
};

/** Keys of QuestDB without a meaning here. */
const ignoredKeys = [
  ignored("line.tcp.commit.interval", "1s", "rows are committed as they arrive"),
  ignored("line.udp.enabled", "false", "line protocol comes over HTTP and TCP only"),
  ignored("line.udp.bind.to", "0.0.0.0:9009", "line protocol comes over HTTP and TCP only"),
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
      "line protocol over TCP has no log-in: set line.tcp.enabled=false, or take this key away",
    );
  },
};
