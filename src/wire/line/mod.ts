/**
 * Line protocol: bytes → columns (`parseLines`, on any thread) → rows of a table (`fitToTable`, on the thread with the
 * catalogue).
 */
export type { LinePrecision } from "../../api.ts";
export { LineError } from "../../errors.ts";
export { buffersOf, free, KIND, type LineColumn, type LineTable } from "./columns.ts";
export { fitToTable } from "./fit.ts";
export { columnOf, columnsOf, type LineTypes, missingColumns, newTable } from "./schema.ts";
export { offsetOfLine, shownLine } from "./excerpts.ts";
export { LinePieces } from "./pieces.ts";
export { type ParsedLines, parseLines, type ParseOptions } from "./parser.ts";
