/**
 * Statements for tests of error handling, available only with `dev.mode.enabled`:
 *
 *     select simulate_crash('text')             an uncaught error in the main thread
 *     select simulate_crash('text', 'promise')  an unhandled rejection in the main thread
 *     select simulate_crash('text', 'query')    an uncaught error in a query worker, one with a query if possible
 *     select simulate_crash('text', 'writer')   an uncaught error in the writer
 *     select simulate_block(1000)               blocks the main thread for 1000 milliseconds
 */
import type { Answer, Prepared, Session } from "../api.ts";
import type { OpenedDatabase } from "./core.ts";

const CRASH = /^\s*select\s+simulate_crash\s*\(\s*'((?:[^']|'')*)'\s*(?:,\s*'(promise|query|writer)'\s*)?\)\s*;?\s*$/i;
const BLOCK = /^\s*select\s+simulate_block\s*\(\s*(\d+)\s*\)\s*;?\s*$/i;

export function withDevelopmentStatements(database: OpenedDatabase): OpenedDatabase {
  return {
    ...database,
    session: (identity) => {
      const session = database.session(identity);
      const prepare = session.prepare.bind(session);
      const known: Session["prepare"] = (text, parameterTypes, options) => {
        const action = simulation(database, text);
        return action === undefined ? prepare(text, parameterTypes, options) : statement(action);
      };
      return Object.defineProperty(session, "prepare", { value: known });
    },
  };
}

function simulation(database: OpenedDatabase, text: string): (() => void) | undefined {
  const crash = CRASH.exec(text);
  if (crash !== null) {
    const message = crash[1].replaceAll("''", "'");
    const thread = crash[2]?.toLowerCase() as "promise" | "query" | "writer" | undefined;
    return () => {
      if (thread === "promise") return void Promise.reject(new Error(`simulated crash: ${message}`));
      if (thread !== undefined) return database.crash(thread, message);
      // In a separate turn, where nothing catches it.
      setTimeout(() => {
        throw new Error(`simulated crash: ${message}`);
      });
    };
  }
  const block = BLOCK.exec(text);
  if (block === null) return undefined;
  return () => {
    for (const until = performance.now() + Number(block[1]); performance.now() < until;);
  };
}

function statement(action: () => void): Prepared {
  return {
    columns: undefined,
    timestamp: -1,
    parameters: [],
    parameterArrays: [],
    notices: [],
    category: "ddl",
    isRead: false,
    compileNs: 0,
    execute: () => {
      action();
      return Promise.resolve<Answer>({ kind: "done", category: "ddl", tag: "SELECT", rows: 0 });
    },
  };
}
