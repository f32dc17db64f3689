/** Reads one column of a row group into a vector, page by page. */
import { type Layout, layoutOf, typeOf } from "../../types/mod.ts";
import { TextArena, type Workspace } from "../columns.ts";
import type { Values } from "./conversion.ts";
import { ParquetError } from "./error.ts";
import type { ColumnExtent } from "./footer.ts";
import { PageReader, type ReadBuffer } from "./pages.ts";
import type { ParquetColumn } from "./schema.ts";

export interface ColumnReader {
  /** Writes the next rows to the column at `address`, starting at row `from`. Texts are valid until `forget`. */
  read(address: number, from: number, rowCount: number): void;
  /** Releases the rows read before. */
  forget(): void;
  /** @throws when there are values of more rows than were read. */
  finish(): void;
  close(): void;
}

export function columnReader(
  column: ParquetColumn,
  extent: ColumnExtent,
  handle: Deno.FsFile,
  space: Workspace,
  readBuffer: ReadBuffer,
): ColumnReader {
  const pages = new PageReader(column, extent, handle, space, readBuffer);
  return column.dimensions.length > 0 ? new ArrayReader(column, pages, space) : new FlatReader(column, pages, space);
}

class FlatReader implements ColumnReader {
  private readonly layout: Layout;
  /** The next row of the current page, and its value. */
  private row = 0;
  private value = 0;

  constructor(
    private readonly column: ParquetColumn,
    private readonly pages: PageReader,
    private readonly space: Workspace,
  ) {
    this.layout = layoutOf(column.type);
  }

  read(address: number, from: number, rowCount: number): void {
    const { pages } = this;
    for (let done = 0; done < rowCount;) {
      if (this.row >= pages.valueCount) {
        pages.next();
        this.row = this.value = 0;
      }
      const n = Math.min(rowCount - done, pages.valueCount - this.row);
      this.write(address, from + done, n);
      done += n;
      this.row += n;
    }
  }

  forget(): void {
    this.pages.forget();
  }

  finish(): void {
    if (this.pages.hasNext || this.row < this.pages.valueCount) {
      throw new ParquetError("a column has more values than its row group has rows");
    }
  }

  close(): void {
    this.pages.close();
  }

  /** Writes rows of the current page, with nulls where there is no value. */
  private write(address: number, from: number, rowCount: number): void {
    const { layout } = this, { heap } = this.space, { definitionMax } = this.column;
    const { definition, values, words } = this.pages;
    const view: Values = layout === "i8" ? heap.i8 : layout === "i16" ? heap.i16 : heap.i32;
    let to = address / view.BYTES_PER_ELEMENT + from * words, value = this.value * words;
    if (definition === undefined) {
      view.set(values.subarray(value, value + rowCount * words), to);
      this.value += rowCount;
      return;
    }
    const none = typeOf(this.column.type).nullWords;
    let used = 0;
    if (words === 1) {
      for (let row = this.row, end = row + rowCount; row < end; row++) {
        if (definition[row] === definitionMax) {
          view[to++] = values[value++];
          used++;
        } else view[to++] = none[0];
      }
    } else {
      for (let row = this.row, end = row + rowCount; row < end; row++) {
        if (definition[row] === definitionMax) {
          for (let k = 0; k < words; k++) view[to++] = values[value++];
          used++;
        } else for (let k = 0; k < words; k++) view[to++] = none[k];
      }
    }
    this.value += used;
  }
}

/**
 * Reads lists as arrays: see `encodeArray` for their bytes. A repetition level r > 0 means that an entry continues the
 * list of dimension r - 1; the definition level says to what depth the entry is present.
 */
class ArrayReader implements ColumnReader {
  private readonly dimensionCount: number;
  private readonly arena: TextArena;
  /** The next entry of the current page, and its value. */
  private entry = 0;
  private value = 0;
  /**
   * The current row: number of elements of its lists by dimension, so far (-1: no list), and in complete lists (-1:
   * none yet).
   */
  private readonly counts: number[];
  private readonly lengths: number[];
  private elements = new Int32Array(64);
  private elementCount = 0;
  private rowsRead = 0;

  constructor(
    private readonly column: ParquetColumn,
    private readonly pages: PageReader,
    private readonly space: Workspace,
  ) {
    this.dimensionCount = column.dimensions.length;
    this.arena = new TextArena(space);
    this.counts = column.dimensions.map(() => -1);
    this.lengths = column.dimensions.map(() => -1);
  }

