/** Line protocol: bytes → columns (`parseLines`, anywhere) → rows of a table (`fitToTable`, where the catalogue is). */
export { LineError } from "../../errors.ts";
export { KIND, type LineColumn, type LineTable } from "./columns.ts";
export { fitToTable, type LineTypes, missingColumns, newTable } from "./fit.ts";
export { offsetOfLine, shownLine } from "./places.ts";
export { type LinePrecision, type ParsedLines, parseLines } from "./parser.ts";
