/** Formats values as text, for casts to STRING and VARCHAR and for replies. */
export * from "./numbers.ts";
export * from "./time.ts";
export { formatValue, intervalText } from "./value.ts";
