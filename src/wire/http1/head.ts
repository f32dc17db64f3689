/**
 * The head of a request: request line and header fields, parsed strictly according to RFC 9112.
 *
 * Refused: a bare CR or LF, folded lines, blanks before a colon, control characters, two lengths, two Hosts, transfer
 * codings other than `chunked`. Programs interpret these differently, which allows request smuggling.
 */
import { RequestError } from "./errors.ts";

const CR = 13, LF = 10;

/** Characters of a method or a header's name. */
const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const REQUEST_LINE = new RegExp(`^(${TOKEN}) ([^\\x00-\\x20\\x7f]+) HTTP/(\\d)\\.(\\d)$`);
const FIELD_NAME = new RegExp(`^${TOKEN}$`);
// deno-lint-ignore no-control-regex
const BAD_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/;
/** Matches all fields of a valid head at once. This is the only check that nearly every request needs. */
const GOOD_FIELDS = new RegExp(`^(?:${TOKEN}:[\\t\\x20-\\x7e\\x80-\\xff]*\\r\\n)*$`);

const ascii = new TextDecoder();
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Finds the end of a head as its bytes arrive. Refuses immediately what cannot become a valid head. */
export class HeadEnd {
  /** Number of bytes examined, from the start of the request. */
  #seen = 0;
  /** Start of the line being examined. */
  #line = 0;

