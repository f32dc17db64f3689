/**
 * Cursors: DECLARE, FETCH and MOVE. A cursor is a portal that DECLARE makes, so CLOSE, Describe and Execute know it by its name,
 * too. The engine has no other use of them, so they are read here and not by the grammar.
 */
import type { Prepared } from "../../api.ts";

export interface Declare {
  kind: "declare";
  name: string;
  query: string;
  /** Offset of the query in the text. */
  queryAt: number;
  /** WITH HOLD: it lives on after the transaction. */
  holds: boolean;
}

export interface Fetch {
  kind: "fetch" | "move";
  name: string;
  nameAt: number;
  /** Undefined if the direction is not forward. */
  rowCount: number | undefined;
}

const NAME = String.raw`("(?:[^"]|"")+"|[\w$]+)`;
const DECLARE = new RegExp(
  String.raw`^\s*DECLARE\s+${NAME}\s+(?:(?:BINARY|ASENSITIVE|INSENSITIVE|NO|SCROLL)\s+)*CURSOR\s+` +
    String.raw`(?:WITH(OUT)?\s+HOLD\s+)?FOR\s+(?=\S)`,
  "i",
);
const FETCH = new RegExp(
  String.raw`^\s*(FETCH|MOVE)\s+(?:(NEXT|PRIOR|FIRST|LAST|ALL|(?:ABSOLUTE|RELATIVE)\s+[-+]?\d+|` +
    String.raw`(?:FORWARD|BACKWARD)(?:\s+(?:ALL|[-+]?\d+))?|[-+]?\d+)\s+)?(?:(?:FROM|IN)\s+)?${NAME}\s*(?:;\s*)?$`,
  "i",
);

/** The command about a cursor that this text is; undefined for other statements. */
export function cursorCommand(text: string): Declare | Fetch | undefined {
  const declare = DECLARE.exec(text);
  if (declare !== null) {
    const [all, name = "", without] = declare;
    const holds = without === undefined && /\sHOLD\s+FOR\s+$/i.test(all);
    return { kind: "declare", name: nameOf(name), query: text.slice(all.length), queryAt: all.length, holds };
  }
  const fetch = FETCH.exec(text);
  if (fetch === null) return undefined;
  const [, verb = "", direction = "NEXT", name = ""] = fetch;
  return {
    kind: verb.toUpperCase() === "MOVE" ? "move" : "fetch",
    name: nameOf(name),
    nameAt: text.lastIndexOf(name),
    rowCount: rowCountOf(direction.toUpperCase()),
  };
}

/** Whether a text may be a command about a cursor: most statements are not. */
export function mayBeCursorCommand(text: string): boolean {
  return /^\s*(?:DECLARE\s+[^@\s]|FETCH\s|MOVE\s)/i.test(text);
}

function nameOf(written: string): string {
  return written.startsWith('"') ? written.slice(1, -1).replaceAll('""', '"') : written.toLowerCase();
}

function rowCountOf(direction: string): number | undefined {
  const [word, count = word === "FORWARD" ? "1" : word] = direction.split(/\s+/) as [string, string?];
  if (word === "NEXT") return 1;
  if (!["FORWARD", count].includes(word)) return undefined;
  if (count === "ALL") return Infinity;
  const rowCount = Number(count);
  return rowCount >= 0 ? rowCount : undefined;
}

/** What is announced of a command: the columns of FETCH, the parameters of DECLARE. */
export function announced(
  category: "query" | "session",
  { columns, parameters, parameterArrays }: Pick<Prepared, "columns" | "parameters" | "parameterArrays">,
): Prepared {
  return {
    columns,
    timestamp: -1,
    parameters,
    parameterArrays,
    notices: [],
    category,
    isRead: true,
    compileNs: 0,
    execute: () => {
      throw new Error("the connection executes commands about cursors");
    },
  };
}
