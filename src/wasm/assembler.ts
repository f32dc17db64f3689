/**
 * Assembles WebAssembly modules. Branches use labels, never counted depths:
 *
 *     code.block((done) => code.loop((next) => { …; code.brIf(done); …; code.br(next); }))
 *
 * Nothing is checked here: the engine validates the module on loading, and every emitter's test loads one.
 * @see https://webassembly.github.io/spec/core/binary/index.html
 */
import { assert } from "../assert.ts";
import { alignmentOf, OPCODE, PREFIX_ATOMIC } from "./opcodes.ts";

export type ValueType = "i32" | "i64" | "f32" | "f64" | "v128";

const VALUE_TYPE: Record<ValueType, number> = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b };
const NO_RESULT = 0x40;
/** Of a memory. */
export const PAGE_BYTES = 65_536;
/** In the alignment of a load or store. */
const HAS_MEMORY_INDEX = 0x40;

/** A branch target, valid only while its block is being written. */
export interface Label {
  readonly depth: number;
}

class Bytes {
  private buffer = new Uint8Array(512);
  length = 0;

  byte(value: number): this {
    if (this.length === this.buffer.length) this.grow(this.length + 1);
    this.buffer[this.length++] = value;
    return this;
  }

  bytes(values: ArrayLike<number>): this {
    const end = this.length + values.length;
    if (end > this.buffer.length) this.grow(end);
    this.buffer.set(values, this.length);
    this.length = end;
    return this;
  }

  private grow(length: number): void {
    let capacity = this.buffer.length;
    while (capacity < length) capacity *= 2;
    const larger = new Uint8Array(capacity);
    larger.set(this.buffer.subarray(0, this.length));
    this.buffer = larger;
  }

  /** LEB128, unsigned. */
  u32(value: number): this {
    let rest = value >>> 0;
    do {
      const low = rest & 0x7f;
      rest >>>= 7;
      this.byte(rest ? low | 0x80 : low);
    } while (rest);
    return this;
  }

  /** LEB128, signed. */
  s64(value: bigint): this {
    let rest = BigInt.asIntN(64, value);
    for (;;) {
      const low = Number(rest & 0x7fn);
      rest >>= 7n;
      if ((rest === 0n && !(low & 0x40)) || (rest === -1n && low & 0x40)) return this.byte(low);
      this.byte(low | 0x80);
    }
  }

  s32(value: number): this {
    let rest = value | 0;
    for (;;) {
      const low = rest & 0x7f;
      rest >>= 7;
      if ((rest === 0 && !(low & 0x40)) || (rest === -1 && low & 0x40)) return this.byte(low);
      this.byte(low | 0x80);
    }
  }

  name(text: string): this {
    const encoded = new TextEncoder().encode(text);
    return this.u32(encoded.length).bytes(encoded);
  }

  view(): Uint8Array {
    return this.buffer.subarray(0, this.length);
  }
}

const scratch = new DataView(new ArrayBuffer(16));
const scratchBytes = new Uint8Array(scratch.buffer);

/** The body of one function. Parameters are the first locals. */
export class Code {
  private readonly body = new Bytes();
  private readonly localTypes: ValueType[] = [];
  private depth = 0;

  constructor(readonly parameters: readonly ValueType[], readonly results: readonly ValueType[]) {}

  local(type: ValueType): number {
    return this.parameters.length + this.localTypes.push(type) - 1;
  }

  /** An instruction without immediates, by its text name. */
  op(name: string): this {
    const code = OPCODE.get(name);
    assert(code !== undefined, `no instruction ${name}`);
    const [prefix, number] = code;
    if (prefix === 0) this.body.byte(number);
    else this.body.byte(prefix).u32(number);
    return this;
  }

  /** A load or store at `offset` from the address on the stack, in the module's memory of this index. */
  memory(name: string, offset = 0, memory = 0): this {
    this.op(name);
    const atomic = OPCODE.get(name)![0] === PREFIX_ATOMIC;
    const alignment = atomic ? (name.startsWith("i64") ? 3 : 2) : alignmentOf(name);
    if (memory === 0) this.body.u32(alignment).u32(offset);
    else this.body.u32(alignment | HAS_MEMORY_INDEX).u32(memory).u32(offset);
    return this;
  }

