/**
 * Messages to the writer, as bare buffers. `receiveMessageOnPort` visits each object of a message by JavaScript, and each value of a
 * view, but nothing of a buffer. A command that adds a row takes 15 to 30 us as buffers, posting included, and 70 to 150 as objects, for which V8
 * also compiles that function again and again.
 *
 *     first buffer   u32: bytes of the text; the text (JSON); small views, each at a multiple of 8 bytes
 *     others         those of large views, which are transferred
 */
import { packAnswers, unpackAnswers } from "./answer-message.ts";
import { packAppend, unpackAppend } from "./append-message.ts";
import { align } from "./bytes.ts";
import type { Answers, Envelope } from "./client.ts";
import type { AppendBatch } from "./contract.ts";
import { MESSAGE_BYTES_MAX } from "./shared-queue.ts";

const VIEWS = { u8: Uint8Array, i32: Int32Array, i64: BigInt64Array, f64: Float64Array } as const;

const VIEW_NAMES = Object.keys(VIEWS) as (keyof typeof VIEWS)[];

/** A view in the text. */
interface PackedView {
  $view: keyof typeof VIEWS;
  /** Number of its buffer. 0: it is among the small views, and `at` counts from there. */
  buffer: number;
  at: number;
  /** In elements. */
  length: number;
}

/** What JSON lacks: BigInts, and numbers that are not finite. */
interface PackedInteger {
  $integer: string;
}
interface PackedNumber {
  $number: string;
}

/** Views of at least this size keep their buffer if they cover all of it. Copying smaller ones takes less time than transferring them. */
const OWN_BUFFER_BYTES_MIN = 65_536;
const TEXT_AT = Uint32Array.BYTES_PER_ELEMENT;

const encoder = new TextEncoder(), decoder = new TextDecoder();

/** A value of objects, lists, texts, numbers, BigInts and views. Its buffers are transferred, or copied. */
export function pack(value: unknown): ArrayBuffer[] {
  const parts: Uint8Array[] = [], others: ArrayBuffer[] = [];
  let size = 0;
  const packView = (bytes: ArrayBufferView): PackedView => {
    const { buffer, byteOffset, byteLength } = bytes;
    const $view = VIEW_NAMES.find((name) => bytes instanceof VIEWS[name]) ?? "u8";
    const length = byteLength / VIEWS[$view].BYTES_PER_ELEMENT, known = others.indexOf(buffer as ArrayBuffer) + 1;
    if (known > 0) return { $view, buffer: known, at: byteOffset, length };
    const isWhole = buffer instanceof ArrayBuffer && byteLength === buffer.byteLength;
    if (isWhole && byteLength >= OWN_BUFFER_BYTES_MIN) return { $view, buffer: others.push(buffer), at: 0, length };
    const at = size;
    parts.push(new Uint8Array(buffer, byteOffset, byteLength));
    size = align(at + byteLength, 8);
    return { $view, buffer: 0, at, length };
  };
  const walk = (item: unknown): unknown => {
    if (typeof item === "bigint") return { $integer: String(item) } satisfies PackedInteger;
    if (typeof item === "number" && !Number.isFinite(item)) return { $number: String(item) } satisfies PackedNumber;
    if (item === null || typeof item !== "object") return item;
    if (ArrayBuffer.isView(item)) return packView(item);
    if (Array.isArray(item)) return item.map(walk);
    const { buffer } = item as Partial<AppendBatch>;
    if (buffer instanceof ArrayBuffer && buffer.byteLength >= OWN_BUFFER_BYTES_MIN && !others.includes(buffer)) {
      others.push(buffer);
    }
    const copy: Record<string, unknown> = {};
    for (const key of Object.keys(item)) if (key !== "buffer") copy[key] = walk((item as Record<string, unknown>)[key]);
    return copy;
  };
  const text = encoder.encode(JSON.stringify(walk(value))), from = align(TEXT_AT + text.length, 8);
  const first = new Uint8Array(from + size);
  new DataView(first.buffer).setUint32(0, text.length, true);
  first.set(text, TEXT_AT);
  let at = from;
  for (const part of parts) {
    first.set(part, at);
    at = align(at + part.length, 8);
  }
  return [first.buffer, ...others];
}

/** The inverse of `pack`. */
export function unpack(buffers: readonly ArrayBuffer[]): unknown {
  const first = buffers[0]!, length = new DataView(first).getUint32(0, true), from = align(TEXT_AT + length, 8);
  const walk = (item: unknown): unknown => {
    if (item === null || typeof item !== "object") return item;
    if (Array.isArray(item)) {
      for (let k = 0; k < item.length; k++) if (typeof item[k] === "object") item[k] = walk(item[k]);
      return item;
    }
    if ("$view" in item) {
      const { $view, buffer, at, length } = item as PackedView;
      return new VIEWS[$view](buffers[buffer]!, buffer === 0 ? from + at : at, length);
    }
    if ("$integer" in item) return BigInt((item as PackedInteger).$integer);
    if ("$number" in item) return Number((item as PackedNumber).$number);
    const record = item as Record<string, unknown>;
    for (const key of Object.keys(record)) if (typeof record[key] === "object") record[key] = walk(record[key]);
    return record;
  };
  return walk(JSON.parse(decoder.decode(new Uint8Array(first, TEXT_AT, length))));
}

/** A command, as `unpackCommand` reads it. */
export function packCommand(envelope: Envelope): ArrayBuffer[] {
  const append = packAppend(envelope, MESSAGE_BYTES_MAX);
  return append === undefined ? pack(envelope) : [append];
}

export function unpackCommand(buffers: readonly ArrayBuffer[]): Envelope {
  return unpackAppend(buffers[0]!) ?? unpack(buffers) as Envelope;
}

/** What the writer answers, as `unpackAnswer` reads it. */
export function packAnswer(answers: Answers): ArrayBuffer[] {
  const known = packAnswers(answers, MESSAGE_BYTES_MAX);
  return known === undefined ? pack(answers) : [known];
}

export function unpackAnswer(buffers: readonly ArrayBuffer[]): Answers {
  return unpackAnswers(buffers[0]!) ?? unpack(buffers) as Answers;
}
