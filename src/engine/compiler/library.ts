/**
 * Text functions that IR nodes `text.*` call. A module contains those that it uses. Text is an i64: address | length <<
 * 32, negative is null.
 */
import { LONG_TEXT_BYTES } from "../long-texts.ts";
import type { Code, Module } from "../../wasm/assembler.ts";

/** Imports of the modules. `poll` throws if the query must end. */
export const PROCEDURES = ["poll"];
const POLL = 0;

function pollIfLong(code: Code, length: number, limit = LONG_TEXT_BYTES): void {
  code.get(length).i32(limit).op("i32.gt_s").if(() => code.call(POLL));
}

export type LibraryName = "text.eq" | "text.compare" | "text.hash" | "text.indexOf";

export class Library {
  private readonly indices = new Map<LibraryName, number>();

  constructor(private readonly module: Module) {}

  index(name: LibraryName): number {
    let index = this.indices.get(name);
    if (index === undefined) {
      index = BUILDERS[name](this.module);
      this.indices.set(name, index);
    }
    return index;
  }
}

const BUILDERS: Record<LibraryName, (module: Module) => number> = {
  "text.eq": buildEqual,
  "text.compare": buildCompare,
  "text.hash": buildHash,
  "text.indexOf": buildIndexOf,
};

function lengthOf(code: Code, text: number): Code {
  return code.get(text).i64(32n).op("i64.shr_s").op("i32.wrap_i64");
}

/** Null equals only null. */
function buildEqual(module: Module): number {
  const { code, index } = module.function(["i64", "i64"], ["i32"]);
  const length = code.local("i32"), a = code.local("i32"), b = code.local("i32");
  code.get(0).get(1).op("i64.eq").if(() => code.i32(1).return());
  // If either is null, they are equal only if both are.
  code.get(0).get(1).op("i64.or").i64(0n).op("i64.lt_s").if(() => {
    code.get(0).get(1).op("i64.and").i64(0n).op("i64.lt_s").return();
  });
  lengthOf(code, 0).tee(length);
  lengthOf(code, 1).op("i32.ne").if(() => code.i32(0).return());
  pollIfLong(code, length);
  code.get(0).op("i32.wrap_i64").set(a);
  code.get(1).op("i32.wrap_i64").set(b);
  code.block((tail) =>
    code.loop((again) => {
      code.get(length).i32(8).op("i32.lt_s").brIf(tail);
      code.get(a).memory("i64.load").get(b).memory("i64.load").op("i64.ne").if(() => code.i32(0).return());
      code.get(a).i32(8).op("i32.add").set(a);
      code.get(b).i32(8).op("i32.add").set(b);
      code.get(length).i32(8).op("i32.sub").set(length);
      code.br(again);
    })
  );
  code.loop((again) => {
    code.get(length).op("i32.eqz").if(() => code.i32(1).return());
    code.get(a).memory("i32.load8_u").get(b).memory("i32.load8_u").op("i32.ne").if(() => code.i32(0).return());
    code.get(a).i32(1).op("i32.add").set(a);
    code.get(b).i32(1).op("i32.add").set(b);
    code.get(length).i32(1).op("i32.sub").set(length);
    code.br(again);
  });
  code.i32(1);
  return index;
}

/** Compares bytes, which for UTF-8 is the order of code points, then lengths. Null is the smallest. */
function buildCompare(module: Module): number {
  const { code, index } = module.function(["i64", "i64"], ["i32"]);
  const lengthA = code.local("i32"),
    lengthB = code.local("i32"),
    k = code.local("i32"),
    end = code.local("i32"),
    d = code.local("i32");
  lengthOf(code, 0).set(lengthA);
  lengthOf(code, 1).set(lengthB);
  code.get(lengthA).get(lengthB).get(lengthA).get(lengthB).op("i32.lt_s").op("select").set(end);
  pollIfLong(code, end);
  code.block((done) =>
    code.loop((again) => {
      code.get(k).get(end).op("i32.ge_s").brIf(done);
      code.get(0).op("i32.wrap_i64").get(k).op("i32.add").memory("i32.load8_u");
      code.get(1).op("i32.wrap_i64").get(k).op("i32.add").memory("i32.load8_u");
      code.op("i32.sub").tee(d).if(() => code.get(d).return());
      code.get(k).i32(1).op("i32.add").set(k);
      code.br(again);
    })
  );
  code.get(lengthA).get(lengthB).op("i32.sub");
  return index;
}

