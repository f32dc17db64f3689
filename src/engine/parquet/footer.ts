/**
 * The footer of a Parquet file, as far as it is read here. hyparquet's reader is not used: it keeps all statistics, and allocates as many
 * elements as a list claims to have.
 * @see https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
 */
import type { SchemaElement } from "hyparquet";
import { BINARY, BYTE, CompactReader, FALSE, I16, I64, LIST, STRUCT, TRUE } from "./compact.ts";
import { ParquetError } from "./error.ts";

export interface ColumnExtent {
  codec: string;
  offset: number;
  sizeBytes: number;
  /** Size when decompressed. */
  plainSizeBytes: number;
  /** Number of list entries, including nulls and empty lists. */
  valueCount: number;
}

export interface Footer {
  schema: SchemaElement[];
  /** The value of the key "questdb". */
  questdb: string | undefined;
  rowCount: number;
  rowGroups: RowGroup[];
}

/** Codec, offset, sizes and number of values. */
const EXTENT_NUMBERS = 5;

export class RowGroup {
  constructor(readonly rowCount: number, private readonly numbers: Float64Array) {}

  get columnCount(): number {
    return this.numbers.length / EXTENT_NUMBERS;
  }

  /** @param leaf below `columnCount` */
  extent(leaf: number): ColumnExtent {
    const { numbers } = this, at = leaf * EXTENT_NUMBERS, codec = numbers[at];
    return {
      codec: CODECS[codec] ?? `${codec}`,
      offset: numbers[at + 1],
      sizeBytes: numbers[at + 2],
      plainSizeBytes: numbers[at + 3],
      valueCount: numbers[at + 4],
    };
  }
}

/** Elements of a schema: columns, structs and lists. */
const ELEMENTS_MAX = 65_536;
const ROW_GROUPS_MAX = 65_536;
/** Columns of all row groups. Each takes 40 bytes. */
const EXTENTS_MAX = 1 << 20;

const utf8 = new TextDecoder();

/** @throws {ParquetError | RangeError} */
export function readFooter(bytes: Uint8Array): Footer {
  const reader = new Reader(bytes, "its footer"),
    footer: Footer = { schema: [], questdb: undefined, rowCount: -1, rowGroups: [] };
  let extentCount = 0;
  reader.fields((id) => {
    switch (id) {
      case 2:
        return reader.structs(() => {
          if (footer.schema.push(elementOf(reader)) > ELEMENTS_MAX) {
            throw new ParquetError(`its schema has more than ${ELEMENTS_MAX} elements`);
          }
        });
      case 3:
        return reader.number((value) => footer.rowCount = value);
      case 4:
        return reader.structs(() => {
          const group = rowGroupOf(reader, EXTENTS_MAX - extentCount);
          extentCount += group.columnCount;
          if (footer.rowGroups.push(group) > ROW_GROUPS_MAX) {
            throw new ParquetError(`it has more than ${ROW_GROUPS_MAX} row groups`);
          }
        });
      case 5:
        return reader.structs(() => {
          const [key, value] = keyValueOf(reader);
          if (key === "questdb") footer.questdb ??= value;
        });
    }
  });
  return footer;
}

function elementOf(reader: Reader): SchemaElement {
  const element: Partial<SchemaElement> = {};
  reader.fields((id) => {
    switch (id) {
      case 1:
        return reader.number((value) => element.type = TYPES[value]);
      case 2:
        return reader.number((value) => element.type_length = value);
      case 3:
        return reader.number((value) => element.repetition_type = REPETITIONS[value]);
      case 4:
        return reader.text((value) => element.name = value);
      case 5:
        return reader.number((value) => element.num_children = value);
      case 6:
        return reader.number((value) => element.converted_type = CONVERTED_TYPES[value]);
      case 7:
        return reader.number((value) => element.scale = value);
      case 8:
        return reader.number((value) => element.precision = value);
      case 10:
        return reader.inner(() => element.logical_type = logicalTypeOf(reader));
    }
  });
  const { name } = element;
  if (name === undefined) throw new ParquetError("an element of its schema has no name");
  return { ...element, name };
}

/** A union: the number of the only field is the type. */
function logicalTypeOf(reader: Reader): LogicalType | undefined {
  let found: { type?: string; [key: string]: unknown } = {};
  reader.fields((id) => {
    found = { type: LOGICAL_TYPES[id] };
    reader.inner(() =>
      reader.fields((inner) => {
        if (found.type === "DECIMAL") reader.number((value) => found[inner === 1 ? "scale" : "precision"] = value);
        else if (found.type === "INTEGER") {
          if (inner === 1) reader.byteNumber((value) => found.bitWidth = value);
          else reader.flag((value) => found.isSigned = value);
        } else if (found.type === "TIME" || found.type === "TIMESTAMP") {
          if (inner === 1) reader.flag((value) => found.isAdjustedToUTC = value);
          else reader.inner(() => reader.fields((unit) => found.unit = TIME_UNITS[unit]));
        }
      })
    );
  });
  return found.type === undefined ? undefined : found as LogicalType;
}

