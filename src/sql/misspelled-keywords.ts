/** Finds misspelled keywords: `selekt 1`, `select * form t`. */
import { nearest } from "../nearest.ts";
import { grammar, KEYWORDS } from "./grammar.ts";
import { QUERY_RULE } from "./statements/query.ts";
import { CLASS_CHARACTERS } from "./token-classes.ts";

/** Limit on attempts. The grammar takes up to 30 us for each word, and each attempt reads the statement again. */
const PLACES_MAX = 100;
const KEYWORDS_TRIED_MAX = 3;

/** First words of statements, and the grammar rules of words that can only begin a statement. */
export interface FirstWords {
  readonly words: readonly string[];
  readonly rules: Readonly<Record<string, string>>;
}

/** The position where the grammar stopped. */
export interface Stop {
  /** The rule that read the statement. */
  rule: string;
  /** The statement, one character for each token. */
  characters: string;
  /** Index in `characters`. */
  at: number;
}

/**
 * Returns the index of a misspelled word and the intended keyword: one with which the grammar gets further. Candidates
 * are the word where it stopped, the two words before it, which may have been taken for aliases, and the first word of
 * the statement.
 */
export function misspelledKeyword(
  { rule, characters, at }: Stop,
  wordAt: (index: number) => string,
  { words, rules }: FirstWords,
): { index: number; keyword: string } | undefined {
  if (at > PLACES_MAX) return undefined;
  const isName = (index: number) => characters[index] === CLASS_CHARACTERS.name;
  const getsFurther = (start: string, index: number, keyword: string, by: string) => {
    // Try one token more than was read, because the rest of the statement may contain further errors.
    const mended = start + KEYWORDS.get(keyword)! + characters.slice(index + 1, at + 1);
    const result = grammar.match(mended, by);
    return result.succeeded() || (result as unknown as Stopped).getRightmostFailurePosition() > at;
  };
  if (isName(0) && rule === QUERY_RULE) {
    const keyword = nearest(wordAt(0), words);
    if (keyword !== undefined && keyword !== wordAt(0).toUpperCase()) {
      if (!(keyword in rules) || getsFurther("", 0, keyword, rules[keyword]!)) return { index: 0, keyword };
    }
  }
  for (const index of [at - 2, at - 1, at]) {
    if (index < 0 || !isName(index)) continue;
    const known = new Set(KEYWORDS.keys());
    for (let tried = 0; tried < KEYWORDS_TRIED_MAX; tried++) {
      const keyword = nearest(wordAt(index), known);
      if (keyword === undefined) break;
      // Short words have no letter too many: XOR is an alias, not a misspelled OR.
      if (keyword.length < wordAt(index).length && wordAt(index).length <= 3) {
        known.delete(keyword);
        continue;
      }
      if (getsFurther(characters.slice(0, index), index, keyword, rule)) return { index, keyword };
      known.delete(keyword);
    }
  }
  return undefined;
}

interface Stopped {
  getRightmostFailurePosition(): number;
}
