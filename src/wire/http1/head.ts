/**
 * The head of a request: request line and header fields, read strictly as RFC 9112 has them.
 *
 * Refused: a bare CR or LF, folded lines, blanks before a colon, control characters, two lengths, two Hosts, transfer codings
 * other than `chunked`. Each of these is read differently by different programs, which request smuggling is made of.
 */
import { RequestError } from "./errors.ts";

const CR = 13, LF = 10;

/** Characters of a method or a header's name. */
const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const REQUEST_LINE = new RegExp(`^(${TOKEN}) ([^\\x00-\\x20\\x7f]+) HTTP/(\\d)\\.(\\d)$`);
const FIELD_NAME = new RegExp(`^${TOKEN}$`);
// deno-lint-ignore no-control-regex
const BAD_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/;
/** The fields of a good head in one match: it is the whole check of nearly every request. */
const GOOD_FIELDS = new RegExp(`^(?:${TOKEN}:[\\t\\x20-\\x7e\\x80-\\xff]*\\r\\n)*$`);

const ascii = new TextDecoder();
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Where a head ends, found piece by piece as it arrives. Refuses at once what cannot become a head. */
export class HeadEnd {
  /** Bytes from the start of the request that have been looked at. */
  #seen = 0;
  /** The start of the line that is looked at. */
  #line = 0;

