/** Statements of a text: split at semicolons outside of strings, names and comments. */

export interface Statement {
  text: string;
  /** UTF-16 units from the start of the whole text. */
  start: number;
  end: number;
}

const TOKEN = /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|--[^\n]*|\/\*[^]*?(?:\*\/|$)|;/g;

/** Empty statements are omitted. Comments belong to the following statement. */
export function statementsOf(text: string): Statement[] {
  const found: Statement[] = [];
  let start = 0;
  const take = (end: number) => {
    const part = text.slice(start, end);
    const blank = part.length - part.trimStart().length;
    const trimmed = part.trim();
    if (trimmed !== "") found.push({ text: trimmed, start: start + blank, end: start + blank + trimmed.length });
    start = end + 1;
  };
  for (const { 0: token, index } of text.matchAll(TOKEN)) if (token === ";") take(index);
  take(text.length);
  return found;
}

/** The statement at the cursor, or the last one before it. */
export function statementAt(text: string, position: number): Statement | undefined {
  const statements = statementsOf(text);
  return statements.findLast(({ start }) => start <= position) ?? statements[0];
}
