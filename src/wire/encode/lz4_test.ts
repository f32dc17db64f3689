import assert from "node:assert/strict";
import fc from "../../properties.ts";
import { compressors } from "hyparquet-compressors";
import { lz4Compress } from "./lz4.ts";

function roundTrip(bytes: Uint8Array): Uint8Array {
  const packed = lz4Compress(bytes);
  assert.deepEqual(compressors.LZ4_RAW!(packed, bytes.length), bytes);
  return packed;
}

Deno.test("lz4Compress() round-trips through a decoder", () => {
  const runs = fc.array(fc.tuple(fc.uint8Array({ maxLength: 40 }), fc.integer({ min: 1, max: 400 })), {
    maxLength: 20,
  });
  fc.assert(fc.property(runs, (pieces) => {
    roundTrip(
      Uint8Array.from(pieces.flatMap(([piece, times]) => Array.from({ length: times }, () => [...piece]).flat())),
    );
  }));
});

Deno.test("lz4Compress() at sizes around its limits", () => {
  for (
    const size of [
      1,
      4,
      5,
      11,
      12,
      13,
      14,
      15,
      16,
      17,
      18,
      19,
      254,
      255,
      256,
      270,
      271,
      65_534,
      65_536,
      70_000,
      1 << 20,
    ]
  ) {
    const zeros = roundTrip(new Uint8Array(size));
    if (size > 1_000) assert.ok(zeros.length < size / 100, `${zeros.length} of ${size}`);
    const noise = new Uint8Array(size);
    for (let i = 0; i < size; i += 65_536) crypto.getRandomValues(noise.subarray(i, i + 65_536));
    assert.ok(roundTrip(noise).length <= size + size / 255 + 16);
    // The same noise again, but beyond the range of a match.
    if (size >= 65_536) roundTrip(Uint8Array.from({ length: 2 * size }, (_, i) => noise[i % size]));
  }
});
