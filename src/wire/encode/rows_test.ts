import assert from "node:assert/strict";
import type { Encoding } from "../../api.ts";
import type { Batch, Vector } from "../../engine/contract.ts";
import { createHeap } from "../../storage/heap.ts";
import { createEncoder } from "./mod.ts";

const ROWS = 10_000;
const TYPES = [
  "BOOLEAN",
  "BYTE",
  "SHORT",
  "CHAR",
  "INT",
  "LONG",
  "FLOAT",
  "DOUBLE",
  "DATE",
  "TIMESTAMP",
  "TIMESTAMP_NS",
  "SYMBOL",
  "SYMBOL_TEXT",
  "STRING",
  "VARCHAR",
  "UUID",
  "IPv4",
];
const TEXTS = ["plain", 'with "quotes"', "back\\slash", "line\nfeed", "", "żółć 🙂", "x".repeat(300), '"'.repeat(250)];

const heap = createHeap(64 << 20);

/** Text pairs, including null. */
function pairs(count: number, pick: (k: number) => string | undefined): number {
  const address = heap.allocate(count * 8, "other");
  for (let k = 0; k < count; k++) {
    const text = pick(k), bytes = new TextEncoder().encode(text ?? "");
    const at = heap.allocate(Math.max(1, bytes.length), "other");
    heap.u8.set(bytes, at);
    heap.u32[address / 4 + 2 * k] = at;
    heap.i32[address / 4 + 2 * k + 1] = text === undefined ? -1 : bytes.length;
  }
  return address;
}

let seed = 7;
const random = () => (seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff) / 0x7fffffff;

const someTexts = pairs(64, (k) => (k % 9 === 8 ? undefined : TEXTS[k % 9]));

function vectorOf(type: string): Vector {
  const address = heap.allocate(ROWS * 16, "other");
  if (type === "SYMBOL") {
    const entries = pairs(TEXTS.length, (k) => TEXTS[k]);
    for (let row = 0; row < ROWS; row++) heap.i32[address / 4 + row] = row % 9 - 1;
    return { type, address, dictionary: { tableId: 1, columnId: 0, entries, count: TEXTS.length } };
  }
  if (["SYMBOL_TEXT", "STRING", "VARCHAR"].includes(type)) {
    for (let row = 0; row < ROWS; row++) heap.i64[address / 8 + row] = heap.i64[someTexts / 8 + (row * 7) % 64];
    return { type, address };
  }
  for (let word = 0; word < ROWS * 4; word++) heap.i32[address / 4 + word] = random() * 2 ** 32;
  for (let row = 0; row < ROWS; row++) {
    if (type === "DOUBLE") {
      heap.f64[address / 8 + row] = row % 5 === 0
        ? NaN
        : row % 3 === 0
        ? random() * 1e9
        : Math.round(random() * 1e5) / 100;
    }
    if (type === "FLOAT") heap.f32[address / 4 + row] = row % 5 === 0 ? NaN : random() * 1e4;
    if (type === "INT" && row % 5 === 0) heap.i32[address / 4 + row] = -(2 ** 31);
    if (["LONG", "DATE", "TIMESTAMP", "TIMESTAMP_NS"].includes(type)) {
      heap.i64[address / 8 + row] = row % 5 === 0
        ? -(2n ** 63n)
        : BigInt(Math.floor((random() - 0.2) * 10 ** (row % 17)));
    }
  }
  return { type, address };
}

Deno.test("the generated loop writes the same bytes as the columns' writers, row by row", () => {
  const batch: Batch = { rowCount: ROWS, columns: TYPES.map(vectorOf) };
  const columns = TYPES.map((type, k) => ({ name: `c${k}`, type }));
  const encodings: Encoding[] = [
    { name: "csv", delimiter: ";" },
    { name: "json", quoteLargeNumbers: false },
    { name: "json", quoteLargeNumbers: true, columns: [5, 11, 4] },
    { name: "json", quoteLargeNumbers: true, isLines: true },
    { name: "pg", formats: TYPES.map(() => 0) },
    { name: "pg", formats: TYPES.map(() => 1) },
    { name: "pg", formats: TYPES.map((_, k) => k % 2) },
  ];
  for (const encoding of encodings) {
    const whole = createEncoder(encoding, columns, heap).encode(batch, 3, ROWS - 3, true);
    const parts: Uint8Array[] = [];
    for (let row = 3; row < ROWS; row += 500) {
      // An encoder that has written many rows uses the loop for few, too.
      const encoder = createEncoder(encoding, columns, heap);
      parts.push(encoder.encode(batch, row, Math.min(500, ROWS - row), row === 3));
    }
    // Binary values too: a character for each byte.
    const decoder = new TextDecoder(encoding.name === "pg" ? "latin1" : "utf-8");
    const expected = parts.map((part) => decoder.decode(part)).join("");
    assert.equal(decoder.decode(whole), expected);
    const kept = createEncoder(encoding, columns, heap);
    let text = "";
    for (let row = 3; row < ROWS; row += 500) {
      text += decoder.decode(kept.lend(batch, row, Math.min(500, ROWS - row), row === 3));
    }
    assert.equal(text, expected);
    if (encoding.name !== "json" || !encoding.isLines) continue;
    // Spooled rows rely on line feeds occurring only between rows.
    const lines = decoder.decode(whole).split("\n");
    assert.equal(lines.length, ROWS - 3);
    assert.deepEqual(JSON.parse(`[${lines.join("")}]`).length, ROWS - 3);
  }
});
