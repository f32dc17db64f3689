/** Byte arrays as a whole: joined, and written. */

/** Copies parts one after the other. A single part is returned as it is. */
export function joinedBytes<Buffer extends ArrayBufferLike>(
  parts: readonly Uint8Array<Buffer>[],
): Uint8Array<Buffer | ArrayBuffer> {
  const [first] = parts;
  if (first !== undefined && parts.length === 1) return first;
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Writes until nothing is left: one call may write a part. */
export async function writeAll(
  target: { write(bytes: Uint8Array): Promise<number> },
  bytes: Uint8Array,
): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await target.write(bytes.subarray(at));
}
