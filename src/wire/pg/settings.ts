/** Settings of the PostgreSQL protocol. */
import { address, bool, generalSettings, ignored, int, ms, oneOf, type Section, size, text } from "../../config/mod.ts";
import { accessSettings } from "../../access/settings.ts";
import { tlsSettings } from "../tls/settings.ts";

const settings = {
  enabled: bool("pg.enabled", true, "PostgreSQL wire protocol."),
  address: address("pg.net.bind.to", "0.0.0.0:8812", "Where the PostgreSQL wire listens.", { aliases: ["pg.bind.to"] }),
  user: text("pg.user", "admin", "User name.", { reloadable: true }),
  password: text("pg.password", "quest", "Password of pg.user.", { secret: true, reloadable: true }),
  readonlyEnabled: bool("pg.readonly.user.enabled", false, "A second user who may only read.", { reloadable: true }),
  readonlyUser: text("pg.readonly.user", "user", "Name of the second user.", { reloadable: true }),
  readonlyPassword: text("pg.readonly.password", "quest", "Password of pg.readonly.user.", {
    secret: true,
    reloadable: true,
  }),
  authMethod: oneOf(
    "pg.auth.method",
    ["scram-sha-256", "password"],
    "scram-sha-256",
    "How clients prove their password: by SCRAM-SHA-256, which never sends it, or password: in clear text, for drivers " +
      "without SCRAM.",
    { reloadable: true },
  ),
  scramIterations: int(
    "pg.auth.scram.iterations",
    4096,
    "Rounds of SCRAM-SHA-256: more slow down guessing, and every log-in.",
    {
      min: 4096,
      max: 1_000_000,
      reloadable: true,
    },
  ),
  readOnly: bool("pg.security.readonly", false, "Refuses every change over the PostgreSQL wire."),
  connectionLimit: int("pg.net.connection.limit", 64, "Most connections; one more is refused with an error.", {
    min: 1,
    reloadable: true,
    aliases: ["pg.net.active.connection.limit"],
  }),
  idleTimeoutMs: ms(
    "pg.net.connection.timeout",
    "5m",
    "A connection without a message for this long is closed; 0: never.",
    {
      aliases: ["pg.net.idle.timeout"],
    },
  ),
  logInTimeoutMs: ms(
    "pg.login.timeout",
    "10s",
    "A client that has not logged in after this long is sent away; 0: never.",
    {
      reloadable: true,
    },
  ),
  namedStatementLimit: int("pg.named.statement.limit", 10_000, "Most named prepared statements of one connection.", {
    min: 1,
    reloadable: true,
  }),
  sendSizeBytes: size(
    "pg.send.buffer.size",
    "64k",
    "Answers to small messages are sent together until they are of this size.",
    {
      min: 1024,
      reloadable: true,
    },
  ),
  receiveSizeBytes: size(
    "pg.recv.buffer.size",
    "64k",
    "Most bytes of a client that are read at once, but for longer messages.",
    {
      min: 16_384,
    },
  ),
  messageSizeMax: size("pg.message.size.max", "64m", "Longest message of a client.", { min: 65_536 }),
};

/** Keys of QuestDB that are ignored here. */
const ignoredKeys = [
  ignored("pg.net.connection.queue.timeout", "5m", "a connection above the limit is refused at once"),
  ignored("pg.net.connection.hint", "false", "the system holds the connections that are not accepted yet"),
];

export const pgSettings = {
  ...settings,
  requiresTls: tlsSettings.pg.required,
  isServerReadOnly: generalSettings.readOnly,
  allowsClearText: accessSettings.allowsClearText,
};

export const pgSection: Section = { title: "PostgreSQL wire", settings: [settings, ignoredKeys] };
