import assert from "node:assert/strict";
import { formatArray, parseArray } from "./array-text.ts";
import {
  formatBinary,
  formatDecimal,
  formatGeohash,
  formatLong256,
  geohashTag,
  parseBinary,
  parseDecimal,
  parseGeohash,
  parseLong256,
} from "./wide.ts";

Deno.test("LONG256 prints whole bytes", () => {
  assert.equal(formatLong256(parseLong256("0x0100")!), "0x0100");
  assert.equal(formatLong256(parseLong256("0xF")!), "0x0f");
  assert.equal(parseLong256("0x" + "f".repeat(65)), undefined);
});

Deno.test("a geohash can be shortened but not lengthened", () => {
  assert.equal(formatGeohash(parseGeohash("u33d9", 20)!, 20), "u33d");
  assert.equal(formatGeohash(parseGeohash("u33", 7)!, 7), "1101000");
  assert.equal(parseGeohash("u3", 20), undefined);
  assert.equal(parseGeohash("ai", 10), undefined);
  assert.deepEqual([geohashTag(20), geohashTag(7)], ["GEOHASH(4c)", "GEOHASH(7b)"]);
});

Deno.test("decimals keep their scale and refuse too many digits", () => {
  const type = { precision: 8, scale: 2 };
  assert.equal(formatDecimal(parseDecimal("-5.5", type)!, 2), "-5.50");
  assert.equal(formatDecimal(parseDecimal(".05m", type)!, 2), "0.05");
  assert.equal(parseDecimal("1.005", type), undefined);
  assert.equal(formatDecimal(parseDecimal("1.500", type)!, 2), "1.50");
  assert.equal(parseDecimal("1000000", type), undefined);
  for (const [text, expected] of [["1e3", "1000.00"], ["-1.25E+1", "-12.50"], ["125e-2", "1.25"], ["0e9999", "0.00"]]) {
    assert.equal(formatDecimal(parseDecimal(text!, type)!, 2), expected);
  }
  for (const text of ["1e9", "1e-3", "1e", "e3", "1e9999"]) assert.equal(parseDecimal(text, type), undefined, text);
});

Deno.test("an exponent moves the point of a decimal", () => {
  const type = { precision: 8, scale: 2 };
  const texts = ["1e2", "1.25E1", "125e-2", "-5e-2", "0.5e+1", "0e9999", "1.5e"];
  const found = texts.map((text) => parseDecimal(text, type));
  assert.deepEqual(found, [10000n, 1250n, 125n, -5n, 500n, 0n, undefined]);
  assert.deepEqual(["1e6", "1e9999", "1e-3", "1e-9999", "1e99999"].map((text) => parseDecimal(text, type)), [
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

Deno.test("arrays of any depth print as they were written, and ragged ones are refused", () => {
  assert.equal(formatArray(parseArray("[[1.0,null],[3,4.5]]", 2)!), "[[1.0,null],[3.0,4.5]]");
  assert.equal(formatArray(parseArray("[]", 1)!), "[]");
  assert.equal(parseArray("[[1],[2,3]]", 2), undefined);
});

Deno.test("parseBinary() reads both of PostgreSQL's forms, and formatBinary() writes one of them", () => {
  for (
    const [text, bytes] of [["\\x00Ff", [0, 255]], ["\\x", []], ["", []], ["ab", [97, 98]], ["\\134\\\\", [92, 92]]]
  ) {
    assert.deepEqual([...parseBinary(text as string)!], bytes, text as string);
  }
  for (const broken of ["\\x0", "\\x0g", "a\\", "\\400", "\\12"]) assert.equal(parseBinary(broken), undefined, broken);
  assert.equal(formatBinary(Uint8Array.of(0, 255)), "\\x00ff");
});