function rowGroupOf(reader: Reader, extentsMax: number): RowGroup {
  let rowCount = -1;
  const numbers: number[] = [];
  reader.fields((id) => {
    if (id === 1) {
      reader.structs(() => {
        pushExtent(reader, numbers);
        if (numbers.length > extentsMax * EXTENT_NUMBERS) {
          throw new ParquetError(`it has more than ${EXTENTS_MAX} columns in all row groups`);
        }
      });
    } else if (id === 3) reader.number((value) => rowCount = value);
  });
  return new RowGroup(rowCount, Float64Array.from(numbers));
}

function pushExtent(reader: Reader, numbers: number[]): void {
  let codec = NaN, start = Infinity, sizeBytes = NaN, plainSizeBytes = 0, valueCount = NaN;
  const begin = (offset: number) => {
    if (offset > 0) start = Math.min(start, offset);
  };
  reader.fields((id) => {
    if (id !== 3) return;
    reader.inner(() =>
      reader.fields((inner) => {
        switch (inner) {
          case 4:
            return reader.number((value) => codec = value);
          case 5:
            return reader.number((value) => valueCount = value);
          case 6:
            return reader.number((value) => plainSizeBytes = value);
          case 7:
            return reader.number((value) => sizeBytes = value);
          case 9: // the first data page
          case 11: // the dictionary
            return reader.number(begin);
        }
      })
    );
  });
  if (Number.isNaN(codec + sizeBytes + valueCount)) throw new ParquetError("a column has no metadata");
  numbers.push(codec, start, sizeBytes, plainSizeBytes, valueCount);
}

function keyValueOf(reader: Reader): [key: string, value: string | undefined] {
  let key = "", value: Uint8Array | undefined;
  reader.fields((id) => {
    if (id === 1) reader.text((text) => key = text);
    else if (id === 2) reader.binaryOf((bytes) => value = bytes);
  });
  return [key, key === "questdb" ? utf8.decode(value) : undefined];
}

/** Skips fields that are not wanted, or have another type than they should. */
class Reader extends CompactReader {
  private type = 0;

  /** Calls `field` for each field of a struct. What it does not read is skipped. */
  fields(field: (id: number) => void): void {
    this.struct((id, type) => {
      this.type = type;
      field(id);
      if (this.type !== 0) this.skip(this.type);
      this.type = 0;
    });
  }

  number(take: (value: number) => void): void {
    if (this.is(this.type >= I16 && this.type <= I64)) take(this.integer());
  }

  /** A number of one byte, which is nothing of this format but a bit width. */
  byteNumber(take: (value: number) => void): void {
    if (this.is(this.type === BYTE)) take(this.byte());
  }

  flag(take: (value: boolean) => void): void {
    const { type } = this;
    if (this.is(type === TRUE || type === FALSE)) take(type === TRUE);
  }

  binaryOf(take: (value: Uint8Array) => void): void {
    if (this.is(this.type === BINARY)) take(this.binary());
  }

  text(take: (value: string) => void): void {
    this.binaryOf((bytes) => take(utf8.decode(bytes)));
  }

  inner(read: () => void): void {
    if (this.is(this.type === STRUCT)) read();
  }

  structs(read: () => void): void {
    if (!this.is(this.type === LIST)) return;
    this.list((type) => {
      if (type !== STRUCT) throw new ParquetError("its footer has a list of another type");
      read();
    });
  }

  /** If true, the caller reads the value. */
  private is(isExpected: boolean): boolean {
    if (isExpected) this.type = 0;
    return isExpected;
  }
}

type LogicalType = NonNullable<SchemaElement["logical_type"]>;

const TYPES = ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"] as const;
const REPETITIONS = ["REQUIRED", "OPTIONAL", "REPEATED"] as const;
const CODECS = ["UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"] as const;
const CONVERTED_TYPES = [
  "UTF8",
  "MAP",
  "MAP_KEY_VALUE",
  "LIST",
  "ENUM",
  "DECIMAL",
  "DATE",
  "TIME_MILLIS",
  "TIME_MICROS",
  "TIMESTAMP_MILLIS",
  "TIMESTAMP_MICROS",
  "UINT_8",
  "UINT_16",
  "UINT_32",
  "UINT_64",
  "INT_8",
  "INT_16",
  "INT_32",
  "INT_64",
  "JSON",
  "BSON",
  "INTERVAL",
] as const;
const LOGICAL_TYPES: Record<number, LogicalType["type"]> = {
  1: "STRING",
  2: "MAP",
  3: "LIST",
  4: "ENUM",
  5: "DECIMAL",
  6: "DATE",
  7: "TIME",
  8: "TIMESTAMP",
  10: "INTEGER",
  11: "NULL",
  12: "JSON",
  13: "BSON",
  14: "UUID",
  15: "FLOAT16",
  16: "VARIANT",
  17: "GEOMETRY",
  18: "GEOGRAPHY",
};
const TIME_UNITS: Record<number, string> = { 1: "MILLIS", 2: "MICROS", 3: "NANOS" };
