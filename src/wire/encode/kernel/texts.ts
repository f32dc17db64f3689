/** Functions of the row kernel that write texts, see `numbers.ts`. */
import type { Module } from "../../../wasm/assembler.ts";
import { Digits, NOT_WRITTEN } from "../../../wasm/number-texts.ts";
import { HEAP, type TableViews } from "./program.ts";

const MINUS = 0x2d, POINT = 0x2e, QUOTE = 0x22, BACKSLASH = 0x5c, BLANK = 0x20;
const BLOCK_BYTES = 16;

/** The two hexadecimal digits of each byte. */
export const TEXT_TABLE_BYTES = 512;

/** Writes what the functions read, at a multiple of 8. */
export function writeTextTables({ u8 }: TableViews, address: number): void {
  for (let byte = 0; byte < 256; byte++) {
    u8.set(new TextEncoder().encode(byte.toString(16).padStart(2, "0")), address + 2 * byte);
  }
}

export interface TextFunctions {
  /** (from, length, at): the bytes as they are. Writes nothing behind them. */
  copy: number;
  /** The same, or `NOT_WRITTEN` if a byte has to be escaped in JSON or CSV. */
  copyUnescaped: number;
  /** (address, at) */
  uuid: number;
  /** (i32, at) */
  ipv4: number;
}

/** `table`: the address of `writeTextTables`. */
export function textFunctions(module: Module, table: number): TextFunctions {
  return {
    copy: copyFunction(module, false),
    copyUnescaped: copyFunction(module, true),
    uuid: uuidFunction(module, table),
    ipv4: ipv4Function(module),
  };
}

/** Reads only the text, because the memory may end behind it. The last block and the one before overlap. */
function copyFunction(module: Module, looks: boolean): number {
  const { code, index } = module.function(["i32", "i32", "i32"], ["i32"]);
  const [from, length, at] = [0, 1, 2];
  const end = code.local("i32"), behind = code.local("i32"), block = code.local("v128");
  const first = code.local("i64"), last = code.local("i64");
  const returnIfSpecial = () => {
    if (!looks) return;
    code.get(block).splat8(QUOTE).op("i8x16.eq").get(block).splat8(BACKSLASH).op("i8x16.eq").op("v128.or");
    code.get(block).splat8(BLANK).op("i8x16.lt_u").op("v128.or").op("v128.any_true");
    code.if(() => code.i32(NOT_WRITTEN).return());
  };
  code.get(at).get(length).op("i32.add").set(end);
  code.get(from).get(length).op("i32.add").set(behind);
  code.get(length).i32(BLOCK_BYTES).op("i32.ge_u").if(() => {
    code.loop((again) => {
      code.get(at).get(from).memory("v128.load", 0, HEAP).tee(block).memory("v128.store");
      returnIfSpecial();
      code.get(at).i32(BLOCK_BYTES).op("i32.add").set(at);
      code.get(from).i32(BLOCK_BYTES).op("i32.add").tee(from);
      code.get(behind).i32(BLOCK_BYTES).op("i32.sub").op("i32.le_u").brIf(again);
    });
    code.get(end).i32(BLOCK_BYTES).op("i32.sub");
    code.get(behind).i32(BLOCK_BYTES).op("i32.sub").memory("v128.load", 0, HEAP).tee(block).memory("v128.store");
    returnIfSpecial();
    code.get(end).return();
  });
  const returnCopied = (load: string, store: string, bytes: number) => {
    code.get(from).memory(load, 0, HEAP).set(first);
    code.get(behind).i32(bytes).op("i32.sub").memory(load, 0, HEAP).set(last);
    code.get(first).op("i64x2.splat").get(last).lane("i64x2.replace_lane", 1);
    // What narrower loads leave empty is no character.
    if (bytes < 8) code.splat64(0x6161616161616161n << BigInt(8 * bytes)).op("v128.or");
    code.set(block);
    returnIfSpecial();
    code.get(at).get(first).memory(store);
    code.get(end).i32(bytes).op("i32.sub").get(last).memory(store);
    code.get(end).return();
  };
  code.get(length).i32(8).op("i32.ge_u").if(() => returnCopied("i64.load", "i64.store", 8));
  code.get(length).i32(4).op("i32.ge_u").if(() => returnCopied("i64.load32_u", "i64.store32", 4));
  code.get(length).i32(2).op("i32.ge_u").if(() => returnCopied("i64.load16_u", "i64.store16", 2));
  code.get(length).if(() => returnCopied("i64.load8_u", "i64.store8", 1));
  code.get(end);
  return index;
}

/** The bytes of the value from the last to the first. */
function uuidFunction(module: Module, table: number): number {
  const { code, index } = module.function(["i32", "i32"], ["i32"]);
  const [value, at] = [0, 1];
  let offset = 0;
  for (let byte = 15; byte >= 0; byte--, offset += 2) {
    code.get(at).get(value).memory("i32.load8_u", byte, HEAP).i32(1).op("i32.shl").memory("i32.load16_u", table);
    code.memory("i32.store16", offset);
    if (byte === 12 || byte === 10 || byte === 8 || byte === 6) {
      code.get(at).i32(MINUS).memory("i32.store8", offset + 2);
      offset++;
    }
  }
  code.get(at).i32(offset).op("i32.add");
  return index;
}

function ipv4Function(module: Module): number {
  const { code, index } = module.function(["i32", "i32"], ["i32"]);
  const digits = new Digits(code);
  const [value, at] = [0, 1];
  for (let shift = 24; shift >= 0; shift -= 8) {
    code.get(value).i32(shift).op("i32.shr_u").i32(255).op("i32.and");
    digits.put(at);
    if (shift > 0) code.get(at).i32(POINT).memory("i32.store8").get(at).i32(1).op("i32.add").set(at);
  }
  code.get(at);
  return index;
}
