/**
 * The most frequent command, which adds rows in the form of blocks of the log, as a message to the writer without JSON. Making and reading
 * the text of a command takes longer than adding a row.
 *
 *     u32 0, where other messages (`messages.ts`) have the bytes of their text; u32 number of batches; f64 id of the command
 *     for each batch   u32 table, u32 bytes of the payload
 *     payloads         each at a multiple of 8 bytes
 */
import { align } from "./bytes.ts";
import type { Envelope } from "./client.ts";
import type { EncodedBatch, TableRows } from "./contract.ts";

const ID_AT = 8, HEAD_BYTES = 16, BATCH_BYTES = 8, WORD_BYTES = 4;

/** The message for a command whose rows all have this form, unless it is larger than `bytesMax`. */
export function packAppend({ id, command }: Envelope, bytesMax: number): ArrayBuffer | undefined {
  if (command.kind !== "append") return undefined;
  let count = 0, payloadBytes = 0;
  for (const { batches } of command.changes) {
    for (const batch of batches) {
      if (!("payload" in batch) || "columns" in batch) return undefined;
      count++;
      payloadBytes += align(batch.payload.length, 8);
    }
  }
  const sizeBytes = HEAD_BYTES + BATCH_BYTES * count + payloadBytes;
  if (sizeBytes > bytesMax) return undefined;
  const bytes = new Uint8Array(sizeBytes), words = new Uint32Array(bytes.buffer);
  words[1] = count;
  new Float64Array(bytes.buffer, ID_AT, 1)[0] = id;
  let word = HEAD_BYTES / WORD_BYTES, at = HEAD_BYTES + BATCH_BYTES * count;
  for (const { tableId, batches } of command.changes) {
    for (const { payload } of batches as EncodedBatch[]) {
      words[word++] = tableId;
      words[word++] = payload.length;
      bytes.set(payload, at);
      at += align(payload.length, 8);
    }
  }
  return bytes.buffer;
}

/** Undefined if it is another message. */
export function unpackAppend(buffer: ArrayBuffer): Envelope | undefined {
  const words = new Uint32Array(buffer, 0, buffer.byteLength / WORD_BYTES);
  if (words[0] !== 0) return undefined;
  const count = words[1], [id] = new Float64Array(buffer, ID_AT, 1), changes: TableRows[] = [];
  let at = HEAD_BYTES + BATCH_BYTES * count;
  for (let k = 0, word = HEAD_BYTES / WORD_BYTES; k < count; k++, word += 2) {
    const payload = new Uint8Array(buffer, at, words[word + 1]), rowCount = words[at / WORD_BYTES];
    changes.push({ tableId: words[word], batches: [{ rowCount, payload, buffer }] });
    at += align(payload.length, 8);
  }
  return { id, command: { kind: "append", changes } };
}