  /** A load or store of one lane. */
  memoryLane(name: string, lane: number, offset = 0): this {
    this.op(name);
    this.body.u32(0).u32(offset).byte(lane);
    return this;
  }

  lane(name: string, lane: number): this {
    this.op(name);
    this.body.byte(lane);
    return this;
  }

  /** Selects the bytes `lanes` (0 … 31) of the two vectors on the stack. */
  shuffle(lanes: readonly number[]): this {
    this.op("i8x16.shuffle");
    this.body.bytes(lanes);
    return this;
  }

  get(local: number): this {
    this.body.byte(0x20).u32(local);
    return this;
  }

  set(local: number): this {
    this.body.byte(0x21).u32(local);
    return this;
  }

  tee(local: number): this {
    this.body.byte(0x22).u32(local);
    return this;
  }

  i32(value: number): this {
    this.body.byte(0x41).s32(value);
    return this;
  }

  i64(value: bigint): this {
    this.body.byte(0x42).s64(value);
    return this;
  }

  f32(value: number): this {
    scratch.setFloat32(0, value, true);
    this.body.byte(0x43).bytes(scratchBytes.subarray(0, 4));
    return this;
  }

  f64(value: number): this {
    scratch.setFloat64(0, value, true);
    this.body.byte(0x44).bytes(scratchBytes.subarray(0, 8));
    return this;
  }

  /** A constant with both 64-bit lanes equal. */
  splat64(value: bigint): this {
    this.op("v128.const");
    scratch.setBigInt64(0, value, true);
    scratch.setBigInt64(8, value, true);
    this.body.bytes(scratchBytes);
    return this;
  }

  /** A constant with all 32-bit lanes equal. */
  splat32(value: number): this {
    const lane = BigInt(value >>> 0);
    return this.splat64(BigInt.asIntN(64, lane << 32n | lane));
  }

  /** A constant with all bytes equal. */
  splat8(value: number): this {
    return this.splat64(BigInt.asIntN(64, 0x0101010101010101n * BigInt(value)));
  }

  splatF64(value: number): this {
    scratch.setFloat64(0, value, true);
    return this.splat64(scratch.getBigInt64(0, true));
  }

  /** A constant with the given 64-bit lanes. */
  lanes64(low: bigint, high: bigint): this {
    this.op("v128.const");
    scratch.setBigInt64(0, low, true);
    scratch.setBigInt64(8, high, true);
    this.body.bytes(scratchBytes);
    return this;
  }

  /** The instructions that `emit` has emitted for another function with the same locals, if `known` has them. They must not branch. */
  repeated(known: Map<number, Uint8Array>, key: number, emit: () => void): this {
    const bytes = known.get(key), start = this.body.length;
    if (bytes !== undefined) this.body.bytes(bytes);
    else {
      emit();
      known.set(key, this.body.view().slice(start));
    }
    return this;
  }

  call(functionIndex: number): this {
    this.body.byte(0x10).u32(functionIndex);
    return this;
  }

  memoryCopy(): this {
    this.body.byte(0xfc).u32(10).byte(0).byte(0);
    return this;
  }

  drop(): this {
    this.body.byte(0x1a);
    return this;
  }

  return(): this {
    this.body.byte(0x0f);
    return this;
  }

  private nested(opcode: number, result: ValueType | undefined, body: (label: Label) => void): this {
    this.body.byte(opcode).byte(result === undefined ? NO_RESULT : VALUE_TYPE[result]);
    body({ depth: ++this.depth });
    this.depth--;
    this.body.byte(0x0b);
    return this;
  }

  /** Branching to the label leaves the block. */
  block(body: (done: Label) => void, result?: ValueType): this {
    return this.nested(0x02, result, body);
  }

  /** Branching to the label restarts the body; reaching its end leaves the loop. */
  loop(body: (again: Label) => void): this {
    return this.nested(0x03, undefined, body);
  }

