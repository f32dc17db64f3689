import { batchEntry } from "./batch-entry.ts";
import type { FunctionEntry } from "./entry.ts";
import { unit } from "./generators.ts";

/** The end of the times, 2038-01-19. */
const MICROS_MAX = 2 ** 31 * 1e6;

/** rnd_interval(): random intervals. */
export const rndInterval: FunctionEntry[] = [
  batchEntry(
    "rnd_interval",
    [],
    "INTERVAL",
    "An interval between 1970 and 2038.",
    (_, out, rowCount, context) => {
      for (let row = 0; row < rowCount; row++) {
        const a = BigInt(Math.floor(unit(context) * MICROS_MAX)), b = BigInt(Math.floor(unit(context) * MICROS_MAX));
        out.values[2 * row] = a < b ? a : b;
        out.values[2 * row + 1] = a < b ? b : a;
        if ((row & 4095) === 4095) context.poll();
      }
    },
    [["SELECT interval_end(rnd_interval()) < '2039' FROM long_sequence(1)", true]],
    { volatility: "volatile" },
  ),
];
