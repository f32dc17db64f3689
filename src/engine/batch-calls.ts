/** The environment of batch functions: their arguments, their result, and the query. */
import { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "../sql/functions/entry.ts";
import type { Dictionary } from "../storage/contract.ts";
import { ARRAY_CONSTRUCTOR, fillNull, layoutOf, nullTest, typeOf, type Value } from "../types/mod.ts";
import type { TextArena } from "./columns.ts";
import type { QueryContext } from "./contract.ts";

/** The name in memory errors of what makes strings of arguments. */
const OPERATOR = "a function";

/** The environment of a call. */
export function functionContext(
  context: QueryContext,
  { function: id, at }: { function: string; at: number },
): FunctionContext {
  const name = `${id.slice(0, id.indexOf("("))}()`;
  return {
    heap: context.heap,
    memory: {
      need: (sizeBytes) => context.memory.need(sizeBytes, name),
      keep: (sizeBytes) => context.memory.account(sizeBytes, name),
    },
    nowMicros: context.nowMicros,
    random: context.random,
    at,
    poll: () => context.poll(),
    user: context.user,
    rowOffset: 0,
    state: new Map(),
  };
}

const encoder = new TextEncoder();
/** Functions poll after a number of rows, but a single row can be long. */
const LONG_TEXT_BYTES = 4_096;
/** Copying such texts is cheaper than counting their bytes first. */
const SHORT_TEXT_UNITS = 4_096;
const shortText = new Uint8Array(3 * SHORT_TEXT_UNITS);
/** ASCII texts of fewer units are encoded here, because an encoder's call costs more. */
const FEW_UNITS = 64;

/** The bytes of a short text, valid until the next call. */
function encodedShort(text: string): Uint8Array {
  let end = 0;
  if (text.length <= FEW_UNITS) {
    for (; end < text.length; end++) {
      const unit = text.charCodeAt(end);
      if (unit > 127) break;
      shortText[end] = unit;
    }
  }
  return shortText.subarray(0, end === text.length ? end : encoder.encodeInto(text, shortText).written);
}
/** JavaScript's heap is not covered by the query's limit, so a string may take only a small part of it. */
const STRING_BYTES_MAX = 64 << 20;

/** Called before a text of this many bytes becomes a JavaScript string. SQLSTATE 54000 if it is too long. */
function beforeString(context: QueryContext, length: number): void {
  context.poll();
  if (length > STRING_BYTES_MAX) {
    throw new SqlError(
      `a text of ${length} bytes is too long for this function: at most ${STRING_BYTES_MAX} are allowed`,
      0,
      SQLSTATE.programLimitExceeded,
    );
  }
  context.memory.need(2 * length, OPERATOR);
}
const ELEMENTS: Record<string, number> = { i128: 2, i256: 4, text: 2 };

/**
 * A view of a column for a batch function. `tag`: the type for which the function was resolved; `type`: the type in
 * memory.
 */
export function batchColumn(
  context: QueryContext,
  tag: string,
  type: string,
  address: number,
  rowCount: number,
  constant: Value | undefined,
  isConstant: boolean,
  dictionary?: Dictionary,
): BatchColumn {
  const { heap } = context;
  const layout = layoutOf(type);
  const values = typedView(heap.buffer, type, address, rowCount);
  const pairs = address >>> 2;
  return {
    type: tag,
    address,
    values,
    constant,
    isConstant,
    dictionary,
    isNull: nullTest(heap, type, address),
    bytes(row) {
      assert(layout === "text");
      const length = heap.i32[pairs + row * 2 + 1];
      if (length < 0) return undefined;
      const at = heap.u32[pairs + row * 2];
      return heap.u8.subarray(at, at + length);
    },
    text(row) {
      assert(layout === "text");
      const length = heap.i32[pairs + row * 2 + 1];
      if (length < 0) return undefined;
      if (length > LONG_TEXT_BYTES) beforeString(context, length);
      return heap.text(heap.u32[pairs + row * 2], length);
    },
  };
}

function typedView(buffer: ArrayBufferLike, type: string, address: number, rowCount: number) {
  const layout = layoutOf(type);
  if (typeOf(type).form === "u16") return new Uint16Array(buffer, address, rowCount);
  return new ARRAY_CONSTRUCTOR[layout](buffer as ArrayBuffer, address, rowCount * (ELEMENTS[layout] ?? 1));
}

/** An output column for a batch function. */
export function batchOut(
  context: QueryContext,
  type: string,
  address: number,
  rowCount: number,
  arena: TextArena,
): BatchOut {
  const { heap } = context;
  const pairs = address >>> 2;
  const placeText = (row: number, length: number): number => {
    if (length > LONG_TEXT_BYTES) {
      context.beforeText?.(length);
      context.poll();
    }
    const at = arena.reserve(length);
    heap.u32[pairs + row * 2] = at;
    heap.i32[pairs + row * 2 + 1] = length;
    return at;
  };
  const makeText = (row: number, length: number): Uint8Array => {
    const at = placeText(row, length);
    return heap.u8.subarray(at, at + length);
  };
  return {
    type,
    address,
    values: typedView(heap.buffer, type, address, rowCount),
    setText(row, value) {
      if (value === undefined) {
        heap.i32[pairs + row * 2] = 0;
        heap.i32[pairs + row * 2 + 1] = -1;
      } else if (typeof value === "string" && value.length > SHORT_TEXT_UNITS) {
        encoder.encodeInto(value, makeText(row, Buffer.byteLength(value)));
      } else {
        const bytes = typeof value === "string" ? encodedShort(value) : value;
        heap.u8.set(bytes, placeText(row, bytes.length));
      }
    },
    makeText,
    placeText,
    reserve: (sizeBytes) => arena.reserve(sizeBytes),
    giveBack: (sizeBytes) => arena.giveBack(sizeBytes),
    setView(row, at, length) {
      heap.u32[pairs + row * 2] = at;
      heap.i32[pairs + row * 2 + 1] = length;
    },
    setNull(row) {
      fillNull(heap, type, address, row, 1);
    },
  };
}

/** After a batch function with the null rule "propagate": sets null where an argument is null. */
export function propagateNulls(
  context: QueryContext,
  columns: readonly BatchColumn[],
  out: BatchOut,
  rowCount: number,
): void {
  const { heap } = context;
  for (const column of columns) {
    if (!typeOf(column.type).nullable) continue;
    for (let row = 0; row < rowCount; row++) {
      if (column.isNull(row)) fillNull(heap, out.type, out.address, row, 1);
    }
  }
}
