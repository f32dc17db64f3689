import assert from "node:assert/strict";
import { HeadParser } from "./head.ts";

const LINES = [
  "GET /a HTTP/1.1",
  "GET /b HTTP/1.1",
  "GET /a HTTP/1.0",
  "POST /a HTTP/1.1",
  "GET /é HTTP/1.1",
  "GET /a#b HTTP/1.1",
  "GET /a",
];
const FIELDS = [
  "",
  "Host: x\r\n",
  "Host: y\r\n",
  "Host: x\r\nConnection: close\r\n",
  "Host: x\r\nConnection: keep-alive\r\n",
  "Content-Length: 5\r\n",
  "Expect: 100-continue\r\nContent-Length: 5\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Host: x\r\nHost: y\r\n",
  "A : b\r\n",
];

function read(parser: HeadParser, line: string, fields: string): unknown {
  const head = new TextEncoder().encode(`${line}\r\n${fields}\r\n`);
  try {
    const { headers, ...rest } = parser.parse(head, new TextEncoder().encode(line).length + 2);
    return { ...rest, headers: [...headers] };
  } catch (error) {
    return (error as Error).message;
  }
}

Deno.test("HeadParser: a head after any other one is read as the first of a connection", () => {
  const heads = LINES.flatMap((line) => FIELDS.map((fields) => [line, fields] as const));
  for (const before of heads) {
    for (const [line, fields] of heads) {
      const parser = new HeadParser();
      read(parser, ...before);
      const expected = read(new HeadParser(), line, fields);
      assert.deepEqual(read(parser, line, fields), expected, `${before} ${line} ${fields}`);
      assert.deepEqual(read(parser, line, fields), expected);
    }
  }
});
