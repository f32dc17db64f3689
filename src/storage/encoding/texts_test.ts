import fc from "../../properties.ts";
import { deepEqual, equal, ok } from "node:assert/strict";
import { createHeap } from "../heap.ts";
import { ChunkCodec } from "./chunk.ts";
import { CODEC_BYTES } from "./chunk-scratch.ts";
import { encodingNames } from "./encodings.ts";
import { atOnce } from "./stored.ts";
import { TextCodec } from "./texts.ts";

const heap = createHeap(64 << 20);
const codec = new TextCodec(heap, new ChunkCodec(heap, heap.allocate(CODEC_BYTES, "other")));
const SOURCE = heap.allocate(16 << 20, "other"), TARGET = heap.allocate(16 << 20, "other");

type Text = Uint8Array | null;

/** Encodes and decodes texts. Returns what was encoded, and undefined if they were not. */
function roundTrip(texts: readonly Text[]): { sizeBytes: number; encodings: string[]; entryBytes: number } | undefined {
  let at = SOURCE + 8 * texts.length + 3;
  texts.forEach((text, row) => {
    heap.i32[SOURCE / 4 + 2 * row] = text === null || text.length === 0 ? 0 : at;
    heap.i32[SOURCE / 4 + 2 * row + 1] = text === null ? -1 : text.length;
    if (text === null) return;
    heap.u8.set(text, at);
    at += text.length + row % 3; // some are contiguous
  });
  const encoded = atOnce(codec.encodeSteps(SOURCE, texts.length));
  if (encoded === undefined) return undefined;
  const bytes = new Uint8Array(encoded.parts.reduce((sum, { length }) => sum + length, 0));
  let out = 0;
  for (const part of encoded.parts) {
    bytes.set(part, out);
    out += part.length;
  }
  const end = TARGET + 8 * texts.length + encoded.entryBytes;
  heap.u8.fill(0xaa, TARGET, end + 1);
  codec.decode(bytes, TARGET, texts.length);
  equal(heap.u8[end], 0xaa, "nothing behind the texts is written");
  texts.forEach((text, row) => {
    const from = heap.u32[TARGET / 4 + 2 * row], length = heap.i32[TARGET / 4 + 2 * row + 1];
    equal(length, text === null ? -1 : text.length, `length of row ${row}`);
    if (text === null || length === 0) return;
    ok(from >= TARGET + 8 * texts.length && from + length <= end, "the pair refers to the chunk's texts");
    if (heap.u8.subarray(from, from + length).some((byte, k) => byte !== text[k])) {
      throw new Error(`row ${row} differs`);
    }
  });
  equal(encoded.textBytes, texts.reduce((sum, text) => sum + (text?.length ?? 0), 0));
  return { sizeBytes: bytes.length, encodings: encodingNames(encoded.encodings), entryBytes: encoded.entryBytes };
}

const utf8 = (text: string) => new TextEncoder().encode(text);
const rowsOf = (count: number, of: (row: number) => string | null) =>
  Array.from({ length: count }, (_, row) => {
    const text = of(row);
    return text === null ? null : utf8(text);
  });

Deno.test("any texts come back as they were: repeated or not, empty, NULL, long", () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(
      fc.record({
        rows: fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1000, max: 5000 })),
        different: fc.constantFrom(1, 2, 300, 100_000),
        bytes: fc.constantFrom(0, 1, 7, 40, 400),
        nullShare: fc.constantFrom(0, 0.1, 1),
        isNoise: fc.boolean(),
        seed: fc.nat(),
      }),
      ({ rows, different, bytes, nullShare, isNoise, seed }) => {
        const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
        const texts = Array.from({ length: rows }, () => {
          if (random() < nullShare) return null;
          const which = Math.floor(random() * different);
          const text = utf8(`${which} `.repeat(bytes).slice(0, which % (bytes + 1)));
          return isNoise ? text.map((byte) => byte ^ Math.floor(random() * 256)) : text;
        });
        const encoded = roundTrip(texts);
        seen.add(encoded?.encodings.join() ?? "none");
      },
    ),
    { numRuns: 300 },
  );
  for (const encodings of ["none", "raw", "zstd", "dictionary", "dictionary,zstd"]) {
    ok(seen.has(encodings), `no ${encodings}`);
  }
});

Deno.test("texts that repeat are stored and loaded once", () => {
  const encoded = roundTrip(rowsOf(65_536, (row) => row % 7 === 0 ? null : `service-${row % 100}`))!;
  deepEqual(encoded.encodings, ["dictionary", "zstd"]);
  ok(encoded.entryBytes < 1100, `${encoded.entryBytes} bytes of entries`);
  ok(encoded.sizeBytes < 65_536, "less than a byte a row");
});

Deno.test("texts that are similar take a third, in blocks that lie across texts", () => {
  const of = (row: number) => `GET /api/users/${row * 7919 % 1_000_003} took ${row * 31 % 997} ms`;
  const encoded = roundTrip(rowsOf(65_536, of))!;
  deepEqual(encoded.encodings, ["zstd"]);
  ok(encoded.entryBytes > 20 * 65_536 && encoded.sizeBytes < encoded.entryBytes / 3, `${encoded.sizeBytes} bytes`);
});

Deno.test("long texts come back, also one that is longer than a block", () => {
  ok(roundTrip([utf8("x".repeat(200_000)), null, utf8(""), utf8("y".repeat(65_536)), utf8("end")])!.sizeBytes < 2000);
});

Deno.test("long noise is stored as it is, as is nothing", () => {
  const noise = () => crypto.getRandomValues(new Uint8Array(10_000));
  equal(roundTrip(Array.from({ length: 200 }, noise)), undefined);
  equal(roundTrip([]), undefined);
});
