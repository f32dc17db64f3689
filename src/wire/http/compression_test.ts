import assert from "node:assert/strict";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { compressed, CompressedStream, type ContentCoding } from "./compression.ts";

const inflate = { gzip: gunzipSync, zstd: zstdDecompressSync };

async function read(stream: AsyncIterable<Uint8Array>, coding: ContentCoding): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece.slice());
  return inflate[coding](Buffer.concat(pieces));
}

/** Bytes that take some work to compress. */
function bytesOf(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  for (let at = 0, state = 1; at < size; at++) bytes[at] = (state = Math.imul(state, 48271)) >>> 27;
  return bytes;
}

for (const coding of ["gzip", "zstd"] as const) {
  Deno.test(`CompressedStream lets others work between slices of a large piece, ${coding}`, async () => {
    const bytes = bytesOf(8 << 20);
    let nowMs = 0, turns = 0;
    const timer = setInterval(() => turns++, 0);
    // By this clock each slice takes 10 ms, so the number of turns does not depend on the machine.
    const stream = new CompressedStream([bytes].values(), coding, () => nowMs += 10);
    const back = await read(stream, coding);
    clearInterval(timer);
    assert.ok(back.length === bytes.length && Buffer.compare(back, bytes) === 0);
    assert.ok(turns >= 3, `${turns} turns`);
  });

  Deno.test(`compressed() compresses small documents at once and leaves large ones to the stream, ${coding}`, async () => {
    const small = [bytesOf(5_000), bytesOf(7_000)];
    const whole = compressed(small, coding);
    assert.ok(whole instanceof Uint8Array);
    assert.deepEqual(new Uint8Array(inflate[coding](whole)), new Uint8Array(Buffer.concat(small)));
    const large = [bytesOf(5_000), bytesOf(1 << 20)];
    const stream = compressed(large, coding);
    assert.ok(stream instanceof CompressedStream);
    assert.equal(Buffer.compare(await read(stream, coding), Buffer.concat(large)), 0);
    assert.equal(compressed([bytesOf(4_096)], coding), undefined);
  });
}
