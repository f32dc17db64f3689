/** Runs recorded cases over the PostgreSQL wire and converts its text format to that of /exec. */
import { Client } from "pg";
import type { Case, Reply } from "./conformance.ts";
import { pgClient } from "./pg-client.ts";

interface Rows {
  fields: { name: string }[];
  rows: (string | null)[][];
}

export class PgRunner {
  private constructor(private readonly client: Client, private readonly isExtended: boolean) {}

  /** `isExtended`: uses Parse, Bind and Execute instead of simple queries. */
  static async connect(port: number, isExtended: boolean): Promise<PgRunner> {
    const client = pgClient({ pgPort: port });
    await client.connect();
    return new PgRunner(client, isExtended);
  }

  /** Column types are taken from the recorded header, because the wire's types are less specific. */
  async run(c: Pick<Case, "sql" | "expected">): Promise<Reply> {
    try {
      const result: Rows = await this.client.query({
        text: c.sql,
        rowMode: "array",
        queryMode: this.isExtended ? "extended" : undefined,
        types: { getTypeParser: () => (value: string) => value },
      });
      if (result.fields.length === 0) return {};
      const recorded = headerOf(c.expected[0]);
      const columns = result.fields.map(({ name }) => ({ name, type: recorded[name] ?? "?" }));
      return { columns, dataset: result.rows.map((row) => row.map((text, k) => fromText(text, columns[k].type))) };
    } catch (error) {
      const { message, position } = error as { message: string; position?: string };
      return { error: message, position: position === undefined ? undefined : unitsOf(c.sql, Number(position) - 1) };
    }
  }

  async close(): Promise<void> {
    await this.client.end();
  }
}

function headerOf(line: string | undefined): Record<string, string> {
  return line?.startsWith("{") ? JSON.parse(line) : {};
}

/** PostgreSQL counts characters from the start; recorded positions are UTF-16 units. */
function unitsOf(text: string, characters: number): number {
  return [...text].slice(0, characters).join("").length + Math.max(0, characters - [...text].length);
}

const NUMBERS = new Set(["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"]);

/**
 * The recorded answer as this wire shows it: timestamps have microseconds, and where the recorded position of a bad
 * value is the start of the statement, this wire gives the position of the value.
 */
export function shown(c: Case): Case {
  if (c.kind === "error" && c.expected[0] === "@0") return { ...c, expected: [] };
  if (!c.expected[0]?.includes('"TIMESTAMP_NS"')) return c;
  return { ...c, expected: c.expected.map((line) => line.replaceAll(/(:\d\d\.\d{6})\d{3}Z"/g, '$1Z"')) };
}

/** JSON shows their NULL as an empty text. */
const NULL_AS_EMPTY = new Set(["CHAR", "LONG256"]);

/** Converts a value in PostgreSQL's text format to its JSON form. */
export function fromText(text: string | null, type: string): unknown {
  if (type === "BINARY") return []; // JSON omits the bytes
  if (text === null) return NULL_AS_EMPTY.has(type) ? "" : null;
  if (type === "BOOLEAN") return text === "t";
  if (NUMBERS.has(type)) return Number.isFinite(Number(text)) ? Number(text) : null;
  if (type === "DATE" || type === "TIMESTAMP" || type === "TIMESTAMP_NS") return `${text.replace(" ", "T")}Z`;
  if (type.startsWith("ARRAY") || /\[\]$/.test(type)) {
    return JSON.parse(
      text.replaceAll("{", "[").replaceAll("}", "]").replaceAll("NULL", "null").replaceAll("NaN", "null"),
    );
  }
  return text;
}
