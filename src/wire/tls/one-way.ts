/** A connection on which the server has nothing to say after the TLS handshake. */
import type { ByteConnection } from "../byte-connection.ts";

/** Outer type of a TLS record with application data, and in TLS 1.3 of every encrypted record (RFC 8446, section 5.2). */
const APPLICATION_DATA = 23;
const HEADER_BYTES = 5;

/**
 * Drops the records that the server sends after the client's first encrypted one. In TLS 1.3 these are session tickets. A client that
 * only writes never reads them, and a socket that is closed with unread bytes is reset: the client's system then drops the rows that it
 * has not yet sent (RFC 1122, section 4.2.2.13). Deno 2.9.6 has no option that turns tickets off.
 */
export function oneWay(connection: ByteConnection): ByteConnection {
  const records = new RecordTypes();
  return {
    remoteAddr: connection.remoteAddr,
    async read(into) {
      const count = await connection.read(into);
      if (count !== null) records.take(into.subarray(0, count));
      return count;
    },
    // In TLS 1.2 a client may send data before it has read the last records of the handshake (RFC 7918). These have other types.
    write: (bytes) =>
      records.hasData && bytes[0] === APPLICATION_DATA ? Promise.resolve(bytes.length) : connection.write(bytes),
    close: () => connection.close(),
    closeWrite: () => connection.closeWrite(),
  };
}

/** Reads the headers of a stream of TLS records: one byte for the type, two for the version, two for the length. */
class RecordTypes {
  /** Whether a record with application data has begun. No later header is read. */
  hasData = false;
  readonly #header = new DataView(new ArrayBuffer(HEADER_BYTES));
  #headerBytes = 0;
  /** Bytes to come of the record's content. */
  #left = 0;

  take(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length && !this.hasData;) {
      const skipped = Math.min(this.#left, bytes.length - at);
      this.#left -= skipped;
      at += skipped;
      for (; at < bytes.length && this.#headerBytes < HEADER_BYTES; at++) {
        this.#header.setUint8(this.#headerBytes++, bytes[at] ?? 0);
      }
      if (this.#headerBytes === 0) return;
      this.hasData = this.#header.getUint8(0) === APPLICATION_DATA;
      if (this.#headerBytes < HEADER_BYTES) return;
      this.#headerBytes = 0;
      this.#left = this.#header.getUint16(3);
    }
  }
}
