/**
 * Kernels over the texts of a column: pairs of address and length in shared memory, negative for NULL. They look at 16 bytes at once. JavaScript
 * takes 1.2 ns a byte.
 */
import { type Code, Module, sharedMemory } from "../../wasm/assembler.ts";

export interface TextKernels {
  /**
   * Writes a byte for each of the rows from … to-1: 1 if its text contains the `length` > 0 bytes at `part`. With `ignoresCase`, ASCII letters
   * of the part also match those of the other case. Stops at a text of more than `TESTED_BYTES_MAX`, and returns its row, or `to`.
   */
  contains(
    pairs: number,
    from: number,
    to: number,
    out: number,
    part: number,
    length: number,
    ignoresCase: number,
  ): number;
  /** Writes the number of characters of each row's text as i32, -1 for NULL. `beyond`: what one beyond U+FFFF counts. */
  length(pairs: number, from: number, to: number, out: number, beyond: number): void;
}

/** A test of a longer text would take too long without a look at whether the query is cancelled. */
export const TESTED_BYTES_MAX = 65_536;
const LANES = 16;
/** Of a letter's code. */
const LOWER_CASE = 32;

const kernels = new WeakMap<WebAssembly.Memory, TextKernels>();

export function textKernels(memory: WebAssembly.Memory): TextKernels {
  let known = kernels.get(memory);
  if (known === undefined) {
    const module = new Module([sharedMemory(memory)]);
    addContains(module, memory.buffer.byteLength);
    addLength(module);
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module.finish()), { env: { memory } });
    kernels.set(memory, known = exports as unknown as TextKernels);
  }
  return known;
}

/** Calls `body` for the rows from … to-1. `pair`: the address of the row's pair. */
function eachRow(code: Code, pairs: number, row: number, to: number, body: (pair: number) => void): void {
  const pair = code.local("i32");
  code.get(pairs).get(row).i32(3).op("i32.shl").op("i32.add").set(pair);
  code.block((done) =>
    code.loop((again) => {
      code.get(row).get(to).op("i32.ge_u").brIf(done);
      body(pair);
      code.get(pair).i32(8).op("i32.add").set(pair);
      code.get(row).i32(1).op("i32.add").set(row).br(again);
    })
  );
}

/**
 * Looks for positions with the first and the last byte of the part, and compares the bytes between.
 * @see http://0x80.pl/articles/simd-strfind.html
 */
function addContains(module: Module, memoryBytes: number): void {
  const equals = addEquals(module);
  const { code } = module.function(["i32", "i32", "i32", "i32", "i32", "i32", "i32"], ["i32"], "contains");
  const [pairs, row, to, out, part, length, ignoresCase] = [0, 1, 2, 3, 4, 5, 6];
  const at = code.local("i32"), last = code.local("i32"), bytes = code.local("i32"), found = code.local("i32");
  const candidates = code.local("i32"),
    ends = [0, 1].map(() => ({ byte: code.local("v128"), bit: code.local("v128") }));
  // The last byte's offset.
  code.get(length).i32(1).op("i32.sub").set(length);
  ends.forEach(({ byte, bit }, k) => {
    const load = () => {
      code.get(part);
      if (k === 1) code.get(length).op("i32.add");
      code.memory("i32.load8_u");
    };
    caseBit(code, load, ignoresCase);
    code.op("i8x16.splat").set(bit);
    load();
    code.op("i8x16.splat").get(bit).op("v128.or").set(byte);
  });
  const isEnd = ({ byte, bit }: typeof ends[number], load: () => Code) => {
    load().memory("v128.load").get(bit).op("v128.or").get(byte).op("i8x16.eq");
  };
  eachRow(code, pairs, row, to, (pair) => {
    code.get(pair).memory("i32.load", 4).tee(bytes).i32(TESTED_BYTES_MAX).op("i32.gt_s").if(() => {
      code.get(row).return();
    });
    code.i32(0).set(found).get(bytes).get(length).op("i32.gt_s").if(() => {
      code.get(pair).memory("i32.load").tee(at).get(bytes).op("i32.add").i32(1).op("i32.sub").get(length).op("i32.sub")
        .set(last);
      code.block((done) =>
        code.loop((next) => {
          code.get(at).get(last).op("i32.gt_u").brIf(done);
          // At the end of memory, positions are compared one by one.
          code.get(at).get(length).op("i32.add").i32(memoryBytes - LANES | 0).op("i32.le_u").if(() => {
            isEnd(ends[0], () => code.get(at));
            isEnd(ends[1], () => code.get(at).get(length).op("i32.add"));
            code.op("v128.and").op("i8x16.bitmask").set(candidates);
            code.get(last).get(at).op("i32.sub").tee(bytes).i32(LANES - 1).op("i32.lt_u").if(() => {
              code.get(candidates).i32(2).get(bytes).op("i32.shl").i32(1).op("i32.sub").op("i32.and").set(candidates);
            });
            code.loop((again) => {
              code.get(candidates).if(() => {
                code.get(at).get(candidates).op("i32.ctz").op("i32.add").get(part).get(length).get(ignoresCase).call(
                  equals,
                );
                code.tee(found).brIf(done);
                code.get(candidates).get(candidates).i32(1).op("i32.sub").op("i32.and").set(candidates).br(again);
              });
            });
            code.get(at).i32(LANES).op("i32.add").set(at);
          }, () => {
            code.get(at).get(part).get(length).get(ignoresCase).call(equals).tee(found).brIf(done);
            code.get(at).i32(1).op("i32.add").set(at);
          });
          code.br(next);
        })
      );
    });
    code.get(out).get(row).op("i32.add").get(found).memory("i32.store8");
  });
  code.get(to);
}

