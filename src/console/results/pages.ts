/**
 * The rows of a spooled result that the page holds: those around the visible ones. Others are requested when they
 * become visible.
 */
import type { Rows } from "../server/client.ts";
import { ExpiredError, fetchRows } from "../server/results.ts";

const PAGE_ROWS = 200;
/** Number of rows in a request. */
const REQUEST_ROWS = 1_000;
/** Limits beyond which pages that are not visible are dropped. Bytes are those of the replies. */
const PAGES_MAX = 200, BYTES_MAX = 32 << 20;
/** Time without further scrolling before rows are requested. */
const PATIENCE_MS = 40;

interface Page {
  rows: unknown[][];
  sizeBytes: number;
}

export class Pages {
  /** By the index of the page, in order of last use. */
  private readonly pages = new Map<number, Page>();
  private wanted = { first: 0, end: 0 };
  private timer: ReturnType<typeof setTimeout> | undefined;
  private loading: AbortController | undefined;
  private isClosed = false;

  /** `onChange`: called when rows have arrived. `onFault`: called with a message for the user. */
  constructor(
    private rows: Rows,
    private readonly onChange: () => void,
    private readonly onFault: (message: string, isExpired: boolean) => void,
  ) {
    this.hold(0, rows.dataset, 0);
  }

  /** Called when the result has more rows than before. */
  grow(rows: Rows): void {
    this.rows = rows;
    if (this.pages.size === 0) this.hold(0, rows.dataset, 0);
  }

  row(index: number): readonly unknown[] | undefined {
    return this.pages.get(Math.floor(index / PAGE_ROWS))?.rows[index % PAGE_ROWS];
  }

  /** Sets which rows are visible. */
  want(first: number, end: number): void {
    this.wanted = { first, end: Math.min(end, this.rows.count) };
    const missing = this.missing();
    if (missing === undefined) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), PATIENCE_MS);
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.loading?.abort();
  }

  /** The first visible row that is missing. */
  private missing(): number | undefined {
    for (let row = this.wanted.first; row < this.wanted.end;) {
      const page = Math.floor(row / PAGE_ROWS), held = this.pages.get(page)?.rows.length ?? 0;
      const next = (page + 1) * PAGE_ROWS;
      if (page * PAGE_ROWS + held < Math.min(next, this.wanted.end)) return page * PAGE_ROWS + held;
      row = next;
    }
    return undefined;
  }

  /** Sends one request at a time, always for the rows that are visible then. */
  private async load(): Promise<void> {
    if (this.loading !== undefined) return;
    this.loading = new AbortController();
    try {
      for (let first = this.missing(); first !== undefined && !this.isClosed; first = this.missing()) {
        const { id } = this.rows.spool!;
        const count = Math.min(REQUEST_ROWS, this.rows.count - first);
        const { dataset, sizeBytes } = await fetchRows(id, first, count, this.loading.signal);
        if (dataset.length === 0) break;
        this.hold(first, dataset, sizeBytes);
        this.dropOthers();
        this.onChange();
      }
    } catch (error) {
      if (this.isClosed) return;
      this.onFault(error instanceof Error ? error.message : String(error), error instanceof ExpiredError);
    } finally {
      this.loading = undefined;
    }
  }

  private hold(first: number, dataset: readonly unknown[][], sizeBytes: number): void {
    for (let at = 0; at < dataset.length;) {
      const index = Math.floor((first + at) / PAGE_ROWS), offset = (first + at) % PAGE_ROWS;
      const rows = dataset.slice(at, at + PAGE_ROWS - offset);
      const before = this.pages.get(index);
      this.pages.delete(index);
      this.pages.set(index, {
        rows: [...before?.rows.slice(0, offset) ?? [], ...rows],
        sizeBytes: (before?.sizeBytes ?? 0) + sizeBytes * rows.length / dataset.length,
      });
      at += rows.length;
    }
  }

  private dropOthers(): void {
    let sizeBytes = 0;
    for (const page of this.pages.values()) sizeBytes += page.sizeBytes;
    for (const [index, page] of this.pages) {
      if (this.pages.size <= PAGES_MAX && sizeBytes <= BYTES_MAX) return;
      const isInView = index * PAGE_ROWS < this.wanted.end && (index + 1) * PAGE_ROWS > this.wanted.first;
      if (isInView) continue;
      this.pages.delete(index);
      sizeBytes -= page.sizeBytes;
    }
  }
}