  /** The size of the head with the empty line after it; undefined while it is not whole. @throws {RequestError} */
  find(bytes: Uint8Array): number | undefined {
    if (this.#seen === 0 && bytes.length > 0 && !isTokenByte(bytes[0])) throw notHttp(bytes);
    // By hand: indexOf() costs more for lines this short.
    for (let at = this.#seen; at < bytes.length; at++) {
      if (bytes[at] !== LF) continue;
      if (at === 0 || bytes[at - 1] !== CR) {
        if (this.#line === 0) throw notHttp(bytes);
        throw new RequestError(400, "a header line ends in a bare line feed: expected CR LF");
      }
      if (at - 1 === this.#line) return at + 1;
      // A bad request line is refused before the rest has come.
      if (this.#line === 0) {
        requestLine(latin1(bytes.subarray(0, at - 1)));
        this.requestLineSize = at + 1;
      }
      this.#line = at + 1;
    }
    this.#seen = bytes.length;
    return undefined;
  }

  /** Infinite while its end has not come. */
  requestLineSize = Infinity;
}

/** The method's first byte; a TLS client's is 0x16. */
function isTokenByte(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f;
}

function notHttp(bytes: Uint8Array): RequestError {
  if (bytes[0] === 0x16) return new RequestError(400, "a TLS handshake: this port takes HTTP without TLS");
  return new RequestError(400, "no HTTP request line: expected a method, a target and HTTP/1.1, ended by CR LF");
}

function requestLine(line: string): { method: string; target: string; minor: number } {
  const match = REQUEST_LINE.exec(line);
  if (match === null) {
    throw new RequestError(400, "no HTTP request line: expected a method, a target and HTTP/1.1, ended by CR LF");
  }
  const [, method, target, major, minor] = match;
  if (major !== "1" || minor > "1") {
    throw new RequestError(505, `HTTP/${major}.${minor} is not supported: expected HTTP/1.1 or HTTP/1.0`);
  }
  return { method, target, minor: Number(minor) };
}

/** The header fields of a request. Names have no case. */
export class Headers {
  /** @param places start of the name, the colon and the end of the value, of each field */
  constructor(private readonly text: string, private readonly places: readonly number[]) {}

  /** The value; values of several fields of this name are joined by ", ". */
  get(name: string): string | null {
    let found: string | null = null;
    for (let at = 0; at < this.places.length; at += 3) {
      if (!this.#isNamed(at, name)) continue;
      const value = this.#value(at);
      found = found === null ? value : `${found}${name === "cookie" ? "; " : ", "}${value}`;
    }
    return found;
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  /** How many fields have this name. */
  count(name: string): number {
    let count = 0;
    for (let at = 0; at < this.places.length; at += 3) if (this.#isNamed(at, name)) count++;
    return count;
  }

  *[Symbol.iterator](): Generator<[name: string, value: string]> {
    for (let at = 0; at < this.places.length; at += 3) {
      yield [this.text.slice(this.places[at], this.places[at + 1]).toLowerCase(), this.#value(at)];
    }
  }

  #isNamed(at: number, name: string): boolean {
    const start = this.places[at], colon = this.places[at + 1];
    return colon - start === name.length && this.text.slice(start, colon).toLowerCase() === name;
  }

  #value(at: number): string {
    return trimBlanks(this.text.slice(this.places[at + 1] + 1, this.places[at + 2]));
  }
}

function trimBlanks(value: string): string {
  return value.replace(/^[\t ]+|[\t ]+$/g, "");
}

export interface RequestHead {
  method: string;
  /** As it was sent; bytes above ASCII are read as UTF-8. */
  target: string;
  /** 1 of HTTP/1.1, 0 of HTTP/1.0. */
  minor: number;
  headers: Headers;
  /** The size of the body; "chunked" when only its end tells. */
  bodySize: number | "chunked";
  /** The client waits for `100 Continue` before it sends the body. */
  expectsContinue: boolean;
  /** The client wants the connection to stay. */
  keepsAlive: boolean;
}

/** Reads a whole head, with the empty line at its end. @throws {RequestError} */
export function parseHead(bytes: Uint8Array): RequestHead {
  const text = textOf(bytes);
  const lineEnd = text.indexOf("\r\n");
  const { method, target, minor } = requestLine(text.slice(0, lineEnd));
  const fields = text.slice(lineEnd + 2, -2);
  const places = fieldPlaces(fields);
  const headers = new Headers(fields, places);
  if (places.length === 0) {
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
  if (headers.count("host") > 1) throw new RequestError(400, "two Host headers: expected one");
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

function fieldPlaces(fields: string): number[] {
  if (!GOOD_FIELDS.test(fields)) throw badField(fields);
  const places: number[] = [];
  for (let at = 0; at < fields.length;) {
    const colon = fields.indexOf(":", at);
    const end = fields.indexOf("\r\n", colon);
    places.push(at, colon, end);
    at = end + 2;
  }
  return places;
}

/** Says which line is at fault. */
export function badField(fields: string): RequestError {
  for (const line of fields.split("\r\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon));
    if (/[\r\n]/.test(line)) return new RequestError(400, "a header line has a bare CR or LF in it");
    if (/^[\t ]/.test(line)) {
      return new RequestError(400, "a header line begins with a blank: folded lines are refused");
    }
    if (colon < 0) return new RequestError(400, "a header line has no colon");
    if (!FIELD_NAME.test(name)) return new RequestError(400, "the name of a header is empty or has a bad character");
    if (BAD_VALUE.test(line.slice(colon + 1))) {
      return new RequestError(400, `the header ${name} has a control character in its value`);
    }
  }
  return new RequestError(400, "a header line is not well-formed");
}

function targetOf(target: string): string {
  if (target.includes("#")) throw new RequestError(400, "the target has a '#': write it as %23");
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
    // Two fields are joined by a comma, and so are no number.
    if (!/^\d{1,15}$/.test(length)) throw new RequestError(400, "Content-Length is not one number of bytes");
    return Number(length);
  }
  if (length !== null) throw new RequestError(400, "both Content-Length and Transfer-Encoding: expected one of them");
  if (minor === 0) throw new RequestError(400, "HTTP/1.0 has no Transfer-Encoding");
  if (coding.toLowerCase() !== "chunked") {
    throw new RequestError(501, "this Transfer-Encoding is not supported: expected chunked");
  }
  return "chunked";
}

function expectsContinue(headers: Headers, minor: number): boolean {
  const expected = headers.get("expect");
  if (expected === null || minor === 0) return false;
  if (expected.toLowerCase().split(",").some((part) => trimBlanks(part) !== "100-continue")) {
    throw new RequestError(417, "this expectation is not supported: known is 100-continue");
  }
  return true;
}

function keepsAlive(headers: Headers, minor: number): boolean {
  const header = headers.get("connection");
  if (header === null) return minor === 1;
  const options = header.toLowerCase().split(",").map(trimBlanks);
  // Upgrades, as `h2c`, are not taken: the request is answered as it stands.
  return !options.includes("close") && (minor === 1 || options.includes("keep-alive"));
}

/** One character for each byte. */
function textOf(bytes: Uint8Array): string {
  const text = ascii.decode(bytes);
  // U+FFFD and joined sequences stand for bytes above ASCII.
  return text.length === bytes.length && !text.includes("\ufffd") ? text : latin1(bytes);
}

export function latin1(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return text;
}
