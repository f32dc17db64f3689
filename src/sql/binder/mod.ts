/** The binder: syntax trees to typed plans. */
export type { BindContext } from "./context.ts";
export { bind, type Bound } from "./statements.ts";
