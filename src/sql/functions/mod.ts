/** The catalogue of functions: one list for the binder, `functions()`, the reference and the tests. */
import { assert } from "../../assert.ts";
import type { FunctionRegistry } from "../../engine/contract.ts";
import { aggregateFunctions } from "./aggregates.ts";
import { approximateFunctions } from "./approximate.ts";
import { argValues } from "./arg-values.ts";
import { arrayFunctions } from "./arrays.ts";
import { arithmeticFunctions } from "./arithmetic.ts";
import { batchAggregateFunctions } from "./batch-aggregates.ts";
import { castFunctions } from "./casts.ts";
import { comparisonFunctions } from "./comparison.ts";
import { conditionalFunctions } from "./conditional.ts";
import { decimalFunctions } from "./decimal.ts";
import type { FunctionEntry } from "./entry.ts";
import { createFindOverload, takesExactly } from "./overload.ts";
import { geographyFunctions } from "./geography.ts";
import { generatorFunctions } from "./generators.ts";
import { jsonFunctions } from "./json.ts";
import { metaFunctions } from "./meta.ts";
import { numericFunctions } from "./numeric.ts";
import { patternFunctions } from "./pattern.ts";
import { pgPostmasterStartTime } from "./pg-postmaster-start-time.ts";
import { randomWideFunctions } from "./random-wide.ts";
import { rndBin } from "./rnd-bin.ts";
import { rndInterval } from "./rnd-interval.ts";
import { rndLog } from "./rnd-log.ts";
import { rndLong256 } from "./rnd-long256.ts";
import { rndSymbolWeighted } from "./rnd-symbol-weighted.ts";
import { rndSymbolZipf } from "./rnd-symbol-zipf.ts";
import { serverCalls } from "./server-calls.ts";
import { statisticsFunctions } from "./statistics.ts";
import { textFunctions } from "./text.ts";
import { timeFunctions } from "./time.ts";
import { timePartFunctions } from "./time-parts.ts";
import { timeStepFunctions } from "./time-steps.ts";
import { timestampShuffle } from "./timestamp-shuffle.ts";
import { toLong128 } from "./to-long128.ts";
import { toPgDate } from "./to-pg-date.ts";
import { txidCurrent } from "./txid-current.ts";
import { wideFunctions } from "./wide.ts";
import { windowFunctions } from "./window.ts";

export { commonType, hasNanoseconds, type OverloadFailure } from "./overload.ts";
export type { FunctionEntry } from "./entry.ts";
export { functionId } from "./entry.ts";

export const FUNCTIONS: FunctionEntry[] = [
  ...arithmeticFunctions,
  ...comparisonFunctions,
  ...castFunctions,
  ...decimalFunctions,
  ...wideFunctions,
  ...arrayFunctions,
  ...geographyFunctions,
  ...conditionalFunctions,
  ...numericFunctions,
  ...timePartFunctions,
  ...timeStepFunctions,
  ...timeFunctions,
  ...textFunctions,
  ...patternFunctions,
  ...jsonFunctions,
  ...aggregateFunctions,
  ...batchAggregateFunctions,
  ...approximateFunctions,
  ...statisticsFunctions,
  ...windowFunctions,
  ...generatorFunctions,
  ...randomWideFunctions,
  ...rndBin,
  ...rndInterval,
  ...rndLog,
  ...rndLong256,
  ...rndSymbolWeighted,
  ...rndSymbolZipf,
  ...timestampShuffle,
  ...toLong128,
  ...toPgDate,
  ...txidCurrent,
  ...pgPostmasterStartTime,
  ...argValues,
  ...metaFunctions,
  ...serverCalls,
];

const BY_NAME = new Map<string, FunctionEntry[]>();
for (const entry of FUNCTIONS) {
  const list = BY_NAME.get(entry.name);
  if (list === undefined) BY_NAME.set(entry.name, [entry]);
  else list.push(entry);
}

/**
 * True for functions that the binder substitutes for what users write. Users cannot call them, because they do not
 * check their arguments again.
 */
export function isInternal(name: string): boolean {
  return /^(?:cast|nearest|assign|extract|decimal|json_extract)_|^array_(?:of|slice)$|^(?:timestamp_(?:floor|ceil)|dateadd|datediff|geo_distance_meters)_/i
    .test(name);
}

/** Names that statements can call, without operators. */
export function callableNames(): string[] {
  return [...BY_NAME.keys()].filter((name) => /^[a-z]\w*$/.test(name) && !isInternal(name));
}

/** True for functions that need no arguments: they may be called without parentheses, unless a column has that name. */
export function isCalledBare(name: string): boolean {
  return functionsNamed(name).some(({ args, table }) => args.length === 0 && !table) && !isInternal(name);
}

/** The overloads of a name, ignoring case; empty if there are none. */
export function functionsNamed(name: string): readonly FunctionEntry[] {
  return BY_NAME.get(name) ?? BY_NAME.get(name.toLowerCase()) ?? [];
}

/**
 * Finds the overload for a call. `types` are the arguments' tags, `constants` their values if constant. If `types[i]`
 * of the result differs, cast argument i to it with `cast_<TYPE>`.
 */
export const findOverload = createFindOverload(BY_NAME);

/** Resolves the function ids in plans. */
export function createRegistry(): FunctionRegistry {
  const resolved = new Map<string, { entry: FunctionEntry; types: string[] }>();
  return {
    resolve(id) {
      let found = resolved.get(id);
      if (found === undefined) {
        const open = id.indexOf("(");
        const name = id.slice(0, open);
        const types = splitTypes(id.slice(open + 1, -1));
        const entry = functionsNamed(name).find((candidate) => takesExactly(candidate, types));
        assert(entry !== undefined, `no function ${id}`);
        found = { entry, types };
        resolved.set(id, found);
      }
      return found;
    },
  };
}

/** For binder and planner. */
export const registry = createRegistry();

/** Splits "INT,GEOHASH(4c)" into its tags. */
function splitTypes(list: string): string[] {
  return list === "" ? [] : list.split(/,(?![^(]*\))/);
}
