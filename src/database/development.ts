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
import { parse, QUICK_EFFORT, soleCall } from "../sql/mod.ts";
import type { OpenedDatabase } from "./core.ts";

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
  const { name, args: [first, thread] } = callOf(text) ?? { args: [] };
  if (name === "simulate_crash") return () => crash(database, `${first}`, thread);
  if (name !== "simulate_block") return undefined;
  return () => {
    for (const until = performance.now() + Number(first); performance.now() < until;);
  };
}

/** Undefined also for a text that is no statement: the session reports that. */
function callOf(text: string): ReturnType<typeof soleCall> {
  try {
    return soleCall(parse(text, QUICK_EFFORT));
  } catch {
    return undefined;
  }
}

function crash(database: OpenedDatabase, text: string, thread: number | string | undefined): void {
  const message = `simulated crash: ${text}`;
  switch (thread) {
    case "query":
    case "writer":
      return database.crash(thread, text);
    case "promise":
      return void Promise.reject(new Error(message));
    default:
      // In a separate turn, where nothing catches it.
      setTimeout(() => {
        throw new Error(message);
      });
  }
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
