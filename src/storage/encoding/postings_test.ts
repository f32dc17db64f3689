import fc from "../../properties.ts";
import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { createHeap } from "../heap.ts";
import { codesPart, DamagedPostingsError, findRows, makePostings, presentCodes, readHead } from "./postings.ts";

const heap = createHeap(8 << 20);
const SOURCE = heap.allocate(1 << 18, "other");
const CODES = Uint8Array.from({ length: 77 }, (_, k) => k);

/** The extent of a chunk with these codes. */
function extentOf(values: Int32Array): Uint8Array | undefined {
  heap.i32.set(values, SOURCE / 4);
  const postings = makePostings(heap, SOURCE, values.length, CODES);
  return postings && new Uint8Array([...CODES, ...postings]);
}

function find(extent: Uint8Array, codes: readonly number[], rowsMax = Infinity): [number, number][] | undefined {
  const read = (into: Uint8Array, at: number) => {
    ok(at >= 0 && at + into.length <= extent.length, "reads stay within the extent");
    into.set(extent.subarray(at, at + into.length));
  };
  const found = findRows(readHead(read, extent.length), read, codes, rowsMax);
  return found && Array.from({ length: found.count }, (_, k) => [found.rows[k], found.codes[k]]);
}

const columns = fc.record({
  rowCount: fc.oneof(fc.integer({ min: 1024, max: 5000 }), fc.constant(65_536)),
  codes: fc.constantFrom(32, 100, 5000, 70_000, 2 ** 20, 2 ** 31 - 1),
  clustered: fc.boolean(),
  nulls: fc.boolean(),
  seed: fc.integer(),
}).map(({ rowCount, codes, clustered, nulls, seed }) => {
  let state = seed | 1;
  const random = () => (state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 12345 | 0) >>> 0;
  return Int32Array.from({ length: rowCount }, (_, row) => {
    if (nulls && row % 9 === 0) return -1;
    return clustered ? Math.floor(row * Math.min(codes, 3000) / rowCount) : random() % codes;
  });
});

Deno.test("postings find the rows of each code", () => {
  fc.assert(
    fc.property(columns, fc.array(fc.nat(), { minLength: 1, maxLength: 6 }), (values, picks) => {
      const extent = extentOf(values);
      if (extent === undefined) return ok(new Set(values).size < 32, "few codes");
      const wanted = [...new Set([-1, 7, ...picks.map((pick) => values[pick % values.length])])].sort((a, b) => a - b);
      const expected = [...values.entries()].filter(([, code]) => wanted.includes(code));
      deepEqual(find(extent, wanted), expected);
      deepEqual(find(extent, wanted, expected.length), expected);
      if (expected.length > 0) equal(find(extent, wanted, expected.length - 1), undefined);
    }),
    { numRuns: 60 },
  );
});

Deno.test("postings tell which codes there are", () => {
  fc.assert(
    fc.property(columns, fc.array(fc.integer({ min: -1, max: 80_000 }), { maxLength: 300 }), (values, codes) => {
      const extent = extentOf(values), all = new Set(values);
      if (extent === undefined) return;
      const read = (into: Uint8Array, at: number) => into.set(extent.subarray(at, at + into.length));
      const present = presentCodes(readHead(read, extent.length), codes);
      const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
      if (high - low >= 65_536) return equal(present, undefined);
      deepEqual(present, codes.filter((code) => all.has(code)));
    }),
    { numRuns: 40 },
  );
});

Deno.test("the codes can be read without the postings", () => {
  const extent = extentOf(Int32Array.from({ length: 2000 }, (_, k) => k % 500))!;
  const part = codesPart((into, at) => into.set(extent.subarray(at, at + into.length)), extent.length);
  equal(part.sizeBytes, CODES.length);
});

Deno.test("a changed byte that is read is noticed", () => {
  const values = Int32Array.from({ length: 20_000 }, (_, k) => k * 7919 % 3000), extent = extentOf(values)!;
  const expected = find(extent, [1234]);
  equal(expected!.length, values.filter((code) => code === 1234).length);
  for (let at = CODES.length; at < extent.length; at += 7) {
    const damaged = extent.slice();
    damaged[at] ^= 0x10;
    try {
      deepEqual(find(damaged, [1234]), expected);
    } catch (error) {
      ok(error instanceof DamagedPostingsError, `byte ${at}: ${error}`);
    }
  }
  const cut = extent.slice();
  cut[cut.length - 32] ^= 1;
  throws(() => find(cut, [1234]), DamagedPostingsError);
});

Deno.test("columns of few rows or few codes have no postings", () => {
  equal(extentOf(Int32Array.from({ length: 1000 }, (_, k) => k)), undefined);
  equal(extentOf(Int32Array.from({ length: 50_000 }, (_, k) => k % 31)), undefined);
});
