/** Line protocol: bytes → columns (`parseLines`, anywhere) → rows of a table (`fitToTable`, where the catalogue is). */
export type { LinePrecision } from "../../api.ts";
export { LineError } from "../../errors.ts";
export { KIND, type LineColumn, type LineTable } from "./columns.ts";
export { fitToTable, type LineTypes, missingColumns, newTable } from "./fit.ts";
export { offsetOfLine, shownLine } from "./places.ts";
export { LinePieces } from "./pieces.ts";
export { type ParsedLines, parseLines, type ParseOptions } from "./parser.ts";
