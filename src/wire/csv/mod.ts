/**
 * CSV files: bytes → their format (`analyse`: delimiter, header and types, from the first lines) → rows of a table
 * (`parseCsv`, piece by piece, on any thread).
 */
export { analyse, type Analysis, type AnalysisOptions, type FoundColumn } from "./analysis.ts";
export { endOfCsvLines } from "./records.ts";
export { type CsvTarget, parseCsv, type ParsedCsv, type ParseOptions } from "./parser.ts";
