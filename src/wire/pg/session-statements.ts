/**
 * Statements that are about the conversation, not about data: settings, savepoints, the names of prepared statements and
 * portals. They are answered here; all others go to the database.
 */
import type { Answer, Prepared } from "../../door.ts";
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import { PG_SQLSTATE } from "./failure.ts";

/** What such statements act on. */
export interface Conversation {
  readonly transaction: "idle" | "open" | "failed";
  readonly savepoints: Savepoints;
  statementTimeoutMs: number;
  /** Forgets a prepared statement, or all of them. */
  deallocate(name: string | undefined): void;
  /** Closes a portal, or all of them. */
  closePortals(name: string | undefined): void;
}

/**
 * Savepoints of an open transaction. The database keeps none, so going back to one is possible only while nothing was changed
 * since it was set: that is what drivers do that probe for a feature under a savepoint.
 */
export class Savepoints {
  private stack: { name: string; changeCount: number }[] = [];
  private changeCount = 0;
  /** A statement failed behind a savepoint. The database was not told, so that ROLLBACK TO can go on. */
  failed = false;

  get isEmpty(): boolean {
    return this.stack.length === 0;
  }

  set(name: string): void {
    this.stack.push({ name, changeCount: this.changeCount });
  }

  release(name: string): void {
    this.stack.length = this.indexOf(name);
  }

  rollbackTo(name: string): void {
    const index = this.indexOf(name);
    if (this.stack[index].changeCount !== this.changeCount) {
      throw notSupported(`ROLLBACK TO ${name} after a change since that savepoint`, 0);
    }
    this.stack.length = index + 1;
    this.failed = false;
  }

  changed(): void {
    this.changeCount++;
  }

  /** The transaction is over. */
  clear(): void {
    this.stack = [];
    this.changeCount = 0;
    this.failed = false;
  }

  private indexOf(name: string): number {
    const index = this.stack.findLastIndex((savepoint) => savepoint.name === name);
    if (index < 0) throw new SqlError(`there is no savepoint ${name}`, 0, PG_SQLSTATE.invalidSavepoint);
    return index;
  }
}

type Words = RegExpMatchArray;
interface Entry {
  pattern: RegExp;
  /** Does it, and gives the command tag. */
  run(words: Words, conversation: Conversation): string;
}

const NAME = `("(?:[^"]|"")+"|[^\\s;"]+)`;

const ENTRIES: Entry[] = [
  {
    pattern: pattern(`SET\\s+(?:SESSION\\s+|LOCAL\\s+)?statement_timeout\\s*(?:=|\\sTO\\s)\\s*(.+)`),
    run([, value], conversation) {
      conversation.statementTimeoutMs = parseTimeoutMs(value.trim());
      return "SET";
    },
  },
  {
    pattern: pattern(`RESET\\s+(?:ALL|statement_timeout)`),
    run(_words, conversation) {
      conversation.statementTimeoutMs = 0;
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
      conversation.statementTimeoutMs = 0;
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
    run([, name], conversation) {
      needTransaction("SAVEPOINT", conversation);
      conversation.savepoints.set(identifier(name));
      return "SAVEPOINT";
    },
  },
  {
    pattern: pattern(`RELEASE\\s+(?:SAVEPOINT\\s+)?${NAME}`),
    run([, name], conversation) {
      needTransaction("RELEASE", conversation);
      conversation.savepoints.release(identifier(name));
      return "RELEASE";
    },
  },
  {
    pattern: pattern(`ROLLBACK\\s+(?:WORK\\s+|TRANSACTION\\s+)?TO\\s+(?:SAVEPOINT\\s+)?${NAME}`),
    run([, name], conversation) {
      if (conversation.transaction === "idle") throw noTransaction("ROLLBACK TO");
      conversation.savepoints.rollbackTo(identifier(name));
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
    pattern: pattern(`(LISTEN|NOTIFY|PREPARE|EXECUTE|DECLARE|FETCH|MOVE)\\s[\\s\\S]+`),
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
    if (words !== null) return prepared(() => entry.run(words, conversation));
  }
  return undefined;
}

function prepared(run: () => string): Prepared {
  return {
    columns: undefined,
    timestamp: -1,
    parameters: [],
    notices: [],
    category: "transaction",
    isRead: false,
    compileNs: 0,
    execute: async (): Promise<Answer> => ({ kind: "done", category: "transaction", tag: run(), rows: 0 }),
  };
}

function needTransaction(what: string, { transaction, savepoints }: Conversation): void {
  if (transaction === "idle") throw noTransaction(what);
  if (transaction === "failed" || savepoints.failed) throw failedTransaction();
}

function noTransaction(what: string): SqlError {
  return new SqlError(`${what} can only be used in a transaction`, 0, PG_SQLSTATE.noActiveTransaction);
}

/** SQLSTATE 25P02. */
export function failedTransaction(): SqlError {
  return new SqlError(
    "the transaction has failed: nothing is changed before ROLLBACK",
    0,
    PG_SQLSTATE.failedTransaction,
  );
}

function identifier(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase();
}

const UNIT_MS: Record<string, number> = { us: 0.001, ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/** 250, '250ms', '2s', DEFAULT; 0 is the configured limit. */
export function parseTimeoutMs(text: string): number {
  if (/^default$/i.test(text)) return 0;
  const match = /^'?\s*(\d{1,12})\s*(us|ms|s|min|h|d)?\s*'?$/.exec(text);
  if (match === null) {
    throw new SqlError(
      `${text} is no value for statement_timeout: milliseconds are expected`,
      0,
      SQLSTATE.invalidParameter,
    );
  }
  return Math.ceil(Number(match[1]) * UNIT_MS[match[2] ?? "ms"]);
}