  /** Returns the size of the head including the empty line; undefined while it is incomplete. @throws {RequestError} */
  find(bytes: Uint8Array): number | undefined {
    if (this.#seen === 0 && bytes.length > 0 && !isTokenByte(bytes[0]!)) throw notHttp(bytes);
    // A loop, because indexOf() costs more for such short lines.
    for (let at = this.#seen; at < bytes.length; at++) {
      if (bytes[at] !== LF) continue;
      if (at === 0 || bytes[at - 1] !== CR) {
        if (this.#line === 0) throw notHttp(bytes);
        throw new RequestError(400, "a header line ends in a bare line feed: expected CR LF");
      }
      if (at - 1 === this.#line) return at + 1;
      if (this.#line === 0) this.requestLineSize = at + 1;
      this.#line = at + 1;
    }
    this.#seen = bytes.length;
    // A bad request line is refused before the rest arrives. That of a whole head is checked with it.
    if (!this.#isChecked && this.requestLineSize !== Infinity) {
      this.#isChecked = true;
      requestLine(latin1(bytes.subarray(0, this.requestLineSize - 2)));
    }
    return undefined;
  }

  #isChecked = false;

  /** Infinity until its end has arrived. */
  requestLineSize = Infinity;
}

/** True for bytes that can start a method. A TLS client sends 0x16. */
function isTokenByte(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f;
}

function notHttp(bytes: Uint8Array): RequestError {
  if (bytes[0] === 0x16) return new RequestError(400, "found a TLS handshake: this port expects HTTP without TLS");
  return new RequestError(400, "invalid HTTP request line: expected a method, a target and HTTP/1.1, ended by CR LF");
}

function requestLine(line: string): { method: string; target: string; minor: number } {
  const match = REQUEST_LINE.exec(line);
  if (match === null) {
    throw new RequestError(400, "invalid HTTP request line: expected a method, a target and HTTP/1.1, ended by CR LF");
  }
  const [, method, target, major, minor] = match;
  if (major !== "1" || minor! > "1") {
    throw new RequestError(505, `HTTP/${major}.${minor} is not supported: expected HTTP/1.1 or HTTP/1.0`);
  }
  return { method: method!, target: target!, minor: Number(minor) };
}

/** The header fields of a request. Names are case-insensitive. */
export class Headers {
  /** @param offsets of each field: start of the name, the colon, and the end of the value */
  constructor(private readonly text: string, private readonly offsets: readonly number[]) {}

  /** Returns the value; if several fields have this name, their values joined by ", ". */
  get(name: string): string | null {
    let found: string | null = null;
    for (let at = 0; at < this.offsets.length; at += 3) {
      if (!this.#isNamed(at, name)) continue;
      const value = this.#value(at);
      found = found === null ? value : `${found}${name === "cookie" ? "; " : ", "}${value}`;
    }
    return found;
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  /** Number of fields with this name. */
  count(name: string): number {
    let count = 0;
    for (let at = 0; at < this.offsets.length; at += 3) if (this.#isNamed(at, name)) count++;
    return count;
  }

  *[Symbol.iterator](): Generator<[name: string, value: string]> {
    for (let at = 0; at < this.offsets.length; at += 3) {
      yield [this.text.slice(this.offsets[at], this.offsets[at + 1]).toLowerCase(), this.#value(at)];
    }
  }

  #isNamed(at: number, name: string): boolean {
    const start = this.offsets[at]!, colon = this.offsets[at + 1]!;
    return colon - start === name.length && this.text.slice(start, colon).toLowerCase() === name;
  }

  #value(at: number): string {
    return trimBlanks(this.text.slice(this.offsets[at + 1]! + 1, this.offsets[at + 2]));
  }
}

function trimBlanks(value: string): string {
  return value.replace(/^[\t ]+|[\t ]+$/g, "");
}

export interface RequestHead {
  method: string;
  /** The target as sent, with bytes above ASCII decoded as UTF-8. */
  target: string;
  /** Minor version: 1 for HTTP/1.1, 0 for HTTP/1.0. */
  minor: number;
  headers: Headers;
  /** Size of the body, or "chunked". */
  bodySize: number | "chunked";
  /** The client waits for `100 Continue` before it sends the body. */
  expectsContinue: boolean;
  /** The client wants to keep the connection open. */
  keepsAlive: boolean;
}

/** Parses a complete head, including the empty line at its end. @throws {RequestError} */
function parseHead(bytes: Uint8Array): RequestHead {
  const text = textOf(bytes);
  const lineEnd = text.indexOf("\r\n");
  const { method, target, minor } = requestLine(text.slice(0, lineEnd));
  const fields = text.slice(lineEnd + 2, -2);
  const offsets = fieldPlaces(fields);
  const headers = new Headers(fields, offsets);
  if (offsets.length === 0) {
    return {
      method,
      target: targetOf(target),
      minor,
      headers,
      bodySize: 0,
      expectsContinue: false,
      keepsAlive: minor === 1,
    };
  }
  if (headers.count("host") > 1) throw new RequestError(400, "found two Host headers: expected one");
  return {
    method,
    target: targetOf(target),
    minor,
    headers,
    bodySize: bodySizeOf(headers, minor),
    expectsContinue: expectsContinue(headers, minor),
    keepsAlive: keepsAlive(headers, minor),
  };
}

/** Longer heads are not kept for the next one. */
const KEPT_MAX = 2_048;

/** Parses the heads of a connection. Most have the fields of the one before, and many its request line, too. */
export class HeadParser {
  #bytes: Uint8Array = new Uint8Array(0);
  #lineSize = 0;
  #head: RequestHead | undefined;

  /** `lineSize`: of the request line with its end. @throws {RequestError} */
  parse(bytes: Uint8Array, lineSize: number): RequestHead {
    const last = this.#head;
    if (last !== undefined && hasSameRest(bytes, lineSize, this.#bytes, this.#lineSize)) {
      if (lineSize === this.#lineSize && hasSameStart(bytes, this.#bytes, lineSize)) return last;
      const { method, target, minor } = requestLine(textOf(bytes.subarray(0, lineSize - 2)));
      if (minor === last.minor) return this.#keep(bytes, lineSize, { ...last, method, target: targetOf(target) });
    }
    return this.#keep(bytes, lineSize, parseHead(bytes));
  }

  #keep(bytes: Uint8Array, lineSize: number, head: RequestHead): RequestHead {
    if (bytes.length > KEPT_MAX) return head;
    this.#bytes = bytes.slice();
    this.#lineSize = lineSize;
    return this.#head = head;
  }
}

function hasSameRest(a: Uint8Array, fromA: number, b: Uint8Array, fromB: number): boolean {
  if (a.length - fromA !== b.length - fromB) return false;
  for (let x = fromA, y = fromB; x < a.length; x++, y++) if (a[x] !== b[y]) return false;
  return true;
}

function hasSameStart(a: Uint8Array, b: Uint8Array, size: number): boolean {
  for (let at = 0; at < size; at++) if (a[at] !== b[at]) return false;
  return true;
}

function fieldPlaces(fields: string): number[] {
  if (!GOOD_FIELDS.test(fields)) throw badField(fields);
  const offsets: number[] = [];
  for (let at = 0; at < fields.length;) {
    const colon = fields.indexOf(":", at);
    const end = fields.indexOf("\r\n", colon);
    offsets.push(at, colon, end);
    at = end + 2;
  }
  return offsets;
}

/** Returns an error that names the bad line. */
export function badField(fields: string): RequestError {
  for (const line of fields.split("\r\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon));
    if (/[\r\n]/.test(line)) return new RequestError(400, "a header line contains a bare CR or LF");
    if (/^[\t ]/.test(line)) {
      return new RequestError(400, "a header line begins with a blank: folded lines are refused");
    }
    if (colon < 0) return new RequestError(400, "a header line has no colon");
    if (!FIELD_NAME.test(name)) return new RequestError(400, "the name of a header is empty or has a bad character");
    if (BAD_VALUE.test(line.slice(colon + 1))) {
      return new RequestError(400, `the value of header ${name} contains a control character`);
    }
  }
  return new RequestError(400, "a header line is malformed");
}

function targetOf(target: string): string {
  if (target.includes("#")) throw new RequestError(400, "the target contains a '#': write it as %23");
  // deno-lint-ignore no-control-regex
  if (!/[^\x00-\x7f]/.test(target)) return target;
  try {
    return utf8.decode(Uint8Array.from(target, (character) => character.charCodeAt(0)));
  } catch {
    throw new RequestError(400, "the target is not UTF-8: write other bytes percent-encoded");
  }
}

function bodySizeOf(headers: Headers, minor: number): number | "chunked" {
  const length = headers.get("content-length");
  const coding = headers.get("transfer-encoding");
  if (coding === null) {
    if (length === null) return 0;
    // Two fields are joined by a comma, so they are not a number.
    if (!/^\d{1,15}$/.test(length)) throw new RequestError(400, "Content-Length is not one number of bytes");
    return Number(length);
  }
  if (length !== null) {
    throw new RequestError(400, "found both Content-Length and Transfer-Encoding: expected one of them");
  }
  if (minor === 0) throw new RequestError(400, "HTTP/1.0 has no Transfer-Encoding");
  if (coding.toLowerCase() !== "chunked") {
    throw new RequestError(501, "unsupported Transfer-Encoding: expected chunked");
  }
  return "chunked";
}

function expectsContinue(headers: Headers, minor: number): boolean {
  const expected = headers.get("expect");
  if (expected === null || minor === 0) return false;
  if (expected.toLowerCase().split(",").some((part) => trimBlanks(part) !== "100-continue")) {
    throw new RequestError(417, "unsupported expectation: expected 100-continue");
  }
  return true;
}

function keepsAlive(headers: Headers, minor: number): boolean {
  const header = headers.get("connection");
  if (header === null) return minor === 1;
  const options = header.toLowerCase().split(",").map(trimBlanks);
  // Upgrades such as `h2c` are ignored, and the request is answered as it is.
  return !options.includes("close") && (minor === 1 || options.includes("keep-alive"));
}

/** Decodes one character for each byte. */
function textOf(bytes: Uint8Array): string {
  const text = ascii.decode(bytes);
  // U+FFFD, or fewer characters than bytes, shows that there are bytes above ASCII.
  return text.length === bytes.length && !text.includes("\ufffd") ? text : latin1(bytes);
}

export function latin1(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return text;
}
