/**
 * Limits on the work for one statement. Parsing, binding and planning cannot be interrupted, so the thread that serves clients
 * hands longer statements to another thread (see workers/planner.ts), and still longer ones are refused.
 */
import { SqlError, SQLSTATE } from "../errors.ts";

export interface Effort {
  /** Tokens that the grammar reads, not counting lists of values. */
  readonly words: number;
  /** Tokens of known statement forms, which are read in a tenth of the time. */
  readonly knownWords: number;
  /** Tokens with those of lists of values. Each takes some 230 bytes until the statement has been planned. */
  readonly tokens: number;
  /** Expressions and sub-queries, counted each time they are bound. An alias that is used twice is bound twice. */
  readonly expressions: number;
  /** The error for a statement above a limit. */
  beyond(what: string, at: number, max: number): Error;
}

export function tooComplex(what: string, at: number, max: number): SqlError {
  return new SqlError(
    `The statement is too complex: ${what}, at most ${max} are allowed`,
    at,
    SQLSTATE.programLimitExceeded,
  );
}

/** Statements above these limits are refused. */
export const FULL_EFFORT: Effort = {
  words: 50_000,
  knownWords: Infinity,
  tokens: 4_000_000,
  expressions: 200_000,
  beyond: tooComplex,
};

/** Thrown for a statement above `QUICK_EFFORT`. It is not an error of the statement. */
export class LongStatement extends Error {}

/** About ten milliseconds. */
export const QUICK_EFFORT: Effort = quickEffort(400);

export function quickEffort(words: number): Effort {
  return {
    words,
    knownWords: 2.5 * words | 0,
    // Long texts are not for this thread in any case.
    tokens: Infinity,
    expressions: 2 * words,
    beyond: () => new LongStatement("the statement is long"),
  };
}
