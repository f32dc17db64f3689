import { batchEntry } from "./batch-entry.ts";
import type { FunctionEntry } from "./entry.ts";

/** to_long128(): 128 bits of two LONGs. There is no type LONG128 here; a UUID holds the same bits. */
export const toLong128: FunctionEntry[] = [
  batchEntry(
    "to_long128",
    [{ name: "low", type: "LONG" }, { name: "high", type: "LONG" }],
    "UUID",
    "128 bits of two halves, as a UUID.",
    ([low, high], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        out.values[2 * row] = low.values[row];
        out.values[2 * row + 1] = high.values[row];
      }
    },
    [["to_long128(1, 2)", "00000000-0000-0002-0000-000000000001"]],
  ),
];
