import assert from "node:assert/strict";
import { FUNCTIONS } from "./mod.ts";

const LONG = 1 << 20;
const ROWS = 8;

for (const name of ["md5", "sha1", "sha256", "json_extract", "to_pg_date"]) {
  Deno.test(`${name}() polls between long values, however few they are`, () => {
    const entry = FUNCTIONS.find((entry) => entry.name === name && entry.args[0].type !== "BINARY")!;
    const values = Int32Array.from({ length: 2 * ROWS }, (_, word) => word % 2 === 0 ? 0 : LONG);
    const documents = { values, bytes: () => new Uint8Array(LONG), text: () => "x".repeat(LONG) };
    const path = { text: () => "$.a" };
    const out = { setText() {}, setNull() {}, makeText() {}, values: [] };
    let polls = 0;
    const heap = { u8: new Uint8Array(LONG).fill(0x78) };
    const context = { heap, poll: () => polls++, memory: { need() {}, keep() {} } };
    // deno-lint-ignore no-explicit-any -- only what these functions use
    entry.batch!([documents, path] as any, out as any, ROWS, context as any);
    assert.ok(polls >= ROWS, `${polls} polls`);
  });
}

Deno.test("from_base64() polls within a long text", () => {
  const entry = FUNCTIONS.find(({ name }) => name === "from_base64")!;
  const u8 = new Uint8Array(LONG).fill(65);
  const column = { type: "STRING", values: Int32Array.of(0, LONG), bytes: () => u8 };
  const out = { makeText: (_row: number, size: number) => new Uint8Array(size), setNull() {} };
  let polls = 0;
  const context = { heap: { u8 }, poll: () => polls++, memory: { need() {}, keep() {} } };
  // deno-lint-ignore no-explicit-any -- only what the function uses
  entry.batch!([column] as any, out as any, 1, context as any);
  assert.ok(polls >= 20, `${polls} polls`);
});
