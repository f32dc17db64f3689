/**
 * Statements about the session, not about data: settings, savepoints, prepared statements and portals. They are handled
 * here; all others are passed to the database.
 */
import type { Answer, Prepared, Session } from "../../api.ts";
import { failedTransaction, notSupported } from "../../errors.ts";
import type { SessionSettings } from "./session-settings.ts";

/** The parts of the connection that these statements use. */
export interface Conversation {
  readonly session: Pick<Session, "transaction" | "savepoint" | "release" | "rollbackTo">;
  readonly settings: SessionSettings;
  /** Reports a changed setting to the client. */
  tellSetting(name: string, value: string): void;
  /** Closes a prepared statement, or all of them. */
  deallocate(name: string | undefined): void;
  /** Closes a portal, or all of them. */
  closePortals(name: string | undefined): void;
}

type Words = RegExpMatchArray;
interface Entry {
  pattern: RegExp;
  /** Executes it and returns the command tag. */
  run(words: Words, conversation: Conversation): string | Promise<string>;
  /** Set if it is allowed in a failed transaction. */
  isAllowedInFailed?: true;
}

const NAME = `("(?:[^"]|"")+"|[^\\s;"]+)`;
const SETTING = `"?([\\w.]+)"?`;

const ENTRIES: Entry[] = [
  {
    pattern: pattern(`SET\\s+LOCAL\\s+${SETTING}\\s*(?:=|\\sTO\\s)\\s*(.+?)`),
    run: ([, name, value], conversation) =>
      changed(conversation, (settings) => {
        settings.setLocal(name, value.trim());
        // It holds until the end of the transaction, and there is none.
        if (conversation.session.transaction === "idle") settings.endTransaction();
      }),
  },
  {
    pattern: pattern(`SET\\s+(?:SESSION\\s+)?${SETTING}\\s*(?:=|\\sTO\\s)\\s*(.+?)`),
    run: ([, name, value], conversation) => changed(conversation, (settings) => settings.set(name, value.trim())),
  },
  {
    pattern: pattern(`RESET\\s+${SETTING}`),
    run: ([, name], conversation) =>
      changed(conversation, (settings) => /^all$/i.test(name) ? settings.resetAll() : settings.reset(name)),
  },
  // Other forms, such as SET TRANSACTION and SET NAMES, are accepted without effect.
  { pattern: pattern(`(?:SET|RESET)\\s+.+`), run: () => "SET" },
  {
    pattern: pattern(`DISCARD\\s+(?:ALL|PLANS|SEQUENCES|TEMP|TEMPORARY)`),
    run([text], conversation) {
      if (!/\bALL\b/i.test(text)) return "SET";
      conversation.deallocate(undefined);
      conversation.closePortals(undefined);
      return changed(conversation, (settings) => settings.resetAll());
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
    // DECLARE of a cursor is matched here. DECLARE of variables begins a query.
    pattern: pattern(
      `(LISTEN|NOTIFY|PREPARE|EXECUTE|DECLARE(?=\\s+\\S+\\s+(?:BINARY|ASENSITIVE|INSENSITIVE|NO|SCROLL|CURSOR)\\b)|FETCH|MOVE)\\s[\\s\\S]+`,
    ),
    run([, word]) {
      throw notSupported(word.toUpperCase(), 0);
    },
  },
];

/** Restores what SET LOCAL has replaced. */
export function endLocalSettings(conversation: Conversation): void {
  changed(conversation, (settings) => settings.endTransaction());
}

/** A change of application_name is reported to the client, as in PostgreSQL. */
function changed(conversation: Conversation, change: (settings: SessionSettings) => void): string {
  const { settings } = conversation, key = "application_name";
  const before = settings.values.get(key);
  change(settings);
  const after = settings.values.get(key);
  if (after !== before) conversation.tellSetting(key, after ?? "");
  return "SET";
}

function pattern(text: string): RegExp {
  return new RegExp(`^${text}\\s*;?\\s*$`, "is");
}

const BLANKS = /^(?:\s+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/;
/** Checked first, because most statements begin with other words. */
const FIRST_WORD =
  /^(?:SET|RESET|DISCARD|CLOSE|UNLISTEN|DEALLOCATE|SAVEPOINT|RELEASE|ROLLBACK|COPY|LISTEN|NOTIFY|PREPARE|EXECUTE|DECLARE|FETCH|MOVE)\b/i;

/** The prepared statement if it is about the session; undefined if it is for the database. */
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
