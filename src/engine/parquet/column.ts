/** Reads one column of a row group, page after page, into a vector. Holds one page at a time. */
import { type Layout, layoutOf } from "../../types/mod.ts";
import { nullWords, type Workspace } from "../columns.ts";
import { type ColumnExtent, type Conversion, type ParquetColumn, ParquetError, readAt } from "./file.ts";
import {
  checkCrc,
  checkPageHeader,
  decodeDelta,
  decodeRuns,
  decompress,
  ENCODING,
  joinStreams,
  PAGE,
  type PageHeader,
  readPageHeader,
} from "./page.ts";

/** Values without nulls: numbers of 1, 2 or 4 bytes, or words of wider ones. */
type Values = Int8Array | Int16Array | Int32Array;

const READ_BYTES = 1 << 18;

export class ColumnReader {
  private readonly layout: Layout;
  /** Bytes of the file from `windowOffset` on. */
  private window = new Uint8Array(0);
  private windowOffset = 0;
  private offset: number;
  private readonly end: number;
  private valuesLeft: number;

  private dictionary?: Values;
  /** The page at hand: 1 for each row that has a value (undefined: all), and the values. */
  private present?: Int32Array;
  private values: Values = new Int32Array(0);
  private rowCount = 0;
  private row = 0;
  private value = 0;
  /** Blocks with the bytes of texts: of the dictionary, of the page at hand, and of pages whose rows are in the last batch. */
  private dictionaryBlock = 0;
  private pageBlock = 0;
  private oldBlocks: number[] = [];

  constructor(
    private readonly column: ParquetColumn,
    private readonly extent: ColumnExtent,
    private readonly handle: Deno.FsFile,
    private readonly space: Workspace,
  ) {
    this.layout = layoutOf(column.type);
    this.offset = extent.offset;
    this.end = extent.offset + extent.sizeBytes;
    this.valuesLeft = extent.valueCount;
  }

  /** Writes the next rows to the column at `address`, from row `from` on. Texts are valid until `forget`. */
  read(address: number, from: number, rowCount: number): void {
    for (let done = 0; done < rowCount;) {
      while (this.row >= this.rowCount) this.nextPage();
      const n = Math.min(rowCount - done, this.rowCount - this.row);
      this.write(address, from + done, n);
      done += n;
      this.row += n;
    }
  }

  /** The rows read before are done with. */
  forget(): void {
    for (const block of this.oldBlocks) this.space.free(block);
    this.oldBlocks = [];
  }

  close(): void {
    this.forget();
    if (this.pageBlock !== 0) this.space.free(this.pageBlock);
    if (this.dictionaryBlock !== 0) this.space.free(this.dictionaryBlock);
    this.pageBlock = this.dictionaryBlock = 0;
  }

  private bytes(offset: number, length: number): Uint8Array {
    if (offset < this.windowOffset || offset + length > this.windowOffset + this.window.length) {
      const size = Math.min(Math.max(length, READ_BYTES), this.end - offset);
      if (size < length) throw new ParquetError("a column's pages end too early");
      this.window = new Uint8Array(size);
      this.windowOffset = offset;
      readAt(this.handle, offset, this.window);
    }
    const at = offset - this.windowOffset;
    return this.window.subarray(at, at + length);
  }

  private nextPage(): void {
    if (this.valuesLeft <= 0 || this.offset >= this.end) {
      throw new ParquetError("a column has fewer values than its row group has rows");
    }
    const header = this.header();
    checkPageHeader(header, this.end - this.offset - header.headerBytes);
    const page = this.bytes(this.offset + header.headerBytes, header.compressedSizeBytes);
    this.offset += header.headerBytes + header.compressedSizeBytes;
    checkCrc(header, page);
    const { codec } = this.extent;
    if (header.type === PAGE.dictionary) {
      if (this.dictionary !== undefined) throw new ParquetError("a column has two dictionaries");
      const block = this.pageBlock;
      this.pageBlock = 0;
      this.dictionary = this.plain(decompress(codec, page, header.sizeBytes), header.valueCount);
      this.dictionaryBlock = this.pageBlock;
      this.pageBlock = block;
    } else if (header.type === PAGE.data || header.type === PAGE.dataV2) this.dataPage(header, page);
    else if (header.type !== PAGE.index) throw new ParquetError(`a page is of unknown type ${header.type}`);
  }

