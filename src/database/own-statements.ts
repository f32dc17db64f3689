/** Statements of the server itself, over its own tables. */
import type { ExecuteOptions, Prepared, Session } from "../api.ts";
import type { Value } from "../types/mod.ts";

/** Returns the rows as JSON gives them. The values are texts. */
export async function ownRows(session: Session, sql: string, values: readonly string[] = []): Promise<unknown[][]> {
  try {
    return await jsonRows(await session.prepare(sql, values.map(() => "VARCHAR")), values);
  } finally {
    await session.close();
  }
}

/** Executes a query. Integers beyond 2^53 are texts. */
export async function jsonRows(
  prepared: Prepared,
  values: readonly Value[] = [],
  options: Omit<ExecuteOptions, "encoding"> = {},
): Promise<unknown[][]> {
  const answer = await prepared.execute([...values], {
    ...options,
    encoding: { name: "json", quoteLargeNumbers: true },
  });
  if (answer.kind !== "rows") throw new Error("a query gives rows");
  let text = "";
  const decoder = new TextDecoder();
  for await (const { bytes } of answer.chunks) text += decoder.decode(bytes, { stream: true });
  return JSON.parse(`[${text}]`);
}

export async function ownChange(session: Session, sql: string, values: readonly string[] = []): Promise<void> {
  try {
    const prepared = await session.prepare(sql, values.map(() => "VARCHAR"));
    await prepared.execute([...values], { encoding: { name: "csv", delimiter: "," } });
  } finally {
    await session.close();
  }
}
