import { batchEntry } from "./batch-entry.ts";
import type { BatchOut, FunctionContext, FunctionEntry } from "./entry.ts";
import { isNull, lengthBetween, NULL_RATE } from "./generators.ts";
import { Pace } from "./pace.ts";
import { TEXT_BYTES_MAX } from "./sizes.ts";

const LENGTH_DEFAULT = 32;

function fill(out: BatchOut, row: number, length: number, context: FunctionContext, pace: Pace): void {
  const bytes = out.makeText(row, length);
  for (let i = 0; i < length; i++) bytes[i] = context.random();
  pace.spend(4 * length + 16);
}

/** rnd_bin(): random bytes. */
export const rndBin: FunctionEntry[] = [
  batchEntry(
    "rnd_bin",
    [],
    "BINARY",
    `${LENGTH_DEFAULT} random bytes.`,
    (_, out, rowCount, context) => {
      const pace = new Pace(context);
      for (let row = 0; row < rowCount; row++) fill(out, row, LENGTH_DEFAULT, context, pace);
    },
    [["SELECT length(rnd_bin()) FROM long_sequence(1)", LENGTH_DEFAULT]],
    { volatility: "volatile" },
  ),
  batchEntry(
    "rnd_bin",
    [
      { name: "low", type: "LONG", constant: true },
      { name: "high", type: "LONG", constant: true },
      { name: "nullRate", type: "INT", constant: true },
    ],
    "BINARY",
    "From `low` to `high` random bytes. " + NULL_RATE,
    ([low, high, rate], out, rowCount, context) => {
      const pace = new Pace(context), least = Number(low.values[0]), most = Number(high.values[0]);
      for (let row = 0; row < rowCount; row++) {
        if (isNull(context, rate.values[0])) out.setNull(row);
        else fill(out, row, lengthBetween(context, least, most), context, pace);
      }
    },
    [["SELECT length(rnd_bin(5, 5, 0)) FROM long_sequence(1)", 5]],
    {
      volatility: "volatile",
      check: ([low, high, rate]) => {
        if (low === null || !(Number(low) >= 1)) {
          return { argument: 0, message: "expected at least 1 byte" };
        }
        if (high === null || Number(high) > TEXT_BYTES_MAX) {
          return { argument: 1, message: `at most ${TEXT_BYTES_MAX} bytes are allowed` };
        }
        if (Number(low) > Number(high)) return { message: "the lower bound is above the upper bound" };
        return rate === null || Number(rate) < 0
          ? { argument: 2, message: "the rate of nulls must not be negative" }
          : undefined;
      },
    },
  ),
];