  private header(): PageHeader {
    const size = Math.min(this.end - this.offset, 256);
    try {
      return readPageHeader(this.bytes(this.offset, size));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      // Statistics of long texts make long headers.
      return readPageHeader(this.bytes(this.offset, Math.min(this.end - this.offset, READ_BYTES)));
    }
  }

  private dataPage(header: PageHeader, page: Uint8Array): void {
    const { valueCount } = header, { optional } = this.column;
    if (valueCount > this.valuesLeft) throw new ParquetError("a column has more values than its row group has rows");
    let levels: Uint8Array | undefined, body: Uint8Array;
    if (header.type === PAGE.data) {
      body = decompress(this.extent.codec, page, header.sizeBytes);
      if (optional) {
        if (header.levelEncoding !== ENCODING.rle) {
          throw new ParquetError("its levels are in an encoding that nobody writes any more");
        }
        if (body.length < 4) throw new ParquetError("a page ends before its levels");
        const size = (body[0] | (body[1] << 8) | (body[2] << 16) | (body[3] << 24)) >>> 0;
        if (size + 4 > body.length) throw new ParquetError("a page ends within its levels");
        levels = body.subarray(4, 4 + size);
        body = body.subarray(4 + size);
      }
    } else {
      const before = header.repetitionBytes + header.definitionBytes;
      if (optional) levels = page.subarray(header.repetitionBytes, before);
      body = page.subarray(before);
      if (before > header.sizeBytes) throw new ParquetError("a page's levels are longer than the page");
      if (header.isCompressed) body = decompress(this.extent.codec, body, header.sizeBytes - before);
    }
    let present: Int32Array | undefined, presentCount = valueCount;
    if (levels !== undefined) {
      present = decodeRuns(levels, 1, valueCount);
      presentCount = 0;
      for (let i = 0; i < valueCount; i++) presentCount += present[i];
    }
    if (this.pageBlock !== 0) this.oldBlocks.push(this.pageBlock);
    this.pageBlock = 0;
    this.present = presentCount === valueCount ? undefined : present;
    this.values = this.decode(header.encoding, body, presentCount);
    this.rowCount = valueCount;
    this.valuesLeft -= valueCount;
    this.row = this.value = 0;
  }

  private decode(encoding: number, bytes: Uint8Array, count: number): Values {
    const { conversion } = this.column;
    if (encoding === ENCODING.dictionary || encoding === ENCODING.plainDictionary) return this.lookUp(bytes, count);
    if (encoding === ENCODING.plain) return this.plain(bytes, count);
    if (encoding === ENCODING.rle && conversion === "boolean") {
      // The runs' size stands before them.
      return Int8Array.from(decodeRuns(bytes.subarray(4), 1, count));
    }
    if (encoding === ENCODING.delta && isNumber(conversion)) {
      const { words } = decodeDelta(bytes, 0, count);
      if (conversion === "i64") return words;
      const low = new Int32Array(count);
      for (let i = 0; i < count; i++) low[i] = words[i * 2];
      return convert(conversion, low, count);
    }
    if (encoding === ENCODING.deltaLength && conversion === "text") return this.deltaLength(bytes, count);
    if (encoding === ENCODING.deltaText && conversion === "text") return this.deltaText(bytes, count);
    if (encoding === ENCODING.split && conversion !== "text" && conversion !== "boolean") {
      return this.plain(joinStreams(bytes, widthOf(this.column), count), count);
    }
    throw new ParquetError(`encoding ${encoding} is not known for this type`);
  }

