export { QuerySpill, removeSpilled, SPILL_UNIT_BYTES } from "./query-spill.ts";