/** The bytes at `at` … `at + last` are those of the part. */
function addEquals(module: Module): number {
  const { code, index } = module.function(["i32", "i32", "i32", "i32"], ["i32"]);
  const [at, part, last, ignoresCase] = [0, 1, 2, 3];
  const k = code.local("i32"), byte = code.local("i32"), bit = code.local("i32");
  code.loop((again) => {
    code.get(part).get(k).op("i32.add").memory("i32.load8_u").set(byte);
    caseBit(code, () => code.get(byte), ignoresCase);
    code.tee(bit).get(at).get(k).op("i32.add").memory("i32.load8_u").op("i32.or").get(bit).get(byte).op("i32.or");
    code.op("i32.ne").if(() => {
      code.i32(0).return();
    });
    code.get(k).get(last).op("i32.lt_u").if(() => {
      code.get(k).i32(1).op("i32.add").set(k).br(again);
    });
  });
  code.i32(1);
  return index;
}

/** Pushes the bit in which the byte and its other case differ: 0 if it is no letter or case counts. */
function caseBit(code: Code, load: () => void, ignoresCase: number): void {
  load();
  code.i32(LOWER_CASE).op("i32.or").i32("a".charCodeAt(0)).op("i32.sub").i32(26).op("i32.lt_u");
  code.get(ignoresCase).op("i32.and").i32(5).op("i32.shl");
}

/** Counts the bytes that do not continue a character, and those that begin one of four bytes again. */
function addLength(module: Module): void {
  const { code } = module.function(["i32", "i32", "i32", "i32", "i32"], [], "length");
  const [pairs, row, to, out, beyond] = [0, 1, 2, 3, 4];
  const at = code.local("i32"),
    end = code.local("i32"),
    units = code.local("i32"),
    v = code.local("v128"),
    byte = code.local("i32");
  code.get(beyond).i32(1).op("i32.sub").set(beyond);
  eachRow(code, pairs, row, to, (pair) => {
    code.get(pair).memory("i32.load", 4).tee(units).i32(0).op("i32.ge_s").if(() => {
      code.get(pair).memory("i32.load").tee(at).get(units).op("i32.add").set(end);
      code.block((done) =>
        code.loop((again) => {
          code.get(end).get(at).op("i32.sub").i32(LANES).op("i32.lt_u").brIf(done);
          code.get(units).get(at).memory("v128.load").tee(v).splat8(0xc0).op("i8x16.lt_s").op("i8x16.bitmask").op(
            "i32.popcnt",
          );
          code.op("i32.sub").splat8(0xef).get(v).op("i8x16.lt_u").op("i8x16.bitmask").op("i32.popcnt");
          code.get(beyond).op("i32.mul").op("i32.add").set(units);
          code.get(at).i32(LANES).op("i32.add").set(at).br(again);
        })
      );
      code.block((done) =>
        code.loop((again) => {
          code.get(at).get(end).op("i32.ge_u").brIf(done);
          code.get(units).get(at).memory("i32.load8_u").tee(byte).i32(0xc0).op("i32.and").i32(0x80).op("i32.eq").op(
            "i32.sub",
          );
          code.get(byte).i32(0xf0).op("i32.ge_u").get(beyond).op("i32.mul").op("i32.add").set(units);
          code.get(at).i32(1).op("i32.add").set(at).br(again);
        })
      );
    });
    code.get(out).get(row).i32(2).op("i32.shl").op("i32.add").get(units).memory("i32.store");
  });
}
