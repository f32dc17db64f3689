/**
 * Compares our HTTP parser with Node's: both must parse a request the same way, or both refuse it. The rules below list intentional
 * differences with their reasons.
 */
// deno-lint-ignore-file no-control-regex
import assert from "node:assert/strict";
import fc from "../../src/properties.ts";
import { type HttpRequest, startServer } from "../../src/wire/http1/mod.ts";
import { fromFileUrl } from "../paths.ts";
import { NODE_PROBE, succeeds } from "../programs.ts";

const RUNS = Number(Deno.env.get("SUNDIAL_RUNS") ?? 500);

interface Parsed {
  method: string;
  url: string;
  headers: [string, string][];
  body: string;
}

/** Requests that we refuse and Node accepts. */
const STRICTER: [why: string, applies: (request: string, node: Parsed) => boolean][] = [
  ["versions other than 1.0 and 1.1", (request) => !/^[^\n]* HTTP\/1\.[01]\r?\n/.test(request.replace(/^\r\n/, ""))],
  ["RFC 9112 has no '#' in a target", (_request, { url }) => url.includes("#")],
  [
    "a target is a path, * or an absolute URL, of visible bytes",
    (request) => /^[^ ]+ [^\r]*[\x00-\x20\x7f][^\r]* HTTP/.test(request),
  ],
  ["two Hosts", (_request, { headers }) => headers.filter(([name]) => name === "host").length > 1],
  [
    "a coding that is no chunked alone cannot be read",
    (request, { headers }) =>
      valuesOf(headers, "transfer-encoding").some((value) =>
        value.toLowerCase() !== "chunked" || /HTTP\/1\.0/.test(request)
      ) ||
      valuesOf(headers, "transfer-encoding").length > 1,
  ],
  [
    "an expectation that is not known",
    (_request, { headers }) => valuesOf(headers, "expect").some((value) => value.toLowerCase() !== "100-continue"),
  ],
  ["bytes of a target are UTF-8", (request) => /^[^\r\n]*[\x80-\xff]/.test(request)],
  ["more than four empty lines before a request", (request) => /^(\r\n){4}/.test(request)],
  ["an empty line ends in CR LF", (request) => /^[\r\n]/.test(request)],
  ["a length has at most 15 digits", (request) => /content-length: *\d{16}/i.test(request)],
  [
    "Node leaves the body of a request that asks for an upgrade to the next protocol",
    (_request, node) => upgrades(node),
  ],
];

function upgrades({ headers }: Parsed): boolean {
  return valuesOf(headers, "upgrade").length > 0 &&
    valuesOf(headers, "connection").some((value) => value.toLowerCase() === "upgrade");
}

function valuesOf(headers: Parsed["headers"], name: string): string[] {
  return headers.filter(([found]) => found === name).map(([, value]) => value);
}

/** Requests that we accept and Node refuses. */
const LOOSER: [why: string, applies: (request: string) => boolean][] = [
  ["methods that Node does not know are answered 405 by the routes", (request) => !KNOWN.test(request)],
  [
    "targets that begin otherwise are answered 404 by the routes",
    (request) => !/^(\r\n)*[A-Z]+ (\/|\*|https?:)/.test(request),
  ],
  ["bytes of a target above ASCII, as UTF-8", (request) => /^[^\r\n]*[\x80-\xff]/.test(request)],
  ["CONNECT is a method without a route", (request) => /^(\r\n)*CONNECT/.test(request)],
  ["a tab behind a value is a blank (RFC 9110, 5.6.3)", (request) => /\t\r\n/.test(request)],
  ["an upgrade is never taken", (request) => /upgrade/i.test(request)],
];
const KNOWN = /^(\r\n)*(GET|POST|PUT|HEAD|OPTIONS|DELETE|PATCH) /;

