/** Parses text as values. */
export * from "./numbers.ts";
export * from "./time.ts";
export { parseIntervals } from "./interval.ts";
export { type ReadFailure, readValue } from "./values.ts";