/** Hashes eight bytes at a time, each mixed in by a multiplication (like wyhash, but without 128-bit products). */
function buildHash(module: Module): number {
  const { code, index } = module.function(["i64"], ["i64"]);
  const hash = code.local("i64"), at = code.local("i32"), length = code.local("i32");
  code.get(0).i64(0n).op("i64.lt_s").if(() => code.i64(0x1F83D9ABFB41BD6Bn).return());
  lengthOf(code, 0).tee(length).op("i64.extend_i32_u").i64(0x9E3779B97F4A7C15n).op("i64.xor").set(hash);
  code.get(0).op("i32.wrap_i64").set(at);
  pollIfLong(code, length);
  const mix = (): void => {
    // hash = rotl((hash ^ word) * odd, 29), word on the stack
    code.get(hash).op("i64.xor").i64(-0x61C8864680B583EBn).op("i64.mul").i64(29n).op("i64.rotl").set(hash);
  };
  code.block((tail) =>
    code.loop((again) => {
      code.get(length).i32(8).op("i32.lt_s").brIf(tail);
      code.get(at).memory("i64.load");
      mix();
      code.get(at).i32(8).op("i32.add").set(at);
      code.get(length).i32(8).op("i32.sub").set(length);
      code.br(again);
    })
  );
  code.block((done) =>
    code.loop((again) => {
      code.get(length).op("i32.eqz").brIf(done);
      code.get(at).memory("i64.load8_u");
      mix();
      code.get(at).i32(1).op("i32.add").set(at);
      code.get(length).i32(1).op("i32.sub").set(length);
      code.br(again);
    })
  );
  code.get(hash).get(hash).i64(32n).op("i64.shr_u").op("i64.xor").i64(-0x61C8864680B583EBn).op("i64.mul");
  return index;
}

/** A failed comparison that has read this much at one of many positions polls for cancellation. */
const LONG_PART_BYTES = 1_024;

/** First offset of `b` in `a`, or -1. Nulls are never found. The empty text is found at 0. */
function buildIndexOf(module: Module): number {
  const { code, index } = module.function(["i64", "i64"], ["i32"]);
  const lengthB = code.local("i32"),
    a = code.local("i32"),
    b = code.local("i32"),
    last = code.local("i32"),
    k = code.local("i32"),
    j = code.local("i32");
  const first = code.local("i32");
  code.get(0).get(1).op("i64.or").i64(0n).op("i64.lt_s").if(() => code.i32(-1).return());
  lengthOf(code, 1).tee(lengthB).op("i32.eqz").if(() => code.i32(0).return());
  lengthOf(code, 0).get(lengthB).op("i32.sub").set(last);
  pollIfLong(code, last);
  code.get(0).op("i32.wrap_i64").set(a);
  code.get(1).op("i32.wrap_i64").tee(b).memory("i32.load8_u").set(first);
  code.loop((next) => {
    code.get(k).get(last).op("i32.gt_s").if(() => code.i32(-1).return());
    code.get(a).get(k).op("i32.add").memory("i32.load8_u").get(first).op("i32.eq").if(() => {
      code.i32(1).set(j);
      code.block((differs) =>
        code.loop((again) => {
          code.get(j).get(lengthB).op("i32.ge_s").if(() => code.get(k).return());
          code.get(a).get(k).op("i32.add").get(j).op("i32.add").memory("i32.load8_u");
          code.get(b).get(j).op("i32.add").memory("i32.load8_u").op("i32.ne").brIf(differs);
          code.get(j).i32(1).op("i32.add").set(j);
          code.br(again);
        })
      );
      pollIfLong(code, j, LONG_PART_BYTES);
    });
    code.get(k).i32(1).op("i32.add").set(k);
    code.br(next);
  });
  code.i32(-1);
  return index;
}
