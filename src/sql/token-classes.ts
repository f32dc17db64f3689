/** Classes of words and tokens that the grammar distinguishes. */
export const CLASSES = [
  "name",
  "number",
  "duration",
  "string",
  "parameter",
  "variable",
  "geohash",
  "items",
  "rows",
  "array",
] as const;
export type TokenClass = typeof CLASSES[number];

const CLASS_FROM = 0xe900;

/** The character of each class of tokens. */
export const CLASS_CHARACTERS = Object.fromEntries(
  CLASSES.map((name, index) => [name, String.fromCharCode(CLASS_FROM + index)]),
) as Record<TokenClass, string>;

/** Words that need quotes to be names. */
export const RESERVED =
  "SELECT FROM WHERE AND OR NOT IN IS BETWEEN LIKE ILIKE AS CASE WHEN THEN ELSE END JOIN ON UNION EXCEPT INTERSECT " +
  "LIMIT HAVING NULL TRUE FALSE DISTINCT WITH ORDER TABLE ALL OVER";
/** Words that can be names, but not aliases without AS, because a clause can begin with them at that position. */
export const CLAUSE =
  "GROUP SAMPLE LATEST ASOF LT SPLICE LEFT RIGHT INNER CROSS FULL OUTER WINDOW TOLERANCE ALIGN PARTITION " +
  "ASC DESC TO SET VALUES EXISTS CAST OFFSET RANGE ARRAY FETCH HORIZON PIVOT WITHIN INTO";
/** Like CLAUSE, except that they are allowed as aliases of tables, after which none of these clauses can begin. */
export const LOOSE =
  "BY FILL IGNORE RESPECT NULLS PRECEDING FOLLOWING DECLARE ROWS GROUPS CUMULATIVE EXCLUDE UNBOUNDED CURRENT NATURAL LATERAL " +
  "USING FILTER OPERATOR COLLATE ESCAPE OBSERVATION FOR UNTIL";

export const reservedWords = (): string[] => RESERVED.split(" ");
export const clauseWords = (): string[] => [...CLAUSE.split(" "), ...LOOSE.split(" ")];

/** Returns the word in upper case if it is reserved. */
export function reservedWord(text: string): string | undefined {
  if (text.length > RESERVED_LENGTH_MAX) return undefined;
  const word = text.toUpperCase();
  return RESERVED_WORDS.has(word) ? word : undefined;
}

const RESERVED_WORDS = new Set(RESERVED.split(" "));
const RESERVED_LENGTH_MAX = Math.max(...[...RESERVED_WORDS].map((word) => word.length));
