/**
 * Statements that are about the conversation, not about data: settings, savepoints, the names of prepared statements and
 * portals. They are answered here; all others go to the database.
 */
import type { Answer, Prepared, Session } from "../../api.ts";
import { failedTransaction, notSupported, SqlError, SQLSTATE } from "../../errors.ts";

/** What such statements act on. */
export interface Conversation {
  readonly session: Pick<Session, "transaction" | "savepoint" | "release" | "rollbackTo">;
  statementTimeoutMs: number;
  /** client_min_messages is info or lower: the client is told how far long statements are. */
  tellsProgress: boolean;
  /** As the client's start-up message said: what RESET goes back to. */
  readonly startTimeoutMs: number;
  /** Forgets a prepared statement, or all of them. */
  deallocate(name: string | undefined): void;
  /** Closes a portal, or all of them. */
  closePortals(name: string | undefined): void;
}

type Words = RegExpMatchArray;
interface Entry {
  pattern: RegExp;
  /** Does it, and gives the command tag. */
  run(words: Words, conversation: Conversation): string | Promise<string>;
  /** Other statements are refused in a transaction that has failed. */
  isAllowedInFailed?: true;
}

const NAME = `("(?:[^"]|"")+"|[^\\s;"]+)`;

const ENTRIES: Entry[] = [
  {
    pattern: pattern(`SET\\s+(?:SESSION\\s+|LOCAL\\s+)?"?statement_timeout"?\\s*(?:=|\\sTO\\s)\\s*(.+)`),
    run([, value], conversation) {
      const isDefault = /^default$/i.test(value.trim());
      conversation.statementTimeoutMs = isDefault ? conversation.startTimeoutMs : parseTimeoutMs(value.trim());
      return "SET";
    },
  },
  {
    pattern: pattern(`RESET\\s+(?:ALL|statement_timeout)`),
    run([text], conversation) {
      conversation.statementTimeoutMs = conversation.startTimeoutMs;
      if (/\bALL\b/i.test(text)) conversation.tellsProgress = false;
      return "SET";
    },
  },
  {
    pattern: pattern(`SET\\s+(?:SESSION\\s+|LOCAL\\s+)?client_min_messages\\s*(?:=|\\sTO\\s)\\s*(.+)`),
    run([, value], conversation) {
      conversation.tellsProgress = wantsProgress(value);
      return "SET";
    },
  },
  {
    pattern: pattern(`RESET\\s+client_min_messages`),
    run(_words, conversation) {
      conversation.tellsProgress = false;
      return "SET";
    },
  },
  // Whatever else is set is taken and has no effect.
  { pattern: pattern(`(?:SET|RESET)\\s+.+`), run: () => "SET" },
  {
    pattern: pattern(`DISCARD\\s+(?:ALL|PLANS|SEQUENCES|TEMP|TEMPORARY)`),
    run([text], conversation) {
      if (!/\bALL\b/i.test(text)) return "SET";
      conversation.deallocate(undefined);
      conversation.closePortals(undefined);
      conversation.statementTimeoutMs = conversation.startTimeoutMs;
      conversation.tellsProgress = false;
      return "SET";
    },
  },
  {
    pattern: pattern(`CLOSE\\s+${NAME}`),
    run([, name], conversation) {
      conversation.closePortals(/^all$/i.test(name) ? undefined : identifier(name));
      return "SET";
    },
  },
  { pattern: pattern(`UNLISTEN\\s+${NAME}`), run: () => "SET" },
  {
    pattern: pattern(`DEALLOCATE\\s+(?:PREPARE\\s+)?${NAME}`),
    run([, name], conversation) {
      const isAll = /^all$/i.test(name);
      conversation.deallocate(isAll ? undefined : identifier(name));
      return isAll ? "DEALLOCATE ALL" : "DEALLOCATE";
    },
  },
  {
    pattern: pattern(`SAVEPOINT\\s+${NAME}`),
    run([, name], { session }) {
      session.savepoint(identifier(name));
      return "SAVEPOINT";
    },
  },
  {
    pattern: pattern(`RELEASE\\s+(?:SAVEPOINT\\s+)?${NAME}`),
    run([, name], { session }) {
      session.release(identifier(name));
      return "RELEASE";
    },
  },
  {
    isAllowedInFailed: true,
    pattern: pattern(`ROLLBACK\\s+(?:WORK\\s+|TRANSACTION\\s+)?TO\\s+(?:SAVEPOINT\\s+)?${NAME}`),
    async run([, name], { session }) {
      await session.rollbackTo(identifier(name));
      return "ROLLBACK";
    },
  },
  {
    pattern: pattern(`COPY\\s[\\s\\S]*\\b(?:FROM\\s+STDIN|TO\\s+STDOUT)\\b[\\s\\S]*`),
    run() {
      throw notSupported("COPY over this connection", 0);
    },
  },
  {
    // DECLARE of variables begins a query, DECLARE of a cursor does not.
    pattern: pattern(
      `(LISTEN|NOTIFY|PREPARE|EXECUTE|DECLARE(?=\\s+\\S+\\s+(?:BINARY|ASENSITIVE|INSENSITIVE|NO|SCROLL|CURSOR)\\b)|FETCH|MOVE)\\s[\\s\\S]+`,
    ),
    run([, word]) {
      throw notSupported(word.toUpperCase(), 0);
    },
  },
];

