/** References to pages as they are published: numbers in one block, so that a table of many pages is one object to be posted. */
import type { PageRef } from "./contract.ts";
import type { Page } from "./segments.ts";

/** Numbers of a page: those of a `PageRef` in order. The timestamps are integers of 64 bits. */
const PAGE_NUMBERS = 10;
const TIMESTAMP_MIN = 8, TIMESTAMP_MAX = 9;

export function packRefs(pages: readonly Page[]): Float64Array {
  const numbers = new Float64Array(PAGE_NUMBERS * pages.length);
  const integers = new BigInt64Array(numbers.buffer);
  for (let k = 0, at = 0; k < pages.length; k++, at += PAGE_NUMBERS) {
    const { id, block, extent, count, rowCount, first, last } = pages[k];
    numbers[at] = id;
    numbers[at + 1] = block?.address ?? 0;
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
  }
  return numbers;
}

export function refsOf(numbers: Float64Array): PageRef[] {
  const integers = new BigInt64Array(numbers.buffer, numbers.byteOffset, numbers.length);
  return Array.from({ length: numbers.length / PAGE_NUMBERS }, (_, k) => new Ref(numbers, integers, PAGE_NUMBERS * k));
}

class Ref implements PageRef {
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
}
