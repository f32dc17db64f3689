import assert from "node:assert/strict";
import { encodeArray, formatArray, parseArray, PG_MARKS, writeArray } from "./array-text.ts";

const TEXTS: [text: string, dimensions: number, printed?: string][] = [
  ["[]", 1],
  ["[]", 2],
  ["[[],[]]", 2, "[]"],
  ["[1.0]", 1],
  [" [ 1 , -2.5e3 ,\tnull ] ", 1, "[1.0,-2500.0,null]"],
  ["[1e999]", 1, "[null]"],
  ["[[1.0,2.0],[3.0,null]]", 2],
  ["[[[1.0]],[[2.0]]]", 3],
];

Deno.test("parseArray() and formatArray() are opposites", () => {
  for (const [text, dimensions, printed] of TEXTS) {
    assert.equal(formatArray(parseArray(text, dimensions)!), printed ?? text, text);
  }
});

Deno.test("formatArray() writes elements that are not finite as null", () => {
  assert.equal(formatArray(encodeArray([4], Float64Array.of(NaN, Infinity, -Infinity, 1))), "[null,null,null,1.0]");
});

Deno.test("parseArray() refuses texts that are not arrays of the given number of dimensions", () => {
  const refused: [string, number][] = [
    ["", 1],
    ["1", 1],
    ["[1", 1],
    ["[1]]", 1],
    ["[1,]", 1],
    ["[,1]", 1],
    ["[1] 2", 1],
    ["[01]", 1],
    ["[.5]", 1],
    ["[nul]", 1],
    ["[nullx]", 1],
    ["[NaN]", 1],
    ["[[1]]", 1],
    ["[1]", 2],
    ["[[1],[2,3]]", 2],
    ["[[1],[]]", 2],
    ["[null,[1]]", 2],
    ['[{"a":1}]', 1],
    ["[1 2]", 1],
  ];
  for (const [text, dimensions] of refused) assert.equal(parseArray(text, dimensions), undefined, text);
});

Deno.test("long arrays are read and written in pieces, with memory charged and cancellation polled", () => {
  const count = 300_000;
  let needed = 0, polls = 0;
  const work = { need: (bytes: number) => void (needed += bytes), poll: () => void polls++ };
  const text = `[${Array.from({ length: count }, (_, i) => `[${i}.0,null]`).join()}]`;
  const array = parseArray(text, 2, work)!;
  assert.ok(needed >= 16 * count && polls > 10);
  polls = 0;
  assert.equal(formatArray(array, work), text);
  assert.ok(polls > 10);
});

Deno.test("writeArray() writes at an offset and with other brackets", () => {
  let bytes = new Uint8Array(4).fill(0x78);
  const end = writeArray(
    parseArray("[[1,null]]", 2)!,
    (size) => {
      const larger = new Uint8Array(size);
      larger.set(bytes);
      return bytes = larger;
    },
    4,
    PG_MARKS,
  );
  assert.equal(new TextDecoder().decode(bytes.subarray(0, end)), "xxxx{{1.0,NULL}}");
});

Deno.test("formatArray() reads arrays anywhere in shared memory", () => {
  const array = encodeArray([2, 2], Float64Array.of(1, 2.5, NaN, -4));
  for (const offset of [0, 3, 8]) {
    const shared = new Uint8Array(new SharedArrayBuffer(array.length + 16)).subarray(offset, offset + array.length);
    shared.set(array);
    assert.equal(formatArray(shared), "[[1.0,2.5],[null,-4.0]]");
  }
});
