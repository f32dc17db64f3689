/** Settings of PostgreSQL that its clients set and ask for: by SET, SHOW, current_setting() and pg_settings. */
import type { Value } from "../types/mod.ts";

export interface ClientSetting {
  /** As a result column calls it. */
  name: string;
  value: Value;
  /** Type tag. */
  type: string;
  /** SET is taken and changes nothing: this is how the server works. */
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
  fixed("server_version", "12.3 (questdb)", "Version of PostgreSQL that clients may expect the features of."),
  fixed("server_version_num", "123000", "The same as a number."),
  fixed("transaction_isolation", "read committed", "Isolation of the transaction."),
  fixed("search_path", '"$user", public', "Schemas in which names are looked up."),
  fixed("DateStyle", "ISO,YMD", "Form of dates."),
  fixed("TimeZone", "UTC", "Time zone of timestamps."),
  fixed("max_identifier_length", 63, "Length of names that clients may rely on.", "INT"),
  fixed("max_index_keys", "32", "Columns of an index that clients may rely on."),
  fixed("standard_conforming_strings", "on", "A backslash in '…' is a plain character."),
  fixed("default_transaction_read_only", "off", "Transactions may write."),
  fixed("default_transaction_isolation", "read committed", "Isolation of new transactions."),
  fixed("client_encoding", "UTF8", "Encoding of texts that the client sends."),
  fixed("server_encoding", "UTF8", "Encoding of texts of the server."),
  fixed("integer_datetimes", "on", "Times are whole numbers in their binary form."),
  fixed("IntervalStyle", "postgres", "Form of intervals."),
  fixed("bytea_output", "hex", "Form of bytea in text."),
  open("application_name", "", "What the client calls itself: pg_stat_activity shows it."),
  open("statement_timeout", "0", "A longer statement is ended; 0: query.timeout of the server holds."),
  open("client_min_messages", "notice", "info or lower: the client is told how far long statements are."),
  open("extra_float_digits", "1", "Floating numbers are always written so that they are read back as they were."),
  open("lock_timeout", "0", "No statement waits for a lock."),
  open("idle_in_transaction_session_timeout", "0", "Transactions hold no locks."),
];

export const CLIENT_SETTINGS: ReadonlyMap<string, ClientSetting> = new Map(
  SETTINGS.map((setting) => [setting.name.toLowerCase(), setting]),
);

/** Other names of settings in SHOW. */
const SHOWN_AS: Readonly<Record<string, string>> = {
  "transaction isolation level": "transaction_isolation",
  "time zone": "timezone",
};

/** What a session has set, by names in lower case. */
export type SessionValues = ReadonlyMap<string, string>;

/** Plain data, for another thread too. */
export interface ClientFacts {
  settings?: SessionValues;
  pid?: number;
}

/** The setting as a session has it; undefined where nobody knows it. */
export function settingOf(name: string, session: SessionValues = new Map()): ClientSetting | undefined {
  const lower = name.toLowerCase(), key = SHOWN_AS[lower] ?? lower;
  const known = CLIENT_SETTINGS.get(key), value = session.get(key);
  if (value === undefined || known?.isFixed === true) return known;
  return known === undefined ? open(key, value, "Set by the session.") : { ...known, value };
}

/** All settings, those of the session too, by name. */
export function settingsOf(session: SessionValues = new Map()): ClientSetting[] {
  const names = new Set([...CLIENT_SETTINGS.keys(), ...session.keys()]);
  return [...names].sort().map((name) => settingOf(name, session)!);
}

export function settingNames(session: SessionValues = new Map()): string[] {
  return [...Object.keys(SHOWN_AS), ...settingsOf(session).map(({ name }) => name.toLowerCase())];
}
