/**
 * An immutable map from keys to texts. A change copies the buckets that it touches and shares all others, so that its cost hardly
 * depends on the number of records.
 */

/** Null: the record is removed. */
export type RecordChange = readonly [key: string, text: string | null];

const BUCKET_COUNT = 1024;

type Bucket = ReadonlyMap<string, string> | undefined;

export class RecordMap implements Iterable<[key: string, text: string]> {
  private constructor(private readonly buckets: readonly Bucket[], readonly size: number) {}

  static of(records: Iterable<RecordChange> = []): RecordMap {
    return new RecordMap(new Array(BUCKET_COUNT).fill(undefined), 0).with(records);
  }

  get(key: string): string | undefined {
    return this.buckets[bucketOf(key)]?.get(key);
  }

  has(key: string): boolean {
    return this.buckets[bucketOf(key)]?.has(key) === true;
  }

  *[Symbol.iterator](): Iterator<[key: string, text: string]> {
    for (const bucket of this.buckets) if (bucket !== undefined) yield* bucket;
  }

  /** Returns the records after the changes. */
  with(changes: Iterable<RecordChange>): RecordMap {
    const buckets = this.buckets.slice();
    const copied = new Map<number, Map<string, string>>();
    let { size } = this;
    for (const [key, text] of changes) {
      const index = bucketOf(key);
      let bucket = copied.get(index);
      if (bucket === undefined) {
        copied.set(index, bucket = new Map(buckets[index]));
        buckets[index] = bucket;
      }
      size -= bucket.size;
      if (text === null) bucket.delete(key);
      else bucket.set(key, text);
      size += bucket.size;
    }
    return new RecordMap(buckets, size);
  }
}

/** FNV-1a over the code units. */
function bucketOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let k = 0; k < key.length; k++) hash = Math.imul(hash ^ key.charCodeAt(k), 0x01000193);
  return (hash ^ (hash >>> 16)) & (BUCKET_COUNT - 1);
}
