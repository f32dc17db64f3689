/** Statements that are nearly right: words are exchanged, left out, doubled or made extreme. */
import type { Random } from "./random.ts";

/** Words, approximately as in the lexer. */
export const WORD = /'(?:[^']|'')*'|"[^"]*"|[A-Za-z_]\w*|\d[\w.]*|::|<=|>=|!=|<>|\|\||\s+|[^]/g;

const STRANGE = [
  "''",
  "null",
  "NaN",
  "9223372036854775807",
  "-9223372036854775808",
  "99999999999999999999999999999999999999999999",
  "1e400",
  "0.0000000000000000000000000001m",
  "'\u{10ffff}\u202e\0'",
  `'${"x".repeat(2_000)}'`,
  "long_sequence(9223372036854775807)",
  "(select 1)",
  "over ()",
  "over (partition by 1 order by 1)",
  "sample by 1n fill(prev)",
  "latest on ts partition by s",
  "limit -9223372036854775807",
  "asof join",
  "::double[]",
  "[1:2, -1]",
  "in ('2024;1d;1d;100000')",
  "union all",
  "distinct",
  "*",
  "(",
  ")",
  "((((((((((",
  ",",
  ";",
  "--",
  "/*",
  "$1",
  "@x",
  "#u33d8b12",
  "within",
  "cast(",
  "as symbol",
  "case when",
  "end",
];

/** Makes one or two changes to a statement, using words of another one. */
export function broken(random: Random, sql: string, other: string): string {
  const words = sql.match(WORD) ?? [];
  const others = other.match(WORD) ?? [""];
  for (let changes = 1 + random.below(2); changes > 0; changes--) {
    const at = random.below(words.length + 1), to = random.below(words.length + 1);
    switch (random.below(8)) {
      case 0:
        words.splice(at, 1 + random.below(3));
        break;
      case 1:
        words.splice(at, 0, words[to] ?? "");
        break;
      case 2:
        if (at < words.length && to < words.length) [words[at], words[to]] = [words[to], words[at]];
        break;
      case 3:
        words.splice(at, 1, random.of(STRANGE));
        break;
      case 4:
        words.splice(at, 0, " ", random.of(STRANGE), " ");
        break;
      case 5: {
        const from = random.below(others.length);
        words.splice(at, random.below(4), ...others.slice(from, from + 1 + random.below(8)));
        break;
      }
      case 6:
        words.length = Math.min(words.length, at);
        break;
      default:
        words.splice(at, 0, ...words.slice(Math.min(at, to), Math.max(at, to)));
    }
    if (words.length > 2_000) words.length = 2_000;
  }
  return words.join("");
}
