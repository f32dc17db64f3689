/** Keywords with a typing error in them: `selekt 1`, `select * form t`. */
import { nearest } from "../nearest.ts";
import { CLASS_CHARACTERS, grammar, KEYWORDS } from "./grammar.ts";

/** The grammar takes up to 30 us a word, and each attempt reads the statement again. */
const PLACES_MAX = 100;
const KEYWORDS_TRIED_MAX = 3;

/** First words of statements that the grammar does not know. */
export const PLAIN_STATEMENTS = ["EXPLAIN", "BACKUP", "CANCEL", "DESCRIBE"];

/** Where the grammar stopped. */
export interface Stop {
  /** That the statement was read by. */
  rule: string;
  /** The statement, a character a token. */
  characters: string;
  /** Index in `characters`. */
  at: number;
}

/**
 * The place of a word, and the keyword that was meant: one with which the grammar gets further than it did. The word is the
 * one where it stopped, one of the two before it, which were taken for aliases, or the first one of the statement.
 */
export function misspeltKeyword(
  { rule, characters, at }: Stop,
  wordAt: (place: number) => string,
  statements: Record<string, string>,
): { place: number; keyword: string } | undefined {
  if (at > PLACES_MAX) return undefined;
  const isName = (place: number) => characters[place] === CLASS_CHARACTERS.name;
  const getsFurther = (start: string, place: number, keyword: string, by: string) => {
    // One more token than was read: more of the statement may have mistakes of its own.
    const mended = start + KEYWORDS.get(keyword)! + characters.slice(place + 1, at + 1);
    const result = grammar.match(mended, by);
    return result.succeeded() || (result as unknown as Stopped).getRightmostFailurePosition() > at;
  };
  if (isName(0) && rule === "queryStatement") {
    const keyword = nearest(wordAt(0), [...PLAIN_STATEMENTS, ...Object.keys(statements)]);
    if (keyword !== undefined) {
      const isOther = !(keyword in statements);
      if (isOther || getsFurther("", 0, keyword, statements[keyword])) return { place: 0, keyword };
    }
  }
  for (const place of [at - 2, at - 1, at]) {
    if (place < 0 || !isName(place)) continue;
    const known = new Set(KEYWORDS.keys());
    for (let tried = 0; tried < KEYWORDS_TRIED_MAX; tried++) {
      const keyword = nearest(wordAt(place), known);
      if (keyword === undefined) break;
      if (getsFurther(characters.slice(0, place), place, keyword, rule)) return { place, keyword };
      known.delete(keyword);
    }
  }
  return undefined;
}

interface Stopped {
  getRightmostFailurePosition(): number;
}
