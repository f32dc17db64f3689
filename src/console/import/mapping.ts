/** The statement that imports a Parquet file. */
import { literal } from "../store/schema.ts";

export interface Mapping {
  /** Name of the column in the file. */
  source: string;
  /** Type of the column in the file. */
  found: string;
  /** Name of the column in the table. */
  name: string;
  type: string;
  isIncluded: boolean;
}

/** The name of the time column after a change of names. */
export function renamed(name: string, before: readonly Mapping[], after: readonly Mapping[]): string {
  return after[before.findIndex((mapping) => mapping.name === name)]?.name ?? name;
}

export interface ParquetTarget {
  /** Name for read_parquet(). */
  file: string;
  table: string;
  /** True if the table is created. */
  isNew: boolean;
  mappings: readonly Mapping[];
  /** Designated timestamp of a new table; "" if there is none. */
  timestamp: string;
  partitionBy: string;
}

export function importStatement({ file, table, isNew, mappings, timestamp, partitionBy }: ParquetTarget): string {
  const included = mappings.filter(({ isIncluded }) => isIncluded);
  const columns = included.map(({ source, found, name, type }) => {
    const value = type === found ? always(source) : `${always(source)}::${type.toLowerCase()}`;
    return `${value} as ${always(name)}`;
  });
  const rows = `select ${columns.join(", ")} from read_parquet(${literal(file)})`;
  if (!isNew) return `insert into ${always(table)} (${included.map(({ name }) => always(name)).join(", ")}) ${rows}`;
  const hasTime = included.some(({ name }) => name === timestamp);
  const order = hasTime ? ` order by ${always(timestamp)}` : "";
  const time = hasTime ? ` timestamp(${always(timestamp)}) partition by ${partitionBy}` : "";
  return `create table ${always(table)} as (${rows}${order})${time}`;
}

const always = (name: string) => `"${name.replaceAll('"', '""')}"`;
