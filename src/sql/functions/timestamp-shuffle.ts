import { NULL_I64 } from "../../types/mod.ts";
import { batchEntry } from "./batch-entry.ts";
import type { FunctionEntry } from "./entry.ts";
import { long } from "./generators.ts";

/** timestamp_shuffle(): times in random order. */
export const timestampShuffle: FunctionEntry[] = ["TIMESTAMP", "TIMESTAMP_NS"].map((type) =>
  batchEntry(
    "timestamp_shuffle",
    [{ name: "low", type, constant: true }, { name: "high", type, constant: true }],
    type,
    "A random time between two times, in either order.",
    ([low, high], out, rowCount, context) => {
      const a = low.values[0] as bigint, b = high.values[0] as bigint;
      const [least, most] = a < b ? [a, b] : [b, a], hasNull = least === NULL_I64;
      for (let row = 0; row < rowCount; row++) {
        out.values[row] = hasNull ? NULL_I64 : least + BigInt.asUintN(64, long(context)) % (most - least + 1n);
        if ((row & 4095) === 4095) context.poll();
      }
    },
    type === "TIMESTAMP"
      ? [[
        "SELECT timestamp_shuffle('2024-01-01', '2024-01-01') FROM long_sequence(1)",
        "2024-01-01T00:00:00.000000Z",
      ]]
      : [],
    { volatility: "volatile" },
  )
);