function pattern(text: string): RegExp {
  return new RegExp(`^${text}\\s*;?\\s*$`, "is");
}

const BLANKS = /^(?:\s+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/;
/** Looked at first, because nearly all statements begin with another word. */
const FIRST_WORD =
  /^(?:SET|RESET|DISCARD|CLOSE|UNLISTEN|DEALLOCATE|SAVEPOINT|RELEASE|ROLLBACK|COPY|LISTEN|NOTIFY|PREPARE|EXECUTE|DECLARE|FETCH|MOVE)\b/i;

/** The statement, if it is one of those; undefined if it is the database's. */
export function sessionStatement(text: string, conversation: Conversation): Prepared | undefined {
  const start = BLANKS.exec(text)?.[0].length ?? 0;
  const body = start === 0 ? text : text.slice(start);
  if (!FIRST_WORD.test(body)) return undefined;
  for (const entry of ENTRIES) {
    const words = body.match(entry.pattern);
    if (words === null) continue;
    return prepared(() => {
      if (conversation.session.transaction === "failed" && !entry.isAllowedInFailed) throw failedTransaction();
      return entry.run(words, conversation);
    });
  }
  return undefined;
}

function prepared(run: () => string | Promise<string>): Prepared {
  return {
    columns: undefined,
    timestamp: -1,
    parameters: [],
    parameterArrays: [],
    notices: [],
    category: "transaction",
    isRead: false,
    compileNs: 0,
    execute: async (): Promise<Answer> => ({ kind: "done", category: "transaction", tag: await run(), rows: 0 }),
  };
}

function identifier(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase();
}

/** Is this value of client_min_messages info or lower? */
export function wantsProgress(value: string): boolean {
  return /^'?(?:debug[1-5]?|log|info)'?$/i.test(value.trim());
}

const UNIT_MS: Record<string, number> = { us: 0.001, ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/** 250, '250ms', '0.5s', '2 min'; 0 is the configured limit. */
export function parseTimeoutMs(text: string): number {
  const match = /^'?\s*(\d{1,12}(?:\.\d{1,9})?)\s*(us|ms|s|min|h|d)?\s*'?$/.exec(text);
  if (match === null) {
    throw new SqlError(
      `${text} is no value for statement_timeout: milliseconds are expected`,
      0,
      SQLSTATE.invalidParameter,
    );
  }
  return Math.ceil(Number(match[1]) * UNIT_MS[match[2] ?? "ms"]);
}
