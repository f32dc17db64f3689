/**
 * Statements that exist for tests of the machinery around them, known only where `dev.mode.enabled` is set:
 *
 *     select simulate_crash('text')    an error reaches the top of the main thread
 *     select simulate_block(1000)      the main thread does nothing else for so many milliseconds
 */
import type { Answer, Database, Prepared, Session } from "../door.ts";

const STATEMENT = /^\s*select\s+(?:simulate_crash\s*\(\s*'((?:[^']|'')*)'|simulate_block\s*\(\s*(\d+))\s*\)\s*;?\s*$/i;

export function withDevelopmentStatements(database: Database): Database {
  return {
    ...database,
    session: (identity) => {
      const session = database.session(identity);
      const prepare = session.prepare.bind(session);
      const known: Session["prepare"] = (text, parameterTypes) => {
        const match = STATEMENT.exec(text);
        return match === null ? prepare(text, parameterTypes) : simulation(match[1], Number(match[2]));
      };
      return Object.defineProperty(session, "prepare", { value: known });
    },
  };
}

function simulation(crash: string | undefined, blockMs: number): Prepared {
  return {
    columns: undefined,
    timestamp: -1,
    parameters: [],
    category: "ddl",
    compileNs: 0,
    execute: () => {
      if (crash !== undefined) {
        // In a turn of its own, where nobody stands around to catch it.
        setTimeout(() => {
          throw new Error(`simulated crash: ${crash.replaceAll("''", "'")}`);
        });
      } else {
        for (const until = performance.now() + blockMs; performance.now() < until;);
      }
      return Promise.resolve<Answer>({ kind: "done", category: "ddl", tag: "SELECT", rows: 0 });
    },
  };
}
