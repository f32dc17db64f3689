/** Values as text, as casts to STRING and VARCHAR give it and as replies print it. */
export * from "./numbers.ts";
export * from "./time.ts";
export { formatValue, intervalText } from "./value.ts";
