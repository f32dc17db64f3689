/** Negotiates encryption before the first message of a connection. */
import type { ByteConnection } from "../byte-connection.ts";
import type { PgOptions } from "./contract.ts";
import { FatalError } from "./failure.ts";
import { decodeStartUp } from "./messages.ts";
import { Reader } from "./reader.ts";

export interface Agreed {
  connection: ByteConnection;
  /** Bytes of the first message that have already been read. */
  first: Uint8Array<ArrayBuffer>;
  isEncrypted: boolean;
}

/** The first byte of a TLS handshake. A start-up message begins with 0, because it is short. */
const TLS_HANDSHAKE = 0x16;
const REQUEST_SIZE = 8;
const FIRST_SIZE = 1_024;
/** The name of PostgreSQL's protocol in ALPN. */
const PROTOCOL = "postgresql";
const YES = Uint8Array.of(0x53), NO = Uint8Array.of(0x4e);

/**
 * Answers SSLRequest and GSSENCRequest, and performs the TLS handshake. Undefined if the client has disconnected.
 * @throws {FatalError} to be sent to the client
 * @throws {Error} if the handshake fails
 */
export async function agreeOnEncryption(
  connection: ByteConnection,
  certificate: PgOptions["certificate"],
): Promise<Agreed | undefined> {
  const buffer = new Uint8Array(FIRST_SIZE);
  for (let size = 0;;) {
    while (!isKnown(buffer, size)) {
      const count = await connection.read(buffer.subarray(size)).catch(() => null);
      if (count === null) return undefined;
      size += count;
    }
    if (buffer[0] === TLS_HANDSHAKE) return await beginWithTls(connection, buffer.slice(0, size), certificate);
    const tag = sizeOf(buffer) === REQUEST_SIZE
      ? decodeStartUp(new Reader(buffer.subarray(4, REQUEST_SIZE))).tag
      : "startUp";
    if (tag !== "sslRequest" && tag !== "gssRequest") {
      return { connection, first: buffer.slice(0, size), isEncrypted: false };
    }
    if (tag === "sslRequest" && certificate !== undefined) {
      if (size > REQUEST_SIZE) {
        // A third party could have inserted these bytes, which would then be read as the client's (CVE-2021-23214).
        throw new FatalError(
          `found ${size - REQUEST_SIZE} bytes after the request for TLS: expected none before its answer`,
        );
      }
      await connection.write(YES);
      return await withTls(connection, certificate);
    }
    await connection.write(NO);
    buffer.copyWithin(0, REQUEST_SIZE, size);
    size -= REQUEST_SIZE;
  }
}

/** True if enough bytes were read to distinguish requests and TLS from start-up messages. */
function isKnown(buffer: Uint8Array, size: number): boolean {
  if (size < 4) return size > 0 && buffer[0] !== 0;
  return sizeOf(buffer) !== REQUEST_SIZE || size >= REQUEST_SIZE;
}

function sizeOf(buffer: Uint8Array): number {
  return new DataView(buffer.buffer).getUint32(0);
}

/** `sslnegotiation=direct`, since PostgreSQL 17. */
async function beginWithTls(
  connection: ByteConnection,
  first: Uint8Array,
  certificate: PgOptions["certificate"],
): Promise<Agreed> {
  if (certificate === undefined) {
    throw new FatalError(
      "the client started TLS, which is disabled: expected a start-up message; set pg.tls.enabled to enable it",
    );
  }
  const agreed = await withTls(connection, certificate, first);
  // Without ALPN, a page in a browser could send an HTTP request that is read as a start-up message.
  if (agreed.protocol === PROTOCOL) return agreed;
  agreed.connection.close();
  throw new Error(`TLS: a client that starts with TLS must offer "${PROTOCOL}" by ALPN`);
}

async function withTls(
  connection: ByteConnection,
  certificate: NonNullable<PgOptions["certificate"]>,
  first?: Uint8Array,
): Promise<Agreed & { protocol: string | undefined }> {
  const secured = certificate.secure(connection, { first, protocol: PROTOCOL });
  const protocol = await secured.handshake;
  return { connection: secured, first: new Uint8Array(0), isEncrypted: true, protocol };
}
