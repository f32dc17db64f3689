/** Settings of PostgreSQL that its clients ask for, by SHOW and by current_setting(): what they expect of a server like this. */
import type { Value } from "../types/mod.ts";

/** By their names in lower case: as a result column calls it, its value, its type when that is not STRING. */
export const CLIENT_SETTINGS: Readonly<Record<string, readonly [name: string, value: Value, type?: string]>> = {
  "server_version": ["server_version", "12.3 (questdb)"],
  "server_version_num": ["server_version_num", "123000"],
  "transaction isolation level": ["transaction_isolation", "read committed"],
  "transaction_isolation": ["transaction_isolation", "read committed"],
  "search_path": ["search_path", '"$user", public'],
  "datestyle": ["DateStyle", "ISO,YMD"],
  "time zone": ["TimeZone", "UTC"],
  "timezone": ["TimeZone", "UTC"],
  "max_identifier_length": ["max_identifier_length", 63, "INT"],
  "standard_conforming_strings": ["standard_conforming_strings", "on"],
  "default_transaction_read_only": ["default_transaction_read_only", "off"],
  "client_encoding": ["client_encoding", "UTF8"],
  "server_encoding": ["server_encoding", "UTF8"],
  "integer_datetimes": ["integer_datetimes", "on"],
};