const pick = <T>(...values: T[]) => fc.constantFrom(...values);
const odd = fc.oneof(
  { weight: 30, arbitrary: fc.constant("") },
  {
    weight: 1,
    arbitrary: pick(" ", "\t", "\r", "\n", "\0", "\r\n", "\r\n ", ":", "é", "\x7f", "#", "0", "%", ",", ";"),
  },
);
const eol = fc.oneof({ weight: 60, arbitrary: fc.constant("\r\n") }, {
  weight: 1,
  arbitrary: pick("\n", "\r", "\r\r\n", "\n\r\n"),
});

const header = fc.tuple(
  fc.oneof(
    pick(
      "Host: x",
      "Accept: */*",
      "X-Y: a b",
      "x_z:",
      "Cookie: a=b; c=d",
      "Connection: keep-alive",
      "Connection: Upgrade",
    ),
    pick(
      "Content-Length: 5",
      "Content-Length: 0",
      "content-length:5 ",
      "Content-Length: 05",
      "Content-Length: 5, 5",
      "Content-Length: 5a",
    ),
    pick(
      "Content-Length: +5",
      "Content-Length: -1",
      "Content-Length:",
      "Content-Length : 5",
      "Content-Length: 99999999999999999999",
    ),
    pick(
      "Transfer-Encoding: chunked",
      "transfer-encoding: Chunked",
      "Transfer-Encoding: gzip",
      "Transfer-Encoding: chunked, chunked",
    ),
    pick(
      "Transfer-Encoding: identity",
      "Transfer-Encoding: gzip, chunked",
      "Transfer-Encoding:\tchunked\t",
      "Transfer-Encoding: xchunked",
    ),
    pick("Expect: 100-continue", "Expect: x", "Upgrade: h2c", "no colon", ": no name", "a b: c", "(x): y"),
  ),
  odd,
  fc.nat(),
).map(([text, insert, place]) =>
  text.slice(0, place % (text.length + 1)) + insert + text.slice(place % (text.length + 1))
);

const body = fc.oneof(
  pick(
    "",
    "hello",
    "5\r\nhello\r\n0\r\n\r\n",
    "2;x=y\r\nhe\r\n03\r\nllo\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\nT: v\r\n\r\n",
  ),
  pick(
    "0x5\r\nhello\r\n0\r\n\r\n",
    "5 \r\nhello\r\n0\r\n\r\n",
    "-5\r\nhello\r\n0\r\n\r\n",
    "5\nhello\r\n0\r\n\r\n",
    "5\r\nhello0\r\n\r\n",
  ),
  pick(
    "6\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\n\n",
    "\r\n0\r\n\r\n",
    "5;\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\nbad trailer\r\n\r\n",
  ),
  pick(
    "ffffffffffffffffff\r\n",
    "0\r\n\r\n",
    "00\r\n\r\n",
    "A\r\n0123456789\r\n0\r\n\r\n",
    "5\rhello\r\n0\r\n\r\n",
    "5;a\nb\r\nhello\r\n0\r\n\r\n",
  ),
);

const request = fc.tuple(
  pick("", "", "", "", "", "", "", "", "\r\n", "\n"),
  pick("GET", "GET", "GET", "POST", "POST", "POST", "PUT", "OPTIONS", "DELETE", "get", "X Y", "G(T"),
  pick(...Array(18).fill(" "), "  ", "\t"),
  fc.tuple(pick("/", "/", "/a", "/a?b=c", "/a?b=c", "/%41", "*", "http://x/y", "a", "//", '/"<>|{}', "/é"), odd).map((
    parts,
  ) => parts.join("")),
  pick(...Array(16).fill(" HTTP/1.1"), " HTTP/1.0", " HTTP/1.2", " HTTP/2.0", " http/1.1", "", " HTTP/1.1 "),
  eol,
  fc.array(fc.tuple(header, eol).map((parts) => parts.join("")), { maxLength: 4 }),
  eol,
  body,
).map(([before, method, blank, target, version, end, headers, last, rest]) =>
  before + method + blank + target + version + end + headers.join("") + last + rest
);

