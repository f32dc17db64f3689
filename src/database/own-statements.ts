/** Statements of the server itself, over its own tables. */
import type { Session } from "../api.ts";

/** Returns the rows as JSON gives them. The values are texts. */
export async function ownRows(session: Session, sql: string, values: readonly string[] = []): Promise<unknown[][]> {
  try {
    const prepared = await session.prepare(sql, values.map(() => "VARCHAR"));
    const answer = await prepared.execute([...values], { encoding: { name: "json", quoteLargeNumbers: true } });
    if (answer.kind !== "rows") throw new Error(`${sql} gives no rows`);
    let text = "";
    const decoder = new TextDecoder();
    for await (const { bytes } of answer.chunks) text += decoder.decode(bytes, { stream: true });
    return JSON.parse(`[${text}]`);
  } finally {
    await session.close();
  }
}

export async function ownChange(session: Session, sql: string, values: readonly string[] = []): Promise<void> {
  try {
    const prepared = await session.prepare(sql, values.map(() => "VARCHAR"));
    await prepared.execute([...values], { encoding: { name: "csv", delimiter: "," } });
  } finally {
    await session.close();
  }
}
