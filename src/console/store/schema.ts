/** The contents of the database for completion: the language, the tables, and the columns of requested tables. */
import { signal } from "@preact/signals";
import { loadPermissions } from "../sign-in/permissions.ts";
import { type Column, fetchLanguage, type Language, query } from "../server/client.ts";

export interface Table {
  name: string;
  /** Its designated timestamp, if it has one. */
  timestamp: string | null;
  partitionBy: string;
  rowCount: number;
  kind: "table" | "view" | "materialized view";
  diskBytes: number;
  /** In the server's time format. */
  lastWrite: string | null;
}

export interface TableColumn extends Column {
  isTimestamp: boolean;
  isKey: boolean;
}

/** What the stored rows of a column take. */
export interface ColumnStorage {
  bytes: number;
  /** Their size without encoding. */
  rawBytes: number;
  encodings: readonly string[];
}

export const language = signal<Language>({ functions: [], keywords: [], reserved: [], types: [] });
export const tables = signal<readonly Table[]>([]);
/** Incremented when columns may have changed. */
export const schemaVersion = signal(0);
const columns = new Map<string, Promise<readonly TableColumn[]>>();

const TABLES = `
  select t.table_name, t.designatedTimestamp, t.partitionBy, t.table_row_count, s.diskSize, t.table_last_write_timestamp,
    t.table_type
  from tables() t left join table_storage() s on t.table_name = s.tableName
  order by 1`;

export async function loadSchema(): Promise<void> {
  await Promise.all([
    refreshSchema(),
    fetchLanguage().then((found) => {
      if (found !== undefined) language.value = found;
    }),
  ]);
}

/** The server's own tables come last. */
const isInternal = ({ name }: Table) => name.startsWith("_");

let refreshes = 0, shown = 0;

export async function refreshSchema(): Promise<void> {
  const refresh = ++refreshes;
  const [{ rows }] = await Promise.all([query(TABLES), loadPermissions()]);
  // An answer that comes after that of a later request is older than what is shown.
  if (rows === undefined || refresh < shown) return;
  shown = refresh;
  columns.clear();
  tables.value = rows.dataset.map(([name, timestamp, partitionBy, rowCount, diskBytes, lastWrite, type]): Table => ({
    name: String(name),
    timestamp: timestamp as string | null,
    partitionBy: String(partitionBy),
    rowCount: Number(rowCount),
    kind: type === "V" ? "view" : type === "M" ? "materialized view" : "table",
    diskBytes: Number(diskBytes),
    lastWrite: lastWrite as string | null,
  })).sort((a, b) => Number(isInternal(a)) - Number(isInternal(b)));
  schemaVersion.value++;
}

/** Empty if the table does not exist. */
export function columnsOf(table: string): Promise<readonly TableColumn[]> {
  let found = columns.get(table);
  if (found === undefined) {
    found = query(`select "column", type, designated, upsertKey from table_columns(${literal(table)})`).then((
      { rows },
    ) =>
      (rows?.dataset ?? []).map(([name, type, isTimestamp, isKey]) => ({
        name: String(name),
        type: String(type),
        isTimestamp: isTimestamp === true,
        isKey: isKey === true,
      }))
    );
    columns.set(table, found);
  }
  return found;
}

/** By column, for those with stored rows. Rows that are not stored yet are in memory and in the log. */
export async function storageOf(table: string): Promise<ReadonlyMap<string, ColumnStorage>> {
  const { rows } = await query(`
    select "column", sum(diskSize), sum(rawSize), string_distinct_agg(encodings, ',')
    from table_column_storage(${literal(table)}) where storedRows > 0 group by 1`);
  return new Map((rows?.dataset ?? []).map(([name, bytes, rawBytes, encodings]) => [String(name), {
    bytes: Number(bytes),
    rawBytes: Number(rawBytes),
    encodings: [...new Set(String(encodings ?? "").split(/, */))].sort(),
  }]));
}

/** A text as an SQL literal. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A name in SQL. Names that are not plain words are quoted. */
export function quoted(name: string): string {
  return /^[A-Za-z_][\w$]*$/.test(name) && !language.value.reserved.includes(name.toLowerCase())
    ? name
    : `"${name.replaceAll('"', '""')}"`;
}