const bytesOf = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));
const latin1 = (bytes: Uint8Array) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

/** The first answer of a server to these bytes: the parsed request, or undefined if it was refused or is incomplete. */
async function ask(port: number, bytes: Uint8Array): Promise<Parsed | undefined> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  try {
    await connection.write(bytes);
    await connection.closeWrite();
    let text = "";
    const buffer = new Uint8Array(65_536);
    for (let count; (count = await connection.read(buffer).catch(() => null)) !== null;) {
      text += latin1(buffer.subarray(0, count));
      if (/^HTTP\/1.1 200/m.test(text) && /}\r?\n?/.test(text)) break;
    }
    const found = /^HTTP\/1\.1 200 [^]*?\r\n\r\n(?:[0-9a-f]+\r\n)?({[^]*?"body":"(?:[^"\\]|\\.)*"})/m.exec(
      text.replace("HTTP/1.1 100 Continue\r\n\r\n", ""),
    );
    return found === null ? undefined : JSON.parse(new TextDecoder().decode(bytesOf(found[1])));
  } catch {
    return undefined;
  } finally {
    connection.close();
  }
}

async function ours(request: HttpRequest) {
  const body = latin1((await request.bytes(1 << 20))!);
  const { method, target: url, headers } = request;
  return {
    status: 200,
    headers: [] as [string, string][],
    body: new TextEncoder().encode(JSON.stringify({ method, url, headers: [...headers], body })),
    isLast: true,
  };
}

Deno.test(`our HTTP parser accepts what Node's accepts, ${RUNS} times`, async () => {
  if (!await succeeds(NODE_PROBE)) return console.log("skipped: Node's HTTP parser: node is not installed");
  const args = [fromFileUrl("./clients/http/reference.mjs")];
  const node = new Deno.Command("node", { args, stdin: "piped", stdout: "piped" }).spawn();
  const reader = node.stdout.getReader();
  const nodePort = Number(new TextDecoder().decode((await reader.read()).value));
  const server = startServer({
    hostname: "127.0.0.1",
    port: 0,
    handle: ours,
    onError: (error) => console.log(error),
    limits: {
      connectionsMax: 256,
      queueTimeoutMs: 5000,
      idleTimeoutMs: 5000,
      spareIdleMs: 5000,
      headTimeoutMs: 5000,
      headSizeMax: 65_536,
      bodyTimeoutMs: 5000,
      bodyRateMin: 1024,
    },
  });
  const counts = { both: 0, neither: 0, stricter: 0, looser: 0 };
  try {
    await fc.assert(
      fc.asyncProperty(request, async (text) => {
        const bytes = bytesOf(text);
        const [mine, theirs] = await Promise.all([ask(server.port, bytes), ask(nodePort, bytes)]);
        if (mine !== undefined && theirs !== undefined) {
          counts.both++;
          const uncompared = upgrades(theirs) ? { url: "", body: "" } : { url: "" };
          assert.deepEqual({ ...mine, ...uncompared }, { ...theirs, ...uncompared });
          if (!/[^\x00-\x7f]/.test(mine.url)) assert.equal(mine.url, theirs.url);
        } else if (theirs !== undefined) {
          counts.stricter++;
          assert.ok(STRICTER.some(([, applies]) => applies(text, theirs)), `Node takes it: ${JSON.stringify(theirs)}`);
        } else if (mine !== undefined) {
          counts.looser++;
          assert.ok(LOOSER.some(([, applies]) => applies(text)), `Node refuses it: ${JSON.stringify(mine)}`);
        } else counts.neither++;
      }),
      { numRuns: RUNS },
    );
    console.log(`  ${JSON.stringify(counts)}`);
    assert.ok(counts.both > RUNS / 20 && counts.neither > RUNS / 20, "both kinds were tried");
  } finally {
    await server.close();
    await node.stdin.close();
    await reader.cancel();
    await node.status;
  }
});
