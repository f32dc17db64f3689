/** How the row kernel writes the values of each type. */
import type { Code, Label } from "../../../wasm/assembler.ts";
import type { InstantFunctions } from "./instants.ts";
import type { NumberFunctions } from "../../../wasm/number-texts.ts";
import { COLUMN, HEAP, ROW } from "./program.ts";
import type { TextFunctions } from "./texts.ts";

const QUOTE = 0x22;
const EPOCH_2000_MICROS = 946_684_800_000_000n;
const NULL_32 = -2147483648, NULL_64 = -(2n ** 63n);

/** Locals of the function and the functions that it calls. */
export interface Scope {
  code: Code;
  at: number;
  /** The column's words. */
  column: number;
  /** The address of the value. */
  address: number;
  i32: number;
  i64: number;
  /** Where the program is. */
  program: number;
  /** Texts have to end before it. */
  limit: number;
  functions: Functions;
  missing: Label;
  stops: Label;
}

export interface Functions extends NumberFunctions, InstantFunctions, TextFunctions {
  /** (i32): its bytes in the opposite order. */
  swapped: number;
}

export interface Operation {
  width: number;
  /** Leaves the value's end on the stack, or `NOT_WRITTEN`, or branches. The address is that of the value. */
  write(scope: Scope): void;
}

/** What writes a value, by name. A program has their indices. */
export const OPERATIONS = {
  /** Always by JavaScript. */
  other: { width: 0, write: ({ code, stops }) => code.br(stops).i32(0) },
  int8: { width: 1, write: (scope) => integer(scope, "i64.load8_s") },
  int16: { width: 2, write: (scope) => integer(scope, "i64.load16_s") },
  int32: {
    width: 4,
    write: (scope) => {
      nullable32(scope);
      scope.code.get(scope.i32).op("i64.extend_i32_s").get(scope.at).call(scope.functions.long);
    },
  },
  int64: { width: 8, write: (scope) => (nullable64(scope), call64(scope, scope.functions.long)) },
  float32: { width: 4, write: (scope) => floating(scope, "f32", scope.functions.float) },
  float64: { width: 8, write: (scope) => floating(scope, "f64", scope.functions.double) },
  millis: instant("iso", 1_000),
  micros: instant("iso", 1_000_000),
  nanos: instant("iso", 1_000_000_000),
  pgMillis: instant("postgres", 1_000),
  pgMicros: instant("postgres", 1_000_000),
  pgNanos: instant("postgres", 1_000_000_000),
  text: { width: 8, write: text },
  symbol: {
    width: 4,
    write: (scope) => {
      const { code, i32, address, column, missing } = scope;
      code.get(address).memory("i32.load", 0, HEAP).tee(i32).i32(0).op("i32.lt_s").brIf(missing);
      code.get(column).memory("i32.load", 4 * COLUMN.entries).get(i32).i32(3).op("i32.shl").op("i32.add").set(address);
      text(scope);
    },
  },
  boolean: {
    width: 1,
    write: ({ code, address, at }) => {
      const [yes, no] = [0x65757274, 0x736c6166];
      code.get(address).memory("i32.load8_u", 0, HEAP).if(() => {
        code.get(at).i32(yes).memory("i32.store").get(at).i32(4).op("i32.add").set(at);
      }, () => {
        code.get(at).i32(no).memory("i32.store").get(at).i32("e".charCodeAt(0)).memory("i32.store8", 4);
        code.get(at).i32(5).op("i32.add").set(at);
      });
      code.get(at);
    },
  },
  booleanLetter: {
    width: 1,
    write: ({ code, address, at }) => {
      code.get(at).i32("t".charCodeAt(0)).i32("f".charCodeAt(0)).get(address).memory("i32.load8_u", 0, HEAP).op(
        "select",
      );
      code.memory("i32.store8").get(at).i32(1).op("i32.add");
    },
  },
  /** What may need an escape, and what is not ASCII, is left to the writer. */
  character: {
    width: 2,
    write: ({ code, address, at, i32, program, missing, stops }) => {
      code.get(address).memory("i32.load16_u", 0, HEAP).tee(i32).op("i32.eqz").brIf(missing);
      code.get(i32).i32(0x80).op("i32.ge_u").brIf(stops);
      code.get(i32).i32(0x20).op("i32.lt_u").get(i32).i32(QUOTE).op("i32.eq").op("i32.or");
      code.get(i32).i32(0x5c).op("i32.eq").op("i32.or");
      code.get(program).memory("i32.load", 4 * ROW.escapes).op("i32.and").brIf(stops);
      code.get(at).get(i32).memory("i32.store8").get(at).i32(1).op("i32.add");
    },
  },
  uuid: {
    width: 16,
    write: (scope) => {
      uuidOrNull(scope);
      scope.code.get(scope.address).get(scope.at).call(scope.functions.uuid);
    },
  },
  ipv4: {
    width: 4,
    write: ({ code, address, at, i32, missing, functions }) => {
      code.get(address).memory("i32.load", 0, HEAP).tee(i32).op("i32.eqz").brIf(missing);
      code.get(i32).get(at).call(functions.ipv4);
    },
  },
  bigEndian8: {
    width: 1,
    write: ({ code, address, at }) => {
      code.get(at).get(address).memory("i32.load8_u", 0, HEAP).i32(0).op("i32.ne").memory("i32.store8");
      code.get(at).i32(1).op("i32.add");
    },
  },
  bigEndian16: { width: 2, write: (scope) => bigEndian16(scope, "i32.load16_s") },
  /** A byte as an int16. */
  bigEndian16of8: { width: 1, write: (scope) => bigEndian16(scope, "i32.load8_s") },
  bigEndian32: { width: 4, write: (scope) => (nullable32(scope), bigEndian32(scope)) },
  bigEndian64: { width: 8, write: (scope) => (nullable64(scope), bigEndian64(scope)) },
  bigEndianFloat32: { width: 4, write: (scope) => (finiteBits(scope, 32), bigEndian32(scope)) },
  bigEndianFloat64: { width: 8, write: (scope) => (finiteBits(scope, 64), bigEndian64(scope)) },
  /** Microseconds since 2000. */
  bigEndianMicros: {
    width: 8,
    write: (scope) => {
      nullable64(scope);
      scope.code.get(scope.i64).i64(EPOCH_2000_MICROS).op("i64.sub").set(scope.i64);
      bigEndian64(scope);
    },
  },
  uuidBytes: {
    width: 16,
    write: (scope) => {
      uuidOrNull(scope);
      const { code, address, at, i64 } = scope;
      for (const half of [1, 0]) {
        code.get(address).memory("i64.load", 8 * half, HEAP).set(i64);
        bigEndian64(scope);
        if (half === 1) code.set(at);
      }
    },
  },
} satisfies Record<string, Operation>;

