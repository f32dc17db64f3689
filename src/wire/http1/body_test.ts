import assert from "node:assert/strict";
import { randomOf, SEED } from "../../testing.ts";
import type { ByteConnection } from "../byte-connection.ts";
import { BodyReader } from "./body.ts";
import { RequestError } from "./errors.ts";
import { Input } from "./input.ts";

/** A body whose bytes arrive in pieces of these sizes, in turn. */
function bodyOf(bytes: Uint8Array, sizes: readonly number[]): BodyReader {
  let at = 0, turn = 0;
  const read = (into: Uint8Array) => {
    const piece = bytes.subarray(at, at + Math.min(into.length, sizes[turn++ % sizes.length]));
    into.set(piece);
    at += piece.length;
    return Promise.resolve(piece.length === 0 ? null : piece.length);
  };
  return new BodyReader(new Input({ read } as unknown as ByteConnection), "chunked");
}

async function piecesOf(body: BodyReader): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for (let piece = await body.read(); piece !== undefined; piece = await body.read()) pieces.push(piece);
  return pieces;
}

const encode = (text: string) => new TextEncoder().encode(text);
const chunk = (text: string, extension = "") => `${text.length.toString(16)}${extension}\r\n${text}\r\n`;

Deno.test("BodyReader: chunks give their bytes, whatever their sizes and however they arrive", async () => {
  for (let seed = SEED; seed < SEED + 200; seed++) {
    const random = randomOf(seed), size = () => random(5) === 0 ? random(9_000) : random(20);
    let text = "", sent = "";
    for (let count = random(60); count >= 0; count--) {
      const part = "abcdefghij".repeat(1_000).slice(0, 1 + size());
      text += part;
      sent += chunk(part, random(9) === 0 ? ";x=1" : "");
    }
    const sizes = Array.from({ length: 5 }, () => 1 + size());
    const body = bodyOf(encode(`${sent}0\r\n\r\n`), sizes);
    const pieces = await piecesOf(body);
    assert.equal(await new Blob(pieces as BlobPart[]).text(), text, `SEED=${seed}`);
    assert.equal(body.size, text.length);
  }
});

Deno.test("BodyReader: small chunks that have arrived together are one piece, in a buffer of its size", async () => {
  const pieces = await piecesOf(bodyOf(encode(`${chunk("x").repeat(20_000)}0\r\n\r\n`), [1 << 16]));
  assert.equal(pieces.reduce((sum, { length }) => sum + length, 0), 20_000);
  assert.ok(pieces.length < 200, `${pieces.length} pieces`);
  assert.ok(pieces.every(({ length, buffer }) => buffer.byteLength === length));
});

const refused = [
  { title: "a size with a sign", line: "+1" },
  { title: "a letter above f", line: "g" },
  { title: "a colon", line: ":" },
  { title: "no size", line: "" },
  { title: "13 digits", line: "0000000000001" },
];
for (const { title, line } of refused) {
  Deno.test(`BodyReader: refuses ${title}, also behind another chunk`, async () => {
    for (const before of ["", chunk("x")]) {
      await assert.rejects(piecesOf(bodyOf(encode(`${before}${line}\r\ny\r\n0\r\n\r\n`), [4_096])), RequestError);
    }
  });
}
