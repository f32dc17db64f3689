import { batchEntry } from "./batch-entry.ts";
import type { FunctionEntry } from "./entry.ts";
import { Pace } from "./pace.ts";

const MS_A_DAY = 86_400_000;

function msOf(text: string): number | undefined {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  if (parts === null) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(Number(parts[1]), Number(parts[2]) - 1, Number(parts[3]));
  // Date() would carry an invalid day or month over to the next one.
  return date.getUTCDate() === Number(parts[3]) && date.getTime() % MS_A_DAY === 0 ? date.getTime() : undefined;
}

/** to_pg_date(): parses PostgreSQL's text form of a date. */
export const toPgDate: FunctionEntry[] = [
  batchEntry(
    "to_pg_date",
    [{ name: "text", type: "text" }],
    "DATE",
    "The date of a text in the form yyyy-MM-dd; null for other texts.",
    ([column], out, rowCount, context) => {
      const pace = new Pace(context);
      for (let row = 0; row < rowCount; row++) {
        const text = column.text(row), ms = text === undefined ? undefined : msOf(text);
        if (ms === undefined) out.setNull(row);
        else out.values[row] = BigInt(ms);
        pace.spend(64 + (text?.length ?? 0));
      }
    },
    [["to_pg_date('2024-02-29')", "2024-02-29T00:00:00.000Z"], ["to_pg_date('2023-02-29')", null]],
  ),
];
