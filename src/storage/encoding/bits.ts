/**
 * Codes of a vector as bits. A vector has 1,024 codes of up to 32 bits, in 8 blocks of 128. A block has four lanes: lane `j` holds codes
 * `j`, `j + 4`, `j + 8`, …, one after the other in words of 32 bits, and the words of the lanes alternate. So registers of 128 bits
 * shift four codes at once.
 *
 * @see Lemire and Boytsov, "Decoding billions of integers per second through vectorization", 2015
 */
import type { Code, Module } from "../../wasm/assembler.ts";

/** Codes of a vector. */
export const VECTOR_ROWS = 1024;
export const CODE_BITS_MAX = 32;
const BLOCKS = 8, STEPS = 32, REGISTER_BYTES = 16;

/** Bytes of a vector's codes. */
export function packedBytes(codeBits: number): number {
  return codeBits * VECTOR_ROWS / 8;
}

/** Number of bits that `code` needs. */
export function bitsOf(code: number): number {
  return 32 - Math.clz32(code);
}

/**
 * Adds kernels that pack codes, exported as `pack1` … `pack32`, and such that unpack them: (address of codes or bits, address of the
 * result). Codes are u32. Returns the functions that unpack by the number of bits.
 */
export function addBitKernels(module: Module): number[] {
  const unpacks: number[] = [];
  for (let codeBits = 1; codeBits <= CODE_BITS_MAX; codeBits++) {
    pack(module.function(["i32", "i32"], [], `pack${codeBits}`).code, codeBits);
    const { code, index } = module.function(["i32", "i32"], []);
    unpack(code, codeBits);
    unpacks[codeBits] = index;
  }
  return unpacks;
}

function pack(code: Code, codeBits: number): void {
  const [from, to] = [0, 1];
  const word = code.local("v128"), value = code.local("v128");
  eachBlock(code, from, STEPS * REGISTER_BYTES, to, codeBits * REGISTER_BYTES, () => {
    let filled = 0, out = 0;
    for (let step = 0; step < STEPS; step++) {
      code.get(from).memory("v128.load", step * REGISTER_BYTES).tee(value);
      if (filled > 0) code.i32(filled).op("i32x4.shl").get(word).op("v128.or");
      code.set(word);
      filled += codeBits;
      if (filled < 32) continue;
      code.get(to).get(word).memory("v128.store", out++ * REGISTER_BYTES);
      filled -= 32;
      if (filled > 0) code.get(value).i32(codeBits - filled).op("i32x4.shr_u").set(word);
    }
  });
}

function unpack(code: Code, codeBits: number): void {
  const [from, to] = [0, 1];
  eachCode(code, codeBits, from, to, STEPS * REGISTER_BYTES, (step, push) => {
    code.get(to);
    push();
    code.memory("v128.store", step * REGISTER_BYTES);
  });
}

/**
 * Emits the loop over the blocks of a vector's bits. `use` is called for each four codes of a block, in the order of the steps, and calls
 * `push`, which pushes them. Local `from` has the address of the bits; local `to` grows by `toBytes` a block.
 */
export function eachCode(
  code: Code,
  codeBits: number,
  from: number,
  to: number,
  toBytes: number,
  use: (step: number, push: () => void) => void,
): void {
  const word = code.local("v128"), mask = code.local("v128");
  code.i32(codeBits === 32 ? -1 : 2 ** codeBits - 1).op("i32x4.splat").set(mask);
  eachBlock(code, from, codeBits * REGISTER_BYTES, to, toBytes, () => {
    let used = 0, read = 0;
    const load = () => code.get(from).memory("v128.load", read++ * REGISTER_BYTES);
    load().set(word);
    for (let step = 0; step < STEPS; step++) {
      use(step, () => {
        code.get(word);
        if (used > 0) code.i32(used).op("i32x4.shr_u");
        used += codeBits;
        if (used > 32) {
          used -= 32;
          load().tee(word).i32(codeBits - used).op("i32x4.shl").op("v128.or").get(mask).op("v128.and");
        } else if (used === 32) {
          used = 0; // the word's last code needs no mask
          if (step < STEPS - 1) load().set(word);
        } else code.get(mask).op("v128.and");
      });
    }
  });
}

function eachBlock(code: Code, from: number, fromBytes: number, to: number, toBytes: number, body: () => void): void {
  const end = code.local("i32");
  code.get(from).i32(BLOCKS * fromBytes).op("i32.add").set(end);
  code.loop((again) => {
    body();
    code.get(to).i32(toBytes).op("i32.add").set(to);
    code.get(from).i32(fromBytes).op("i32.add").tee(from).get(end).op("i32.lt_u").brIf(again);
  });
}
