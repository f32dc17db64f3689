import assert from "node:assert/strict";
import { randomFrom } from "../../engine/testing.ts";
import { formatDate, formatNanos, formatTimestampMicros } from "../../types/format/mod.ts";
import { createHeap } from "../../storage/heap.ts";
import { PUT_TEXT_MAX, putDate, putMicros, putNanos, putPgMicros, putText, putUnescaped } from "./stores.ts";
import { ByteSink } from "./sink.ts";
import { pgTimestamp, writeText } from "./types.ts";

const seed = Number(Deno.env.get("SEED") ?? Date.now() % 1e6), random = randomFrom(seed);
const heap = createHeap(16 << 20);

type Plain = (low: number, high: number, bytes: Uint8Array, at: number) => number;
type Put = (low: number, high: number, bytes: Uint8Array, view: DataView, at: number) => number;
const INSTANTS: [name: string, put: Put, plain: Plain, unitsADay: bigint][] = [
  ["putDate", putDate, formatDate, 86_400_000n],
  ["putMicros", putMicros, formatTimestampMicros, 86_400_000_000n],
  ["putPgMicros", putPgMicros, pgTimestamp, 86_400_000_000n],
  ["putNanos", putNanos, formatNanos, 86_400_000_000_000n],
];

/** The first days of the years 0 and 10,000, between which years have four digits. */
const YEAR_0 = -719_528n, YEAR_10000 = 2_932_897n;

for (const [name, put, plain, unitsADay] of INSTANTS) {
  Deno.test(`${name}() writes what is written byte by byte, SEED=${seed}`, () => {
    const edges = [0n, YEAR_0 * unitsADay, YEAR_10000 * unitsADay, -(2n ** 63n) + 2n, 2n ** 63n - 2n, 2n ** 32n];
    const values = edges.flatMap((edge) => [edge - 1n, edge, edge + 1n]);
    let day = 0n;
    for (let k = 0; k < 20_000; k++) {
      const word = BigInt(random()) << 32n | BigInt(random());
      if (k % 10 === 0) day = BigInt(random() % 4_000_000) - 800_000n;
      // Of any length, and instants of the same day one after the other.
      values.push(k % 4 === 0 ? BigInt.asIntN(64, word) >> BigInt(random() % 64) : day * unitsADay + word % unitsADay);
    }
    const bytes = new Uint8Array(80), view = new DataView(bytes.buffer), expected = new Uint8Array(80);
    const decoder = new TextDecoder();
    for (const value of values.map((value) => BigInt.asIntN(64, value))) {
      const low = Number(BigInt.asIntN(32, value)), high = Number(value >> 32n), at = random() % 8;
      bytes[at - 1] = 0x21;
      const end = put(low, high, bytes, view, at), plainEnd = plain(low, high, expected, at);
      const text = decoder.decode(bytes.subarray(at, end));
      assert.equal(text, decoder.decode(expected.subarray(at, plainEnd)), `${value}`);
      if (at > 0) assert.equal(bytes[at - 1], 0x21);
    }
  });
}

Deno.test(`putText() and putUnescaped() write what is written byte by byte, SEED=${seed}`, () => {
  const memory = new DataView(heap.buffer), address = heap.allocate(256, "other");
  const special = [0, 1, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x5b, 0x5c, 0x5d, 0x7f, 0x80, 0xa2, 0xdc, 0xff];
  for (let k = 0; k < 50_000; k++) {
    const from = address + random() % 8, length = random() % (PUT_TEXT_MAX + 1);
    const share = [0, 1, 30][random() % 3]!;
    for (let i = -4; i < length + 4; i++) {
      const at = from + i + 4;
      heap.u8[at] = random() % 100 < share ? special[random() % special.length]! : 0x61 + random() % 26;
    }
    const at = 3 + random() % 4, text = from + 4, bytes = new Uint8Array(200).fill(0x21);
    const view = new DataView(bytes.buffer);
    const expectedOf = (escape: "none" | "json" | "csv") => {
      const sink = new ByteSink(4096);
      sink.bytes.fill(0x21);
      const end = writeText(heap.u8, text, length, sink, escape, at);
      return { end, text: sink.bytes.slice(0, end).toHex() };
    };
    const plain = expectedOf("none");
    assert.equal(putText(memory, text, length, view, at), plain.end);
    assert.equal(bytes.slice(0, plain.end).toHex(), plain.text);
    assert.ok(bytes.subarray(plain.end).every((byte) => byte === 0x21), "nothing is written behind the text");
    bytes.fill(0x21);
    const end = putUnescaped(memory, text, length, view, at);
    for (const escape of ["json", "csv"] as const) {
      const expected = expectedOf(escape);
      if (end < 0) assert.ok(expected.end > plain.end, "a byte is escaped");
      else assert.equal(bytes.slice(0, end).toHex(), expected.text);
    }
    if (end >= 0) assert.equal(end, plain.end);
  }
});
