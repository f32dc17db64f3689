export { QuerySpill, removeSpilled } from "./query-spill.ts";
