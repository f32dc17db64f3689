/**
 * Settings of PostgreSQL that clients query by SHOW and current_setting(), with the values that they expect of a
 * compatible server.
 */
import type { Value } from "../types/mod.ts";

/** By name in lower case: the name of the result column, the value, and the type if it is not STRING. */
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
