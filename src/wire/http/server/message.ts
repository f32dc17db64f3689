/** What a handler gets and gives. */
import type { HeaderList, RequestHead } from "./head.ts";

/** Bytes of a body: whole, or as they come. */
export type ReplyBody = Uint8Array | AsyncIterable<Uint8Array>;

export interface Reply {
  status: number;
  /** Without those that frame the body, unless a length is wanted. */
  headers: HeaderList;
  body?: ReplyBody;
  /** The connection ends behind this reply. */
  isLast?: boolean;
}

/** A connection, as something to tell from others. */
// deno-lint-ignore no-empty-interface
export interface ServedConnection {}

export type ReadBody = (maxBytes: number) => Promise<Uint8Array | undefined>;

export class HttpRequest {
  /** Called when the last byte of the reply was sent, or nobody is there to take it. */
  onDone: (() => void) | undefined;
  private controller: AbortController | undefined;
  private isGone = false;

  constructor(
    readonly head: RequestHead,
    /** The whole body; undefined when it is longer than `maxBytes`. */
    readonly readBody: ReadBody,
    /** The one that it came on. */
    readonly connection: ServedConnection,
  ) {}

  get method(): string {
    return this.head.method;
  }

  header(name: string): string | undefined {
    return this.head.headers.get(name);
  }

  /** Aborted when the client leaves. */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.isGone) this.controller.abort();
    }
    return this.controller.signal;
  }

  gone(): void {
    this.isGone = true;
    this.controller?.abort();
  }
}