  private lookUp(bytes: Uint8Array, count: number): Values {
    if (count === 0) return new Int32Array(0);
    const { dictionary, layout } = this;
    if (dictionary === undefined || bytes.length === 0) {
      throw new ParquetError("a page refers to a dictionary that is not there");
    }
    const indices = decodeRuns(bytes.subarray(1), bytes[0], count);
    const words = wordCount(layout), entries = dictionary.length / words;
    for (let i = 0; i < count; i++) {
      if (indices[i] >>> 0 >= entries) {
        throw new ParquetError("a page refers to an entry that its dictionary has not");
      }
    }
    if (dictionary instanceof Int32Array) {
      const out = new Int32Array(count * words);
      if (words === 1) { for (let i = 0; i < count; i++) out[i] = dictionary[indices[i]]; }
      else if (words === 2) {
        for (let i = 0, at = 0; i < count; i++) {
          const from = indices[i] * 2;
          out[at++] = dictionary[from];
          out[at++] = dictionary[from + 1];
        }
      } else {for (let i = 0, at = 0; i < count; i++) {
          for (let k = 0; k < words; k++) out[at++] = dictionary[indices[i] * words + k];
        }}
      return out;
    }
    const out = dictionary instanceof Int8Array ? new Int8Array(count) : new Int16Array(count);
    for (let i = 0; i < count; i++) out[i] = dictionary[indices[i]];
    return out;
  }

  private plain(bytes: Uint8Array, count: number): Values {
    const { conversion } = this.column;
    if (conversion === "boolean") {
      if (count > bytes.length * 8) throw new ParquetError("a page's values end too early");
      const out = new Int8Array(count);
      for (let i = 0; i < count; i++) out[i] = (bytes[i >>> 3] >>> (i & 7)) & 1;
      return out;
    }
    if (conversion === "text") return this.plainText(bytes, count);
    const width = widthOf(this.column), size = width * count;
    if (size > bytes.length) throw new ParquetError("a page's values end too early");
    // A copy, because a view needs its alignment.
    const words = new Int32Array(bytes.slice(0, size).buffer);
    if (conversion === "int96") return fromInt96(words, count);
    if (conversion === "uuid") return fromUuid(words, count);
    return convert(conversion, words, count);
  }

  /** Length (u32) and bytes of each text. The bytes stay together as they are. */
  private plainText(bytes: Uint8Array, count: number): Int32Array {
    const base = this.textBlock(bytes), pairs = new Int32Array(count * 2);
    let at = 0;
    for (let i = 0; i < count; i++) {
      if (at + 4 > bytes.length) throw new ParquetError("a page's texts end too early");
      const length = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
      at += 4;
      if (length < 0 || at + length > bytes.length) throw new ParquetError("a page's texts end too early");
      pairs[i * 2] = base + at;
      pairs[i * 2 + 1] = length;
      at += length;
    }
    return pairs;
  }

  private deltaLength(bytes: Uint8Array, count: number): Int32Array {
    const { words, end } = decodeDelta(bytes, 0, count), texts = bytes.subarray(end);
    const base = this.textBlock(texts), pairs = new Int32Array(count * 2);
    let at = 0;
    for (let i = 0; i < count; i++) {
      const length = words[i * 2];
      if (length < 0 || at + length > texts.length) throw new ParquetError("a page's texts end too early");
      pairs[i * 2] = base + at;
      pairs[i * 2 + 1] = length;
      at += length;
    }
    return pairs;
  }

  /** Each text begins with a piece of the one before. */
  private deltaText(bytes: Uint8Array, count: number): Int32Array {
    const prefixes = decodeDelta(bytes, 0, count), suffixes = decodeDelta(bytes, prefixes.end, count);
    let total = 0, before = 0;
    for (let i = 0; i < count; i++) {
      const prefix = prefixes.words[i * 2], suffix = suffixes.words[i * 2];
      if (prefix < 0 || suffix < 0 || prefix > before) throw new ParquetError("a page's texts do not fit together");
      before = prefix + suffix;
      total += before;
      if (total > 0x7fffffff) throw new ParquetError("a page's texts are too long");
    }
    const base = this.pageBlock = this.space.allocate(total), { u8 } = this.space.heap;
    const pairs = new Int32Array(count * 2);
    let to = base, last = base;
    for (let i = 0, from = suffixes.end; i < count; i++) {
      const prefix = prefixes.words[i * 2], suffix = suffixes.words[i * 2];
      if (from + suffix > bytes.length) throw new ParquetError("a page's texts end too early");
      u8.copyWithin(to, last, last + prefix);
      u8.set(bytes.subarray(from, from + suffix), to + prefix);
      pairs[i * 2] = to;
      pairs[i * 2 + 1] = prefix + suffix;
      last = to;
      to += prefix + suffix;
      from += suffix;
    }
    return pairs;
  }

