/**
 * Column types: the only place that knows a type's name, layout in memory and on disk, null, OID, order and texts.
 *
 * This is the lowest layer (it imports only errors), because storage, engine, SQL and wires all need it. In plans and
 * schemas a type is its **tag**: a string that compares with `===` and survives `postMessage` ("LONG", "SYMBOL",
 * "GEOHASH(4c)"). `typeOf(tag)` returns the entry.
 */
export { fillNull, fillNullBytes, isNullAt, nullTest, putValue, valueIn, type Views, viewsOver } from "./memory.ts";
export {
  ANY_NUMBER,
  type ColumnType,
  layoutOf,
  tagOfName,
  typeName,
  typeNames,
  typeOf,
  typeSpellings,
} from "./registry.ts";
export type { Form, Layout, Value } from "./layout.ts";
export { ARRAY_CONSTRUCTOR, LAYOUT_WIDTH, LONG_MAX, NULL_I32, NULL_I64, NULL_TEXT } from "./layout.ts";
