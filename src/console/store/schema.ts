/** The contents of the database for completion: the language, its tables, and the columns of requested tables. */
import { signal } from "@preact/signals";
import { type Column, fetchLanguage, type Language, query } from "../server/client.ts";

export interface TableName {
  name: string;
  /** Its designated timestamp, if it has one. */
  timestamp: string | null;
}

export const language = signal<Language>({ functions: [], keywords: [], types: [] });
export const tables = signal<readonly TableName[]>([]);
const columns = new Map<string, Promise<readonly Column[]>>();

export async function loadSchema(): Promise<void> {
  await Promise.all([
    refreshSchema(),
    fetchLanguage().then((found) => {
      if (found !== undefined) language.value = found;
    }),
  ]);
}

export async function refreshSchema(): Promise<void> {
  columns.clear();
  const { rows } = await query("select table_name, designatedTimestamp from tables() order by 1");
  if (rows === undefined) return;
  tables.value = rows.dataset.map(([name, timestamp]) => ({
    name: String(name),
    timestamp: timestamp as string | null,
  }));
}

/** Empty if the table does not exist. */
export function columnsOf(table: string): Promise<readonly Column[]> {
  let found = columns.get(table);
  if (found === undefined) {
    found = query(`show columns from "${table.replaceAll('"', '""')}"`).then(({ rows }) =>
      (rows?.dataset ?? []).map(([name, type]) => ({ name: String(name), type: String(type) }))
    );
    columns.set(table, found);
  }
  return found;
}
