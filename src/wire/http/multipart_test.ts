import assert from "node:assert/strict";
import fc from "../../properties.ts";
import { boundaryOf, MultipartError, partsOf } from "./multipart.ts";

const encode = (text: string) => new TextEncoder().encode(text);

/** As `ReceivedBody`, it frees each piece when the next one is asked for. */
async function* inPieces(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length];
    const piece = bytes.slice(at, at + size);
    yield piece;
    piece.buffer.transfer(0);
    at += size;
  }
}

async function read(text: string, sizes = [1 << 20], headerSizeMax = 512) {
  const parts: { name: string; fileName: string | undefined; text: string }[] = [];
  for await (const { name, fileName, bytes } of partsOf(inPieces(encode(text), sizes), "XX", headerSizeMax)) {
    const decoder = new TextDecoder();
    let text = "";
    for await (const piece of bytes) text += decoder.decode(piece, { stream: true });
    parts.push({ name, fileName, text: text + decoder.decode() });
  }
  return parts;
}

const part = (disposition: string, text: string) =>
  `--XX\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${text}\r\n`;

Deno.test("boundaryOf() finds the boundary", () => {
  assert.equal(boundaryOf("multipart/form-data; boundary=----b7"), "----b7");
  assert.equal(boundaryOf('Multipart/Form-Data; charset=utf-8; boundary="a b"'), "a b");
  for (const other of [null, "text/csv", "multipart/mixed; boundary=x", "multipart/form-data"]) {
    assert.equal(boundaryOf(other), undefined, String(other));
  }
});

Deno.test("partsOf() gives names, file names and bytes, however the body is split", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: fc.constantFrom("\r", "\n", "-", "X", "a", "ä"), maxLength: 30 }), { maxLength: 4 }),
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 5 }),
      async (texts, sizes) => {
        fc.pre(texts.every((text) => !`\r\n${text}\r\n`.includes("\r\n--XX")));
        const body = texts.map((text, index) => part(`name="p${index}"; filename="ä \\"${index}\\".csv"`, text)).join(
          "",
        );
        const found = await read(`${body}--XX--\r\n`, sizes);
        assert.deepEqual(
          found,
          texts.map((text, index) => ({ name: `p${index}`, fileName: `ä "${index}".csv`, text })),
        );
      },
    ),
    { numRuns: Number(Deno.env.get("SUNDIAL_RUNS") ?? 300) },
  ));

Deno.test("partsOf() refuses a body of more than 1,000 parts", async () => {
  const parts = (count: number) => `${part('name="x"', "").repeat(count)}--XX--`;
  assert.equal((await read(parts(1_000))).length, 1_000);
  await assert.rejects(read(parts(1_001)), /the body has more than 1000 parts/);
});

Deno.test("partsOf() skips what is not read", async () => {
  const names: string[] = [];
  const body = part('name="a"', "1\n2") + part("name=b", "3") + "--XX--";
  for await (const { name } of partsOf(inPieces(encode(body), [3]), "XX", 512)) names.push(name);
  assert.deepEqual(names, ["a", "b"]);
});

const broken: [title: string, body: string][] = [
  ["an end within a part", part('name="a"', "1")],
  ["a part without a name", "--XX\r\nContent-Type: text/csv\r\n\r\n1\r\n--XX--"],
  ["text after a boundary", `--XXY\r\n\r\n1\r\n--XX--`],
  ["a long head", `--XX\r\nX: ${"y".repeat(600)}\r\n\r\n1\r\n--XX--`],
  ["nothing", ""],
];
for (const [title, body] of broken) {
  Deno.test(`partsOf() refuses ${title}`, () => assert.rejects(read(body, [7]), MultipartError));
}