export type OperationName = keyof typeof OPERATIONS;

function integer({ code, address, at, functions }: Scope, load: string): void {
  code.get(address).memory(load, 0, HEAP).get(at).call(functions.long);
}

function nullable32({ code, address, i32, missing }: Scope): void {
  code.get(address).memory("i32.load", 0, HEAP).tee(i32).i32(NULL_32).op("i32.eq").brIf(missing);
}

function nullable64({ code, address, i64, missing }: Scope): void {
  code.get(address).memory("i64.load", 0, HEAP).tee(i64).i64(NULL_64).op("i64.eq").brIf(missing);
}

function finite({ code, address, missing }: Scope, type: "f32" | "f64"): void {
  const load = () => code.get(address).memory(`${type}.load`, 0, HEAP);
  load();
  load().op(`${type}.sub`);
  if (type === "f32") code.f32(0);
  else code.f64(0);
  code.op(`${type}.ne`).brIf(missing);
}

function floating(scope: Scope, type: "f32" | "f64", called: number): void {
  finite(scope, type);
  scope.code.get(scope.address).memory(`${type}.load`, 0, HEAP).get(scope.at).call(called);
}

/** Sets the local of this many bits. */
function finiteBits(scope: Scope, bits: 32 | 64): void {
  finite(scope, `f${bits}`);
  scope.code.get(scope.address).memory(`i${bits}.load`, 0, HEAP).set(scope[`i${bits}`]);
}

function uuidOrNull({ code, address, missing }: Scope): void {
  code.get(address).memory("i64.load", 0, HEAP).i64(NULL_64).op("i64.eq");
  code.get(address).memory("i64.load", 8, HEAP).i64(NULL_64).op("i64.eq").op("i32.and").brIf(missing);
}

function call64({ code, i64, at }: Scope, called: number): void {
  code.get(i64).get(at).call(called);
}

function instant(form: "iso" | "postgres", unit: number): Operation {
  return { width: 8, write: (scope) => (nullable64(scope), call64(scope, scope.functions[form][unit]!)) };
}

/** Of the pair at the address: where the text is, and its length, negative for NULL. */
function text({ code, address, at, i32, program, limit, missing, stops, functions }: Scope): void {
  code.get(address).memory("i32.load", 4, HEAP).tee(i32).i32(0).op("i32.lt_s").brIf(missing);
  code.get(i32).get(limit).get(at).op("i32.sub").op("i32.gt_s").brIf(stops);
  const copy = (called: number) => code.get(address).memory("i32.load", 0, HEAP).get(i32).get(at).call(called);
  code.get(program).memory("i32.load", 4 * ROW.escapes);
  code.if(() => copy(functions.copyUnescaped), () => copy(functions.copy), "i32");
}

function bigEndian16({ code, address, at, i32 }: Scope, load: string): void {
  code.get(address).memory(load, 0, HEAP).set(i32);
  code.get(at).get(i32).i32(8).op("i32.shr_u").memory("i32.store8");
  code.get(at).get(i32).memory("i32.store8", 1);
  code.get(at).i32(2).op("i32.add");
}

function bigEndian32({ code, at, i32, functions }: Scope): void {
  code.get(at).get(i32).call(functions.swapped).memory("i32.store").get(at).i32(4).op("i32.add");
}

function bigEndian64({ code, at, i64, functions }: Scope): void {
  code.get(at).get(i64).op("i32.wrap_i64").call(functions.swapped).memory("i32.store", 4);
  code.get(at).get(i64).i64(32n).op("i64.shr_u").op("i32.wrap_i64").call(functions.swapped).memory("i32.store");
  code.get(at).i32(8).op("i32.add");
}
