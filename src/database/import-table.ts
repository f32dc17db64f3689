/** Defines the table for an imported file. */
import type { ImportOptions } from "../api.ts";
import type { NewTable } from "../sql/plan.ts";
import type { Analysis } from "../wire/csv/mod.ts";
import { refusal } from "./import-sinks.ts";

/** @throws {SqlError} if the file's columns and the options do not fit. */
export function newTableOf({ columns }: Pick<Analysis, "columns">, options: ImportOptions): NewTable {
  const { table: name, timestamp, partitionBy = "NONE", schema } = options;
  if (partitionBy !== "NONE" && timestamp === undefined) {
    throw refusal(`partitionBy=${partitionBy} needs a designated timestamp: set the parameter timestamp`);
  }
  const names = new Set<string>();
  const made = columns.map(({ name, type, isInstant }) => {
    const key = name.toLowerCase();
    if (names.has(key)) throw refusal(`the file's header has two columns called ${name}`);
    names.add(key);
    const given = schema.find((entry) => entry.name.toLowerCase() === key);
    const isDesignated = key === timestamp?.toLowerCase();
    // For the designated timestamp, also accept ISO forms that are not detected as TIMESTAMP.
    const found = isDesignated && isInstant && type !== "TIMESTAMP_NS" ? "TIMESTAMP" : type;
    const indexed = given?.index === true && given.type === "SYMBOL";
    return { name, type: given?.type ?? found, indexed, symbolCapacity: 256, symbolCached: true };
  });
  let designated = -1;
  if (timestamp !== undefined) {
    designated = made.findIndex(({ name }) => name.toLowerCase() === timestamp.toLowerCase());
    if (designated < 0) throw refusal(`the file has no column ${timestamp} for the designated timestamp`);
    const { type } = made[designated]!;
    if (type !== "TIMESTAMP" && type !== "TIMESTAMP_NS") {
      throw refusal(`column ${timestamp} cannot be the designated timestamp: found ${type}, expected TIMESTAMP`);
    }
  }
  return { name, columns: made, timestamp: designated, partitionBy, wal: partitionBy !== "NONE", dedupKeys: [] };
}
