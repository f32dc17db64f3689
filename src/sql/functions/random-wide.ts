/** Random values of types with parameters (geohashes, decimals, arrays), and random addresses of a network. */
import type { Value } from "../../types/mod.ts";
import { DECIMAL_PRECISION_MAX, decimalTag, GEOHASH_BITS_MAX, geohashTag } from "../../types/wide.ts";
import { grid, write as writeArray } from "./array-values.ts";
import { batchEntry } from "./batch-entry.ts";
import { write as writeDecimal } from "./decimal.ts";
import type { FunctionEntry } from "./entry.ts";
import { below, isNull, long, NULL_RATE, unit } from "./generators.ts";
import { readNetwork } from "./networks.ts";

const constant = (name: string, type = "INT") => ({ name, type, constant: true });
const VOLATILE: Partial<FunctionEntry> = { volatility: "volatile" };
const DIMENSIONS_MAX = 32;
const LENGTH_DEFAULT = 16;

type Fault = ReturnType<NonNullable<FunctionEntry["check"]>>;

/** The first negative argument from index `from` on. */
function negative(constants: readonly (Value | undefined)[], from: number): Fault {
  const argument = constants.findIndex((value, i) => i >= from && Number(value) < 0);
  return argument < 0 ? undefined : { argument, message: "it is negative" };
}

function checkArray(constants: readonly (Value | undefined)[]): Fault {
  const [dimensions, , longest = LENGTH_DEFAULT] = constants.map(Number);
  if (!(dimensions >= 1 && dimensions <= DIMENSIONS_MAX)) {
    return { argument: 0, message: `expected 1 to ${DIMENSIONS_MAX} dimensions` };
  }
  const lengths = constants.length - 3;
  if (lengths > 0 && lengths !== dimensions) {
    return {
      argument: lengths > dimensions ? 2 + lengths : 3,
      message: `expected ${dimensions} lengths, one for each dimension`,
    };
  }
  const none = constants.findIndex((value, k) => k >= 2 && (value === null || Number.isNaN(value)));
  if (none >= 0) return { argument: none, message: "it is null" };
  return negative(constants, 1) ??
    (lengths <= 0 && longest === 0 ? { argument: 2, message: "expected a length of 1 or more" } : undefined);
}

const decimal = ([precision, scale]: readonly (Value | undefined)[] = []): [precision: number, scale: number] => [
  Number(precision ?? 1),
  Number(scale ?? 0),
];

export const randomWideFunctions: FunctionEntry[] = [
  batchEntry(
    "rnd_geohash",
    [constant("bits")],
    (_, constants = []) => geohashTag(Number(constants[0] ?? 1)),
    "A random geohash with a number of bits.",
    ([bits], out, rowCount, context) => {
      for (let row = 0; row < rowCount; row++) {
        out.values[row] = BigInt.asUintN(bits.values[0], long(context));
        if ((row & 4095) === 4095) context.poll();
      }
    },
    [],
    {
      ...VOLATILE,
      check: ([bits]) =>
        Number(bits) >= 1 && Number(bits) <= GEOHASH_BITS_MAX
          ? undefined
          : { argument: 0, message: `expected 1 to ${GEOHASH_BITS_MAX} bits` },
    },
  ),
  batchEntry(
    "rnd_decimal",
    [constant("precision"), constant("scale"), constant("nullRate")],
    (_, constants) => decimalTag(...decimal(constants)),
    "A DECIMAL that is not negative. " + NULL_RATE,
    ([precision, , rate], out, rowCount, context) => {
      const limit = 10n ** BigInt(precision.values[0]);
      for (let row = 0; row < rowCount; row++) {
        let value = 0n;
        for (let words = 0; words < 4; words++) value = (value << 64n) | BigInt.asUintN(64, long(context));
        writeDecimal(out, row, isNull(context, rate.values[0]) ? undefined : value % limit, context.at);
        if ((row & 1023) === 1023) context.poll();
      }
    },
    [],
    {
      ...VOLATILE,
      check: (constants) => {
        const [precision, scale] = decimal(constants);
        if (constants[0] === null || !(precision >= 1 && precision <= DECIMAL_PRECISION_MAX)) {
          return { message: `expected a precision from 1 to ${DECIMAL_PRECISION_MAX}` };
        }
        if (constants[1] === null || !(scale >= 0 && scale <= precision)) {
          return { message: "expected a scale from 0 to the precision" };
        }
        return negative(constants, 2);
      },
    },
  ),
  batchEntry(
    "rnd_ipv4",
    [constant("network", "text"), constant("nullRate")],
    "IPv4",
    "An address of a network such as 10.0.0.0/8. " + NULL_RATE,
    ([network, rate], out, rowCount, context) => {
      const { address, mask } = readNetwork(network.text(0)!)!;
      for (let row = 0; row < rowCount; row++) {
        if (isNull(context, rate.values[0])) out.setNull(row);
        else out.values[row] = (address & mask) | (context.random() & ~mask);
        if ((row & 4095) === 4095) context.poll();
      }
    },
    [],
    {
      ...VOLATILE,
      check: (constants) =>
        typeof constants[0] === "string" && readNetwork(constants[0]) !== undefined
          ? negative(constants, 1)
          : { argument: 0, message: "expected a network such as 10.0.0.0/8" },
    },
  ),
  ...[[], [{ ...constant("nullRate, longest, length"), variadic: true }]].map((more) =>
    batchEntry(
      "rnd_double_array",
      [constant("dimensions"), ...more],
      (_, constants = []) => `DOUBLE${"[]".repeat(Number(constants[0] ?? 1))}`,
      `An array of numbers from 0 to 1, of which one in nullRate is null, if that is above 0. Its lengths are given, or random from 1 to longest (default ${LENGTH_DEFAULT}).`,
      ([dimensions, rate, longest, ...lengths], out, rowCount, context) => {
        const limit = longest?.values[0] ?? LENGTH_DEFAULT, nullRate = rate?.values[0] ?? 0;
        for (let row = 0; row < rowCount; row++) {
          const shape = lengths.length > 0
            ? lengths.map(({ values }) => values[0] as number)
            : Array.from({ length: dimensions.values[0] }, () => 1 + below(context, limit));
          const value = () => nullRate > 0 && context.random() % nullRate === 0 ? NaN : unit(context);
          writeArray(out, row, grid(shape, value, context));
          context.poll();
        }
      },
      [],
      { ...VOLATILE, check: checkArray },
    )
  ),
];
