/** Settings of the PostgreSQL protocol. */
import {
  address,
  bool,
  generalSettings,
  ignored,
  int,
  memoryShare,
  ms,
  oneOf,
  type Section,
  size,
  text,
} from "../../config/mod.ts";
import { accessSettings } from "../../access/settings.ts";
import { tlsSettings } from "../tls/settings.ts";

const settings = {
  enabled: bool("pg.enabled", true, "PostgreSQL wire protocol."),
  address: address("pg.net.bind.to", "0.0.0.0:8812", "Address of the PostgreSQL wire.", { aliases: ["pg.bind.to"] }),
  user: text("pg.user", "admin", "User name.", { reloadable: true }),
  password: text("pg.password", "quest", "Password of pg.user.", { secret: true, reloadable: true }),
  readonlyEnabled: bool("pg.readonly.user.enabled", false, "A second user with read-only access.", {
    reloadable: true,
  }),
  readonlyUser: text("pg.readonly.user", "user", "Name of the second user.", { reloadable: true }),
  readonlyPassword: text("pg.readonly.password", "quest", "Password of pg.readonly.user.", {
    secret: true,
    reloadable: true,
  }),
  authMethod: oneOf(
    "pg.auth.method",
    ["scram-sha-256", "password"],
    "scram-sha-256",
    "How clients authenticate: by SCRAM-SHA-256, which never sends the password, or by password in clear text, for drivers " +
      "without SCRAM.",
    { reloadable: true },
  ),
  scramIterations: int(
    "pg.auth.scram.iterations",
    4096,
    "Iterations of SCRAM-SHA-256. More slow down guessing, and also every log-in.",
    {
      min: 4096,
      max: 1_000_000,
      reloadable: true,
    },
  ),
  readOnly: bool("pg.security.readonly", false, "Refuses all changes over the PostgreSQL wire."),
  connectionLimit: int(
    "pg.net.connection.limit",
    64,
    "Maximum number of connections. Further ones are refused with an error.",
    {
      min: 1,
      reloadable: true,
      aliases: ["pg.net.active.connection.limit"],
    },
  ),
  idleTimeoutMs: ms(
    "pg.net.connection.timeout",
    "5m",
    "A connection without a message for this time is closed; 0: never.",
    {
      aliases: ["pg.net.idle.timeout"],
    },
  ),
  logInTimeoutMs: ms(
    "pg.login.timeout",
    "10s",
    "A client that has not logged in within this time is disconnected; 0: never.",
    {
      reloadable: true,
    },
  ),
  namedStatementLimit: int(
    "pg.named.statement.limit",
    10_000,
    "Maximum number of named prepared statements of one connection.",
    {
      min: 1,
      reloadable: true,
    },
  ),
  statementMemoryBytes: size(
    "pg.statement.memory.size",
    memoryShare(16),
    "Memory of the prepared statements and portals of all connections, estimated as 4k and twelve bytes a character each. Beyond it, " +
      "unnamed ones of connections that wait for their clients are forgotten, and others are refused.",
    { defaultSaid: "a 16th of the machine's memory, at least 64m", min: 1 << 20 },
  ),
  sendSizeBytes: size(
    "pg.send.buffer.size",
    "64k",
    "Answers to small messages are buffered up to this size.",
    {
      min: 1024,
      reloadable: true,
    },
  ),
  receiveSizeBytes: size(
    "pg.recv.buffer.size",
    "64k",
    "Maximum number of bytes that are read from a client at a time, except for longer messages.",
    {
      min: 16_384,
    },
  ),
  messageSizeMax: size("pg.message.size.max", "64m", "Maximum size of a client's message.", { min: 65_536 }),
};

/** Keys of QuestDB that are ignored here. */
const ignoredKeys = [
  ignored("pg.net.connection.queue.timeout", "5m", "a connection above the limit is refused immediately"),
  ignored("pg.net.connection.hint", "false", "the system queues connections that are not accepted yet"),
];

export const pgSettings = {
  ...settings,
  requiresTls: tlsSettings.pg.required,
  isServerReadOnly: generalSettings.readOnly,
  allowsClearText: accessSettings.allowsClearText,
};

export const pgSection: Section = { title: "PostgreSQL wire", settings: [settings, ignoredKeys] };
