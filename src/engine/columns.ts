/** Columns in shared memory: building, growing, gathering and reading them. */
export { fillNull, isNullAt } from "../types/mod.ts";
export { gather } from "./columns/gather.ts";
export { ColumnStore, NO_DICTIONARY, OutputColumns, sameDictionary } from "./columns/store.ts";
export { PairCache, TextArena } from "./columns/text-arena.ts";
export { compareText, endOfPickedTexts, endOfTexts, textPair } from "./columns/texts.ts";
export { fillConstant, markNotNull, repeatFirst, setValue, valueAt } from "./columns/values.ts";
export { POLL_ROWS, Workspace } from "./columns/workspace.ts";
