/** Parses text as values. */
export * from "./numbers.ts";
export * from "./time.ts";
export { readParameter } from "./parameter.ts";
export { notOf, type ReadFailure, readValue } from "./values.ts";