  read(address: number, from: number, rowCount: number): void {
    const { u32, i32 } = this.space.heap;
    for (let at = (address >>> 2) + from * 2, end = at + rowCount * 2; at < end; at += 2) {
      const isNull = this.readRow();
      const length = isNull ? -1 : 4 + 4 * this.dimensionCount + 8 * this.elementCount;
      u32[at] = isNull ? 0 : this.arena.reserve(length);
      i32[at + 1] = length;
      if (!isNull) this.writeArray(u32[at]);
      this.rowsRead++;
    }
  }

  forget(): void {
    this.arena.release();
    this.pages.forget();
  }

  finish(): void {
    if (!this.isAtEnd()) throw new ParquetError("a column has more values than its row group has rows");
  }

  close(): void {
    this.forget();
    this.pages.close();
  }

  private isAtEnd(): boolean {
    return this.entry >= this.pages.valueCount && !this.pages.hasNext;
  }

  /** Reads the entries of one row. Returns true for null. */
  private readRow(): boolean {
    const { pages, counts, dimensionCount } = this, { definitionMax, dimensions } = this.column;
    this.elementCount = 0;
    counts.fill(-1);
    this.lengths.fill(-1);
    let isNull = false;
    for (let isFirst = true;; isFirst = false) {
      if (this.entry >= pages.valueCount) {
        if (!isFirst && !pages.hasNext) break;
        pages.next();
        this.entry = this.value = 0;
      }
      const repetition = pages.repetition === undefined ? 0 : pages.repetition[this.entry];
      if (isFirst !== (repetition === 0)) {
        if (repetition === 0) break;
        throw new ParquetError("a row begins within a list");
      }
      const definition = pages.definition === undefined ? definitionMax : pages.definition[this.entry];
      this.entry++;
      if (!isFirst) this.addElement(repetition);
      else if (definition < dimensions[0] - 1) {
        isNull = true;
        continue;
      }
      if (isNull) throw new ParquetError("a list that is null has elements");
      this.open(isFirst ? 0 : repetition, definition);
      if (definition < dimensions[dimensionCount - 1]) continue;
      this.push(definition === definitionMax);
    }
    this.closeFrom(0);
    return isNull;
  }

  /** Adds an element to the list of dimension `repetition - 1`; the lists within the previous element are complete. */
  private addElement(repetition: number): void {
    this.closeFrom(repetition);
    if (this.counts[repetition - 1] < 1) throw new ParquetError("an empty list has elements");
    this.counts[repetition - 1]++;
  }

  /** Starts the lists of dimension `from` and deeper, as far as the entry is present. */
  private open(from: number, definition: number): void {
    const { dimensions } = this.column;
    for (let k = from; k < this.dimensionCount; k++) {
      if (definition < dimensions[k] - 1) throw this.irregular("a list in it is null");
      this.counts[k] = definition >= dimensions[k] ? 1 : 0;
      if (this.counts[k] === 0) return;
    }
  }

  private closeFrom(dimension: number): void {
    const { counts, lengths } = this;
    for (let k = dimension; k < this.dimensionCount; k++) {
      if (counts[k] < 0) return;
      if (lengths[k] < 0) lengths[k] = counts[k];
      else if (lengths[k] !== counts[k]) {
        throw this.irregular(`it has lists of ${lengths[k]} and of ${counts[k]} elements at the same level`);
      }
      counts[k] = -1;
    }
  }

  private irregular(what: string): ParquetError {
    return new ParquetError(
      `row ${this.rowsRead + 1} of a row group is not a ${this.column.type}: ${what}`,
    );
  }

  private push(isThere: boolean): void {
    const at = this.elementCount++ * 2;
    if (at === this.elements.length) {
      this.space.memory.need(8 * at, this.space.operator);
      const longer = new Int32Array(at * 2);
      longer.set(this.elements);
      this.elements = longer;
    }
    if (isThere) {
      const { values } = this.pages, from = this.value++ * 2;
      this.elements[at] = values[from];
      this.elements[at + 1] = values[from + 1];
    } else {
      this.elements[at] = NAN_WORDS[0];
      this.elements[at + 1] = NAN_WORDS[1];
    }
  }

  private writeArray(address: number): void {
    const head = Uint32Array.of(this.dimensionCount, ...this.lengths.map((length) => Math.max(0, length)));
    const { u8 } = this.space.heap;
    u8.set(new Uint8Array(head.buffer), address);
    u8.set(new Uint8Array(this.elements.buffer, 0, this.elementCount * 8), address + head.byteLength);
  }
}

const NAN_WORDS = typeOf("DOUBLE").nullWords;
