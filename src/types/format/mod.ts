/** Formats values as text, for casts to STRING and VARCHAR and for replies. */
export * from "./numbers.ts";
export * from "./time.ts";
export { formatValue } from "./value.ts";
export { intervalText } from "../text-forms.ts";