  /** Pops the i32 condition from the stack. */
  if(then: () => void, otherwise?: () => void, result?: ValueType): this {
    return this.nested(0x04, result, () => {
      then();
      if (otherwise !== undefined) {
        this.body.byte(0x05);
        otherwise();
      }
    });
  }

  br(label: Label): this {
    this.body.byte(0x0c).u32(this.depth - label.depth);
    return this;
  }

  brIf(label: Label): this {
    this.body.byte(0x0d).u32(this.depth - label.depth);
    return this;
  }

  /** Pops an index: branches to the label that it has in the list, or to `otherwise` if it has none. */
  brTable(labels: readonly Label[], otherwise: Label): this {
    this.body.byte(0x0e).u32(labels.length);
    for (const label of [...labels, otherwise]) this.body.u32(this.depth - label.depth);
    return this;
  }

  finish(): Uint8Array {
    assert(this.depth === 0);
    const all = new Bytes();
    all.u32(this.localTypes.length);
    for (const type of this.localTypes) all.u32(1).byte(VALUE_TYPE[type]);
    all.bytes(this.body.view()).byte(0x0b);
    return all.view();
  }
}

/** A memory that a module imports from `env`. */
export interface MemoryImport {
  name: string;
  /** Pages of 64 KiB of a memory that threads share. Undefined: a memory of one thread, of any size. */
  sharedPages?: number;
}

/**
 * The import of a shared memory that cannot grow. The module is for memories of just this size: then V8 keeps the size in a register, against which it
 * checks addresses. Otherwise it loads the size for each access, because another thread may have let the memory grow.
 */
export function sharedMemory({ buffer }: WebAssembly.Memory, name = "memory"): MemoryImport {
  return { name, sharedPages: buffer.byteLength / PAGE_BYTES };
}

/** A module that imports memories, and procedures of `env`, which get the first function indices. */
export class Module {
  private readonly functions: { code: Code; exported?: string }[] = [];

  constructor(
    private readonly memories: readonly MemoryImport[],
    private readonly procedures: readonly string[] = [],
  ) {}

  function(parameters: ValueType[], results: ValueType[], exported?: string): { code: Code; index: number } {
    const code = new Code(parameters, results);
    const index = this.procedures.length + this.functions.push({ code, exported }) - 1;
    return { code, index };
  }

  finish(): Uint8Array<ArrayBuffer> {
    const out = new Bytes();
    out.bytes([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
    const section = (id: number, write: (bytes: Bytes) => void) => {
      const bytes = new Bytes();
      write(bytes);
      out.byte(id).u32(bytes.length).bytes(bytes.view());
    };
    section(1, (bytes) => {
      bytes.u32(this.functions.length + 1);
      for (const { code } of this.functions) {
        bytes.byte(0x60);
        for (const types of [code.parameters, code.results]) {
          bytes.u32(types.length);
          for (const type of types) bytes.byte(VALUE_TYPE[type]);
        }
      }
      bytes.byte(0x60).u32(0).u32(0); // of procedures
    });
    section(2, (bytes) => {
      bytes.u32(this.memories.length + this.procedures.length);
      for (const { name, sharedPages } of this.memories) {
        bytes.name("env").name(name).byte(2);
        if (sharedPages === undefined) bytes.byte(0).u32(1);
        else bytes.byte(3).u32(sharedPages).u32(sharedPages);
      }
      for (const name of this.procedures) bytes.name("env").name(name).byte(0).u32(this.functions.length);
    });
    section(3, (bytes) => {
      bytes.u32(this.functions.length);
      this.functions.forEach((_, k) => bytes.u32(k));
    });
    section(7, (bytes) => {
      const exported = this.functions.flatMap((
        f,
        k,
      ) => (f.exported === undefined ? [] : [{ name: f.exported, index: k }]));
      bytes.u32(exported.length);
      for (const { name, index } of exported) bytes.name(name).byte(0).u32(this.procedures.length + index);
    });
    section(10, (bytes) => {
      bytes.u32(this.functions.length);
      for (const { code } of this.functions) {
        const body = code.finish();
        bytes.u32(body.length).bytes(body);
      }
    });
    return new Uint8Array(out.view());
  }
}
