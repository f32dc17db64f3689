import { SqlError, SQLSTATE } from "../errors.ts";
import { readTokens } from "./lexer.ts";

/** Each takes memory while the text is carried out. */
const STATEMENTS_MAX = 1_000_000;

/** The statements of a text. They are made one by one, because there may be very many. */
export class Script {
  /** @param bounds from `boundsOf` the text */
  constructor(private readonly text: string, private readonly bounds: Uint32Array) {}

  get length(): number {
    return this.bounds.length / 2;
  }

  /** `at`: the offset in the text. */
  *[Symbol.iterator](): Generator<{ text: string; at: number }> {
    const { text, bounds } = this;
    for (let k = 0; k < bounds.length; k += 2) {
      yield { text: text.slice(bounds[k], bounds[k + 1]).trimEnd(), at: bounds[k]! };
    }
  }
}

/** Splits a text at its semicolons into statements and omits empty ones. Error positions are relative to `at` of the statement. */
export function splitScript(text: string): Script {
  return new Script(text, boundsOf(text));
}

/** The offsets of the statements of a text: start and end in turn. */
export function boundsOf(text: string): Uint32Array<ArrayBuffer> {
  const bounds: number[] = [];
  let start: number | undefined;
  readTokens(text, (token) => {
    if (token.kind === "semicolon" || token.kind === "end") {
      if (start !== undefined) bounds.push(start, token.at);
      start = undefined;
    } else if (start === undefined && bounds.length === 2 * STATEMENTS_MAX) {
      const message = `The text has too many statements: at most ${STATEMENTS_MAX} are allowed`;
      throw new SqlError(message, token.at, SQLSTATE.programLimitExceeded);
    } else start ??= token.at;
  });
  return Uint32Array.from(bounds);
}
