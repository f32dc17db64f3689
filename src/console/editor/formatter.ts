/** sql-formatter with the words of this dialect. */
import { type DialectOptions, formatDialect, postgresql } from "sql-formatter";

const { tokenizerOptions, formatOptions } = postgresql;

const DIALECT: DialectOptions = {
  name: "sundial",
  tokenizerOptions: {
    ...tokenizerOptions,
    reservedClauses: [...tokenizerOptions.reservedClauses, "SAMPLE BY", "LATEST ON", "LATEST BY", "ALIGN TO", "FILL"],
    // Durations: 1h, 15m, 10s.
    paramTypes: { ...tokenizerOptions.paramTypes, custom: [{ regex: String.raw`\d+[A-Za-z]+\b` }] },
    reservedJoins: [
      ...tokenizerOptions.reservedJoins,
      "ASOF JOIN",
      "LT JOIN",
      "SPLICE JOIN",
      "WINDOW JOIN",
      "HORIZON JOIN",
    ],
  },
  formatOptions,
};

export function format(text: string): string {
  return formatDialect(text, { dialect: DIALECT, keywordCase: "preserve", tabWidth: 2, linesBetweenQueries: 1 });
}