  private textBlock(bytes: Uint8Array): number {
    this.pageBlock = this.space.allocate(bytes.length);
    this.space.heap.u8.set(bytes, this.pageBlock);
    return this.pageBlock;
  }

  /** Rows of the page at hand, with nulls where there is no value. */
  private write(address: number, from: number, rowCount: number): void {
    const { present, layout } = this, { heap } = this.space;
    const words = wordCount(layout);
    const view: Values = layout === "i8" ? heap.i8 : layout === "i16" ? heap.i16 : heap.i32;
    let to = address / view.BYTES_PER_ELEMENT + from * words, value = this.value * words;
    const values = this.values;
    if (present === undefined) {
      view.set(values.subarray(value, value + rowCount * words), to);
      this.value += rowCount;
      return;
    }
    const none = nullWords(this.column.type);
    let used = 0;
    if (words === 1) {
      for (let row = this.row, end = row + rowCount; row < end; row++) {
        if (present[row] !== 0) {
          view[to++] = values[value++];
          used++;
        } else view[to++] = none[0];
      }
    } else {
      for (let row = this.row, end = row + rowCount; row < end; row++) {
        if (present[row] !== 0) {
          for (let k = 0; k < words; k++) view[to++] = values[value++];
          used++;
        } else for (let k = 0; k < words; k++) view[to++] = none[k];
      }
    }
    this.value += used;
  }
}

function wordCount(layout: Layout): number {
  return layout === "i128" ? 4 : layout === "i64" || layout === "f64" || layout === "text" ? 2 : 1;
}

function isNumber(conversion: Conversion): boolean {
  return conversion.startsWith("i32") || conversion === "i64" || conversion === "days" || conversion === "u32 to i64";
}

/** Bytes of a stored value. */
function widthOf(column: ParquetColumn): number {
  switch (column.conversion) {
    case "i64":
    case "f64":
      return 8;
    case "int96":
      return 12;
    case "uuid":
      return 16;
    default:
      return 4;
  }
}

/** Stored numbers as they lie in columns here. */
function convert(conversion: Conversion, words: Int32Array, count: number): Values {
  switch (conversion) {
    case "i32 to i8":
      return Int8Array.from(words);
    case "i32 to i16":
      return Int16Array.from(words);
    case "i32 to i64":
    case "u32 to i64": {
      const out = new Int32Array(count * 2), signed = conversion === "i32 to i64";
      for (let i = 0; i < count; i++) {
        out[i * 2] = words[i];
        out[i * 2 + 1] = signed ? words[i] >> 31 : 0;
      }
      return out;
    }
    case "days": {
      const out = new Int32Array(count * 2);
      for (let i = 0; i < count; i++) {
        const milliseconds = words[i] * 86_400_000;
        out[i * 2] = milliseconds;
        out[i * 2 + 1] = Math.floor(milliseconds / 4294967296);
      }
      return out;
    }
    default:
      return words;
  }
}

/** Nanoseconds of the day (64 bits) and the Julian day, to microseconds since 1970. */
function fromInt96(words: Int32Array, count: number): Int32Array {
  const out = new Int32Array(count * 2);
  for (let i = 0; i < count; i++) {
    const nanos = (words[i * 3] >>> 0) + words[i * 3 + 1] * 4294967296;
    const micros = (words[i * 3 + 2] - 2_440_588) * 86_400_000_000 + Math.floor(nanos / 1_000);
    out[i * 2] = micros % 4294967296;
    out[i * 2 + 1] = Math.floor(micros / 4294967296);
  }
  return out;
}

/** Most significant byte first, to words with the lowest first. */
function fromUuid(words: Int32Array, count: number): Int32Array {
  const out = new Int32Array(count * 4);
  for (let i = 0; i < count; i++) {
    for (let k = 0; k < 4; k++) {
      const word = words[i * 4 + 3 - k];
      out[i * 4 + k] = (word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);
    }
  }
  return out;
}
