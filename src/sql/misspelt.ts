/** Finds misspelt keywords: `selekt 1`, `select * form t`. */
import { nearest } from "../nearest.ts";
import { grammar, KEYWORDS } from "./grammar.ts";
import { QUERY_RULE } from "./statements/query.ts";
import { CLASS_CHARACTERS } from "./token-classes.ts";

/** The grammar takes up to 30 us for each word, and each attempt reads the statement again. */
const PLACES_MAX = 100;
const KEYWORDS_TRIED_MAX = 3;

/** First words of statements, and the rules of those that begin nothing else. */
export interface FirstWords {
  readonly words: readonly string[];
  readonly rules: Readonly<Record<string, string>>;
}

/** The position where the grammar stopped. */
export interface Stop {
  /** The rule that the statement was read by. */
  rule: string;
  /** The statement, one character for each token. */
  characters: string;
  /** Index in `characters`. */
  at: number;
}

/**
 * Returns the index of a misspelt word and the intended keyword: one with which the grammar gets further. Candidates
 * are the word where it stopped, the two words before it, which may have been taken for aliases, and the first word of
 * the statement.
 */
export function misspeltKeyword(
  { rule, characters, at }: Stop,
  wordAt: (place: number) => string,
  { words, rules }: FirstWords,
): { place: number; keyword: string } | undefined {
  if (at > PLACES_MAX) return undefined;
  const isName = (place: number) => characters[place] === CLASS_CHARACTERS.name;
  const getsFurther = (start: string, place: number, keyword: string, by: string) => {
    // Try one token more than was read, because the rest of the statement may contain further errors.
    const mended = start + KEYWORDS.get(keyword)! + characters.slice(place + 1, at + 1);
    const result = grammar.match(mended, by);
    return result.succeeded() || (result as unknown as Stopped).getRightmostFailurePosition() > at;
  };
  if (isName(0) && rule === QUERY_RULE) {
    const keyword = nearest(wordAt(0), words);
    if (keyword !== undefined) {
      if (!(keyword in rules) || getsFurther("", 0, keyword, rules[keyword])) return { place: 0, keyword };
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
