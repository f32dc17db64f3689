/**
 * Messages of clients: decodes their bodies to objects. A decoder gets a reader at the start of the body.
 *
 *     message   byte type, int32 size (of itself and the body), body
 *     start-up  int32 size, body                            has no type
 *
 * @see https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
import { ProtocolError } from "../../errors.ts";
import type { Reader } from "./reader.ts";

/** 0 text, 1 binary. */
export type Format = 0 | 1;
export const NO_FORMATS: Format[] = [];

/** No formats: all are text. One format: it applies to all. */
export function formatOf(formats: Format[], index: number): Format {
  return (formats.length === 1 ? formats[0] : formats[index]) ?? 0;
}

export interface Query {
  tag: "query";
  text: string;
}
export interface Parse {
  tag: "parse";
  statement: string;
  text: string;
  /** Types of the first parameters; 0 lets the server determine the type. */
  oids: number[];
}
export interface Bind {
  tag: "bind";
  portal: string;
  statement: string;
  argFormats: Format[];
  args: (Uint8Array | null)[];
  resultFormats: Format[];
}
export interface Describe {
  tag: "describe";
  what: "statement" | "portal";
  name: string;
}
export interface Execute {
  tag: "execute";
  portal: string;
  /** 0: all. */
  rowCountMax: number;
}
export interface Close {
  tag: "close";
  what: "statement" | "portal";
  name: string;
}
export interface Password {
  tag: "password";
  password: string;
}
export type Message =
  | Query
  | Parse
  | Bind
  | Describe
  | Execute
  | Close
  | Password
  | { tag: "sync" }
  | { tag: "flush" }
  | { tag: "terminate" }
  | { tag: "functionCall" }
  /** Sent by clients after a COPY that was refused. */
  | { tag: "copy" };

export type Decoder = (reader: Reader) => Message;

export type StartUp =
  | { tag: "sslRequest" }
  | { tag: "gssRequest" }
  | { tag: "cancel"; pid: number; key: number }
  | { tag: "startUp"; major: number; minor: number; parameters: Map<string, string> };

const CANCEL_CODE = 80877102, SSL_CODE = 80877103, GSS_CODE = 80877104;

/**
 *     code        int32                                     a request's code, or major << 16 | minor
 *     CancelRequest   pid int32, key int32
 *     StartupMessage  pairs of cstrings until an empty name
 */
export function decodeStartUp(reader: Reader): StartUp {
  const code = reader.int32();
  if (code === SSL_CODE || code === GSS_CODE) {
    reader.end();
    return { tag: code === SSL_CODE ? "sslRequest" : "gssRequest" };
  }
  if (code === CANCEL_CODE) {
    const pid = reader.int32();
    const key = reader.int32();
    reader.end();
    return { tag: "cancel", pid, key };
  }
  const major = code >>> 16, minor = code & 0xffff;
  const parameters = new Map<string, string>();
  // The format of other major versions after the code is unknown.
  if (major !== 3) return { tag: "startUp", major, minor, parameters };
  for (let name = reader.cstring(); name !== ""; name = reader.cstring()) parameters.set(name, reader.cstring());
  reader.end();
  return { tag: "startUp", major, minor, parameters };
}

/**
 * Query: one or more statements.
 *
 *     text       cstring
 */
function decodeQuery(reader: Reader): Query {
  const text = reader.cstring();
  reader.end();
  return { tag: "query", text };
}

/**
 * Parse: creates a prepared statement.
 *
 *     statement  cstring                                  "" is the unnamed one
 *     text       cstring
 *     oids       int16 n, n × int32                       types of the first n parameters
 */
function decodeParse(reader: Reader): Parse {
  const statement = reader.cstring();
  const text = reader.cstring();
  const oids = reader.list16(int32);
  reader.end();
  return { tag: "parse", statement, text, oids };
}

