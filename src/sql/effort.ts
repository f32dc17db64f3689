/**
 * How much of a statement one thread takes upon itself. Reading, binding and planning cannot be interrupted, so the thread that
 * serves clients leaves what is longer to another one (see workers/planner.ts), and nobody takes what is longer than that.
 */
import { SqlError, SQLSTATE } from "../errors.ts";

export interface Effort {
  /** Words and marks that the grammar reads, lists of values not counted. */
  readonly words: number;
  /** Those of forms that it has read before: they take a tenth of the time. */
  readonly knownWords: number;
  /** Expressions and sub-queries, counted as often as they are bound: a name that is used twice is bound twice. */
  readonly expressions: number;
  /** What is thrown where a statement is longer. */
  beyond(what: string, at: number, max: number): Error;
}

export function tooComplex(what: string, at: number, max: number): SqlError {
  return new SqlError(
    `The statement is too complex: ${what}, at most ${max} are taken`,
    at,
    SQLSTATE.programLimitExceeded,
  );
}

/** A statement longer than it is refused. */
export const FULL_EFFORT: Effort = {
  words: 50_000,
  knownWords: Infinity,
  expressions: 200_000,
  beyond: tooComplex,
};

/** Thrown where a statement is more than `QUICK_EFFORT`: no mistake of its author. */
export class LongStatement extends Error {}

/** About ten milliseconds. */
export const QUICK_EFFORT: Effort = quickEffort(400);

export function quickEffort(words: number): Effort {
  return {
    words,
    knownWords: 2.5 * words | 0,
    expressions: 2 * words,
    beyond: () => new LongStatement("the statement is long"),
  };
}
