/** Line protocol: bytes → columns (`parseLines`) → rows of a table (`fitToTable`), on any thread. */
export type { LinePrecision } from "../../api.ts";
export { LineError } from "../../errors.ts";
export { buffersOf, free, type LineTable, outlineOf, type TableOutline } from "./columns.ts";
export { fitToTable } from "./fit.ts";
export { columnOf, columnsOf, type LineTypes, missingColumns, newTable } from "./schema.ts";
export { offsetOfLine, shownLine } from "./excerpts.ts";
export { LinePieces } from "./pieces.ts";
export { type ParsedLines, parseLines, type ParseOptions, parseTexts } from "./parser.ts";