/**
 * Bind: creates a portal from a prepared statement and its arguments.
 *
 *     portal     cstring                                  "" is the unnamed one
 *     statement  cstring                                  "" is the unnamed one
 *     formats    int16 n, n × int16                       of the arguments: 0 text, 1 binary
 *     arguments  int16 n, n × (int32 size, size bytes)    size -1 is null, and no bytes follow
 *     formats    int16 n, n × int16                       of the result's columns
 *
 * The arguments are views of the reader's bytes: copy what has to outlive the message.
 * @throws {ProtocolError} 08P01, when the fields do not fill the body exactly.
 */
function decodeBind(reader: Reader): Bind {
  const portal = reader.cstring();
  const statement = reader.cstring();
  const argFormats = reader.list16(format);
  const args = reader.list16(nullableBytes);
  const resultFormats = reader.list16(format);
  reader.end();
  return { tag: "bind", portal, statement, argFormats, args, resultFormats };
}

/**
 * Describe and Close:
 *
 *     what       byte                                     S statement, P portal
 *     name       cstring
 */
function decodeNamed<Tag extends "describe" | "close">(tag: Tag, reader: Reader) {
  const what = target(reader.byte());
  const name = reader.cstring();
  reader.end();
  return { tag, what, name };
}

function decodeDescribe(reader: Reader): Describe {
  return decodeNamed("describe", reader);
}

function decodeClose(reader: Reader): Close {
  return decodeNamed("close", reader);
}

/**
 * Execute: runs a portal, or continues it.
 *
 *     portal     cstring
 *     rows       int32                                    maximum rows of this answer; 0 means all
 */
function decodeExecute(reader: Reader): Execute {
  const portal = reader.cstring();
  const rowCountMax = Math.max(0, reader.int32());
  reader.end();
  return { tag: "execute", portal, rowCountMax };
}

/**
 * PasswordMessage:
 *
 *     password   cstring
 */
export function decodePassword(reader: Reader): Password {
  const password = reader.cstring();
  reader.end();
  return { tag: "password", password };
}

/**
 * SASLInitialResponse:
 *
 *     mechanism  cstring
 *     data       int32 size, size bytes                   size -1 is none
 */
export function decodeSaslInitialResponse(reader: Reader): { mechanism: string; data: Uint8Array | null } {
  const mechanism = reader.cstring();
  const data = reader.nullableBytes();
  reader.end();
  return { mechanism, data };
}

function bare<Tag extends "sync" | "flush" | "terminate">(tag: Tag): (reader: Reader) => { tag: Tag } {
  const message = { tag };
  return (reader) => {
    reader.end();
    return message;
  };
}

const COPY = { tag: "copy" } as const;
const DECODERS = new Map<string, Decoder>([
  ["Q", decodeQuery],
  ["P", decodeParse],
  ["B", decodeBind],
  ["D", decodeDescribe],
  ["E", decodeExecute],
  ["C", decodeClose],
  ["p", decodePassword],
  ["S", bare("sync")],
  ["H", bare("flush")],
  ["X", bare("terminate")],
  ["F", () => ({ tag: "functionCall" })],
  ["d", () => COPY],
  ["c", () => COPY],
  ["f", () => COPY],
]);
const BY_TYPE = Array.from({ length: 256 }, (_, type) => DECODERS.get(String.fromCharCode(type)));

/** The decoder of a message type; undefined for unknown types. */
export function decoderOf(type: number): Decoder | undefined {
  return BY_TYPE[type];
}

const int32 = (reader: Reader): number => reader.int32();
const nullableBytes = (reader: Reader): Uint8Array | null => reader.nullableBytes();

function format(reader: Reader): Format {
  const code = reader.int16();
  if (code !== 0 && code !== 1) throw new ProtocolError(`invalid format ${code}: expected 0 or 1`);
  return code;
}

function target(code: number): "statement" | "portal" {
  if (code === 0x53) return "statement";
  if (code === 0x50) return "portal";
  throw new ProtocolError(`invalid target, byte ${code}: expected S or P`);
}
