/**
 * What clients may do wrong: garbage, half requests, no reading, going away. The server answers others all the same, and counts no
 * unhandled error.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { startServer, type TestServer } from "./server.ts";

const RUNS = Number(Deno.env.get("SUNDIAL_RUNS") ?? 60);
const utf8 = new TextEncoder();
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const METRICS = { SVC_METRICS_ENABLED: "true" };

async function figures(server: TestServer): Promise<Map<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
  return new Map([...text.matchAll(/^(service_\S+) (\S+)$/gm)].map(([, name, value]) => [name, Number(value)]));
}

async function assertWell(server: TestServer): Promise<void> {
  assert.deepEqual((await server.exec("select 1")).dataset, [[1]]);
  assert.equal((await figures(server)).get("service_unhandled_errors_total"), 0, server.output());
  assert.doesNotMatch(server.output(), / C /);
}

/** Sends bytes in pieces, reads for a moment, and goes away. */
async function send(port: number, pieces: Uint8Array[], readMs = 20): Promise<string> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  let text = "";
  try {
    const reading = (async () => {
      const buffer = new Uint8Array(65_536);
      for (let read; (read = await connection.read(buffer).catch(() => null)) !== null;) {
        text += new TextDecoder().decode(buffer.subarray(0, read));
      }
    })();
    for (const piece of pieces) {
      for (let at = 0; at < piece.length;) at += await connection.write(piece.subarray(at));
      await wait(0);
    }
    await Promise.race([reading, wait(readMs)]);
  } catch {
    // The server had enough.
  } finally {
    connection.close();
  }
  return text;
}

const int32 = (value: number) => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
const cstring = (text: string) => [...utf8.encode(text), 0];
const pgMessage = (tag: string, body: number[]) =>
  Uint8Array.from([...utf8.encode(tag), ...int32(body.length + 4), ...body]);
const pgStartUp = (() => {
  const body = [
    ...int32(196608),
    ...cstring("user"),
    ...cstring("admin"),
    ...cstring("database"),
    ...cstring("qdb"),
    0,
  ];
  return Uint8Array.from([...int32(body.length + 4), ...body]);
})();
const pgLogin = [pgStartUp, pgMessage("p", cstring("quest"))];

const pieces = (bytes: fc.Arbitrary<Uint8Array>) => fc.array(bytes, { minLength: 1, maxLength: 4 });
const garbage = fc.uint8Array({ maxLength: 300 });
const bytes = (text: fc.Arbitrary<string>) => text.map((t) => utf8.encode(t));

/** Texts of requests with things in them that do not belong there. */
const httpBytes = pieces(fc.oneof(
  garbage,
  bytes(
    fc.tuple(
      fc.constantFrom("GET", "POST", "PUT", "HEAD", "OPTIONS", "get", "", "\0"),
      fc.constantFrom(
        "/exec?query=select%201",
        "/exp?query=select+1",
        "/write",
        "/imp",
        "/",
        "*",
        "//",
        "/exec?%",
        "/%zz",
        "",
      ),
      fc.constantFrom("HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "http", ""),
      fc.array(
        fc.oneof(
          fc.constantFrom(
            "Host: x",
            "Content-Length: 5",
            "Content-Length: -1",
            "Content-Length: 99999999999999999",
            "Transfer-Encoding: chunked",
            "Expect: 100-continue",
            "Authorization: Basic !!!",
            "Connection: close",
            ": nothing",
            "no colon",
          ),
          fc.string(),
        ),
        { maxLength: 5 },
      ),
      fc.constantFrom("", "hello", "5\r\nhello\r\n0\r\n\r\n", "zz\r\n", "ffffffffffff\r\nx"),
    ).map(([method, path, version, headers, body]) =>
      `${method} ${path} ${version}\r\n${headers.join("\r\n")}\r\n\r\n${body}`
    ),
  ),
));

const pgBytes = fc.tuple(
  fc.boolean(),
  pieces(fc.oneof(
    garbage,
    fc.tuple(fc.constantFrom(..."QPBDECSHXFfdcp"), fc.uint8Array({ maxLength: 60 })).map(([tag, body]) =>
      pgMessage(tag, [...body])
    ),
    fc.tuple(fc.constantFrom(..."QPBDE"), fc.constantFrom(-1, 0, 3, 4, 1 << 20, 0x7fffffff)).map(([tag, size]) =>
      Uint8Array.from([...utf8.encode(tag), ...int32(size)])
    ),
    fc.constantFrom(
      pgMessage("Q", cstring("select 1; selec 2; select x from long_sequence(3)")),
      pgMessage("P", [...cstring("s"), ...cstring("select $1::long + 1"), 0, 0]),
      pgMessage("B", [...cstring(""), ...cstring("s"), 0, 1, 0, 1, 0, 1, 0, 0, 0, 3, 1, 2, 3, 0, 0]),
      pgMessage("E", [...cstring(""), ...int32(0)]),
      pgMessage("S", []),
      Uint8Array.from([...int32(8), ...int32(80877103)]),
      Uint8Array.from([...int32(16), ...int32(80877102), ...int32(1), ...int32(2)]),
    ),
  )),
).map(([loggedIn, rest]) => (loggedIn ? [...pgLogin, ...rest] : rest));

const lineBytes = pieces(fc.oneof(
  garbage,
  bytes(fc.string().map((text) => `${text}\n`)),
  bytes(
    fc.tuple(fc.constantFrom("f1", "f 1", "", "f,2", "tables"), fc.string(), fc.string(), fc.string()).map((
      [table, tag, field, time],
    ) => `${table},t=${tag} v=${field} ${time}\n`),
  ),
  bytes(
    fc.constantFrom(
      `f2 v="`,
      `f2 v="\n\n\n`,
      "f2 v=1i 99999999999999999999\n",
      "f2 v=1i\nf2 v=t\n",
      "f2,=, =\n",
      "\\\n\\ \\",
    ),
  ),
));

Deno.test(`garbage on each wire, ${RUNS} times`, async () => {
  await using server = await startServer({ env: METRICS });
  const wires: [string, number, fc.Arbitrary<Uint8Array[]>][] = [
    ["HTTP", server.httpPort, httpBytes],
    ["PG", server.pgPort, pgBytes],
    ["line", server.linePort, lineBytes],
    ["health", server.minPort, httpBytes],
  ];
  for (const [wire, port, arbitrary] of wires) {
    await fc.assert(
      fc.asyncProperty(arbitrary, async (sent) => {
        await send(port, sent);
        if (wire === "HTTP") {
          // As a body too.
          const reply = await fetch(`${server.http}/write`, {
            method: "POST",
            body: sent[0] as Uint8Array<ArrayBuffer>,
          });
          await reply.body?.cancel();
          assert.notEqual(reply.status, 500);
        }
      }),
      { numRuns: RUNS },
    );
    await assertWell(server);
  }
});
