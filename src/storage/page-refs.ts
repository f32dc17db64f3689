/**
 * References to pages and lists of pages as they are published: numbers in one block, so that a table of many pages is one object to
 * be posted.
 */
import type { PartRef } from "./contract.ts";
import { Page } from "./page.ts";
import type { Part } from "./segments.ts";

/** Numbers of a part: those of a `PartRef` in order. Timestamps and partitions are integers of 64 bits. */
const PART_NUMBERS = 16;
const TIMESTAMP_MIN = 8,
  TIMESTAMP_MAX = 9,
  PARTITION_MIN = 10,
  PARTITION_MAX = 11,
  CHUNK_BYTES = 12,
  VERSION = 13,
  FORMATS = 14,
  IS_LIST = 15;

export function packRefs(parts: readonly Part[]): Float64Array {
  const numbers = new Float64Array(PART_NUMBERS * parts.length);
  const integers = new BigInt64Array(numbers.buffer);
  for (let k = 0, at = 0; k < parts.length; k++, at += PART_NUMBERS) {
    const part = parts[k], { extent, count, rowCount, first, last } = part;
    if (part instanceof Page) {
      numbers[at] = part.id;
      numbers[at + 1] = part.block?.address ?? 0;
      for (const [, bytes] of part.fileBytes) numbers[at + CHUNK_BYTES] += bytes;
    } else numbers[at + IS_LIST] = 1;
    if (extent !== undefined) {
      numbers[at + 2] = extent.file;
      numbers[at + 3] = extent.offset;
      numbers[at + 4] = extent.sizeBytes;
      numbers[at + 5] = extent.crc;
    }
    numbers[at + 6] = count;
    numbers[at + 7] = rowCount;
    integers[at + TIMESTAMP_MIN] = first.timestampMin;
    integers[at + TIMESTAMP_MAX] = last.timestampMax;
    integers[at + PARTITION_MIN] = first.partition;
    integers[at + PARTITION_MAX] = last.partition;
    numbers[at + VERSION] = part.version;
    numbers[at + FORMATS] = part.formats;
  }
  return numbers;
}

export function refsOf(numbers: Float64Array): PartRef[] {
  const integers = new BigInt64Array(numbers.buffer, numbers.byteOffset, numbers.length);
  return Array.from({ length: numbers.length / PART_NUMBERS }, (_, k) => new Ref(numbers, integers, PART_NUMBERS * k));
}

class Ref implements PartRef {
  constructor(
    private readonly numbers: Float64Array,
    private readonly integers: BigInt64Array,
    private readonly start: number,
  ) {}

  get id(): number {
    return this.numbers[this.start];
  }

  get address(): number {
    return this.numbers[this.start + 1];
  }

  get file(): number {
    return this.numbers[this.start + 2];
  }

  get offset(): number {
    return this.numbers[this.start + 3];
  }

  get sizeBytes(): number {
    return this.numbers[this.start + 4];
  }

  get crc(): number {
    return this.numbers[this.start + 5];
  }

  get count(): number {
    return this.numbers[this.start + 6];
  }

  get rowCount(): number {
    return this.numbers[this.start + 7];
  }

  get timestampMin(): bigint {
    return this.integers[this.start + TIMESTAMP_MIN];
  }

  get timestampMax(): bigint {
    return this.integers[this.start + TIMESTAMP_MAX];
  }

  get partitionMin(): bigint {
    return this.integers[this.start + PARTITION_MIN];
  }

  get partitionMax(): bigint {
    return this.integers[this.start + PARTITION_MAX];
  }

  get chunkBytes(): number {
    return this.numbers[this.start + CHUNK_BYTES];
  }

  get version(): number {
    return this.numbers[this.start + VERSION];
  }

  get formats(): number {
    return this.numbers[this.start + FORMATS];
  }

  get isList(): boolean {
    return this.numbers[this.start + IS_LIST] === 1;
  }
}
