import { batchEntry } from "./batch-entry.ts";
import type { FunctionEntry } from "./entry.ts";
import { isNull, long, NULL_RATE } from "./generators.ts";

/** rnd_long256(): random LONG256s. */
export const rndLong256: FunctionEntry[] = [false, true].map((mayBeNull) =>
  batchEntry(
    "rnd_long256",
    mayBeNull ? [{ name: "nullRate", type: "INT", constant: true }] : [],
    "LONG256",
    mayBeNull ? "Any LONG256. " + NULL_RATE : "Any LONG256.",
    ([rate], out, rowCount, context) => {
      for (let row = 0; row < rowCount; row++) {
        if (mayBeNull && isNull(context, rate.values[0])) out.setNull(row);
        else for (let word = 0; word < 4; word++) out.values[4 * row + word] = long(context);
        if ((row & 4095) === 4095) context.poll();
      }
    },
    mayBeNull ? [] : [["SELECT length(rnd_long256()::string) > 2 FROM long_sequence(1)", true]],
    {
      volatility: "volatile",
      check: ([rate]) =>
        rate === null || Number(rate ?? 0) < 0
          ? { argument: 0, message: "the rate of nulls must not be negative" }
          : undefined,
    },
  )
);
