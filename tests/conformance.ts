/**
 * The recorded cases (`tests/conformance/*.test`): SQL scripts with the answers that users of such a database get today.
 *
 *     statement            the server runs it without an error
 *     query [rowsort]      SQL, ----, a header (name to type), one line for each row; numbers may differ by 1e-9 of their size
 *     error                SQL, ----, @position
 */
export interface Case {
  kind: "statement" | "query" | "error";
  rowsort: boolean;
  title: string;
  line: number;
  sql: string;
  expected: string[];
}

export interface Reply {
  error?: string;
  position?: number;
  columns?: { name: string; type: string }[];
  dataset?: unknown[][];
}

const RELATIVE_TOLERANCE = 1e-9;

export function parseCases(text: string): Case[] {
  const lines = text.split("\n");
  const cases: Case[] = [];
  let title = "";
  for (let i = 0; i < lines.length;) {
    const line = lines[i];
    if (line.startsWith("#")) title = line.replace(/^#+\s*/, "");
    if (line.startsWith("#") || line.trim() === "") {
      i++;
      continue;
    }
    const [kind, ...flags] = line.trim().split(/\s+/);
    if (kind !== "statement" && kind !== "query" && kind !== "error") {
      throw new Error(`line ${i + 1}: expected statement, query or error, found "${line}"`);
    }
    const start = ++i;
    const sql: string[] = [];
    while (i < lines.length && lines[i].trim() !== "" && lines[i] !== "----") sql.push(lines[i++]);
    const expected: string[] = [];
    if (lines[i] === "----") { for (i++; i < lines.length && lines[i].trim() !== ""; i++) expected.push(lines[i]); }
    cases.push({ kind, rowsort: flags.includes("rowsort"), title, line: start, sql: sql.join("\n"), expected });
    title = "";
  }
  return cases;
}

/** Returns undefined if the reply is as recorded, otherwise the actual reply. */
export function difference(c: Case, reply: Reply): string[] | undefined {
  const got = actual(c, reply);
  const holds = c.kind === "error"
    ? got[0] !== "no error" && (c.expected.length === 0 || c.expected[0] === got[0])
    : c.expected.length === got.length && c.expected.every((line, i) =>
      line === got[i] || (i > 0 && got[i].startsWith("[") && same(JSON.parse(line), JSON.parse(got[i])))
    );
  return holds ? undefined : got;
}

function actual(c: Case, reply: Reply): string[] {
  if (c.kind === "error") return reply.error === undefined ? ["no error"] : [`@${reply.position ?? -1}`];
  if (reply.error !== undefined) return [`error @${reply.position ?? -1}: ${reply.error}`];
  if (c.kind === "statement") return [];
  const header = Object.fromEntries((reply.columns ?? []).map((column) => [column.name, column.type]));
  const rows = (reply.dataset ?? []).map((row) => JSON.stringify(row));
  if (c.rowsort) rows.sort();
  return [JSON.stringify(header), ...rows];
}

function same(a: unknown, b: unknown): boolean {
  if (typeof a === "number" && typeof b === "number") {
    return a === b || Math.abs(a - b) <= RELATIVE_TOLERANCE * Math.max(Math.abs(a), Math.abs(b));
  }
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((x, i) => same(x, b[i]));
  return JSON.stringify(a) === JSON.stringify(b);
}

const CREATED = /create\s+(?:table|(?:materialized\s+)?view)\s+(?:if\s+not\s+exists\s+)?("[^"]+"|'[^']+'|[\w.]+)/gi;

/** DROP statements for everything that a file creates, in reverse order. */
export function cleanup(cases: Case[]): string[] {
  const names = new Map<string, string>();
  for (const c of cases) {
    for (const m of c.sql.matchAll(CREATED)) {
      names.set(m[1], /materialized/i.test(m[0]) ? "materialized view" : /\bview\b/i.test(m[0]) ? "view" : "table");
    }
    const renamed = c.sql.match(/rename\s+table\s+\S+\s+to\s+("[^"]+"|'[^']+'|\w+)/i);
    if (renamed) names.set(renamed[1], "table");
  }
  return [...names].reverse().map(([name, what]) => `drop ${what} if exists ${name}`);
}
