/** PostgreSQL settings that clients set with SET and read with SHOW, current_setting() and pg_settings. */
import type { Value } from "../types/mod.ts";

export interface ClientSetting {
  /** Column name in results. */
  name: string;
  value: Value;
  /** Type tag. */
  type: string;
  /** True if SET is accepted without effect, because the server supports only one value. */
  isFixed: boolean;
  summary: string;
}

const fixed = (name: string, value: Value, summary: string, type = "STRING"): ClientSetting => ({
  name,
  value,
  type,
  isFixed: true,
  summary,
});
const open = (name: string, value: string, summary: string): ClientSetting => ({
  name,
  value,
  type: "STRING",
  isFixed: false,
  summary,
});

const SETTINGS: readonly ClientSetting[] = [
  fixed("server_version", "12.3 (questdb)", "Version of PostgreSQL whose features clients may expect."),
  fixed("server_version_num", "123000", "The same version as a number."),
  fixed("transaction_isolation", "read committed", "Isolation of the transaction."),
  fixed("search_path", '"$user", public', "Schemas in which names are looked up."),
  fixed("DateStyle", "ISO,YMD", "Form of dates."),
  fixed("TimeZone", "UTC", "Time zone of timestamps."),
  fixed("max_identifier_length", 63, "Length of names that clients may rely on.", "INT"),
  fixed("max_index_keys", "32", "Number of columns in an index that clients may rely on."),
  fixed("standard_conforming_strings", "on", "A backslash in '…' is a plain character."),
  fixed("default_transaction_read_only", "off", "Transactions may write."),
  fixed("transaction_read_only", "off", "The transaction may write."),
  fixed("default_transaction_isolation", "read committed", "Isolation of new transactions."),
  fixed("client_encoding", "UTF8", "Encoding of texts that the client sends."),
  fixed("server_encoding", "UTF8", "Encoding of texts on the server."),
  fixed("integer_datetimes", "on", "Times are integers in their binary form."),
  fixed("IntervalStyle", "postgres", "Form of intervals."),
  fixed("bytea_output", "hex", "Text form of bytea."),
  open("application_name", "", "Name of the client, shown in pg_stat_activity."),
  open("statement_timeout", "0", "Time limit of a statement; 0: the server's query.timeout applies."),
  open(
    "client_min_messages",
    "notice",
    "With info or a lower level, the client gets notices about the progress of long statements.",
  ),
  open(
    "extra_float_digits",
    "1",
    "Floating-point numbers are always written with enough digits to read the same value.",
  ),
  open("lock_timeout", "0", "No statement waits for a lock."),
  open("idle_in_transaction_session_timeout", "0", "Transactions hold no locks."),
];

export const CLIENT_SETTINGS: ReadonlyMap<string, ClientSetting> = new Map(
  SETTINGS.map((setting) => [setting.name.toLowerCase(), setting]),
);

/** Alternative names in SHOW. */
const SHOWN_AS: Readonly<Record<string, string>> = {
  "transaction isolation level": "transaction_isolation",
  "time zone": "timezone",
};

/** Values set by a session, by lower-case name. */
export type SessionValues = ReadonlyMap<string, string>;

/** Facts about the client. Plain data, so that it can be sent to another thread. */
export interface ClientFacts {
  settings?: SessionValues;
  pid?: number;
}

/** Returns the setting with the session's value. Undefined if there is no such setting. */
export function settingOf(name: string, session: SessionValues = new Map()): ClientSetting | undefined {
  const lower = name.toLowerCase(), key = SHOWN_AS[lower] ?? lower;
  const known = CLIENT_SETTINGS.get(key), value = session.get(key);
  if (value === undefined || known?.isFixed === true) return known;
  return known === undefined ? open(key, value, "Set by the session.") : { ...known, value };
}

/** All settings, including those of the session, by name. */
export function settingsOf(session: SessionValues = new Map()): ClientSetting[] {
  const names = new Set([...CLIENT_SETTINGS.keys(), ...session.keys()]);
  return [...names].sort().map((name) => settingOf(name, session)!);
}

export function settingNames(session: SessionValues = new Map()): string[] {
  return [...Object.keys(SHOWN_AS), ...settingsOf(session).map(({ name }) => name.toLowerCase())];
}
