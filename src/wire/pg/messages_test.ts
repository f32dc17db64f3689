import assert from "node:assert/strict";
import { ProtocolError } from "../../errors.ts";
import { decoderOf, decodeStartUp } from "./messages.ts";
import { decodeText, Reader } from "./reader.ts";

const bytes = (...parts: (number | string | number[])[]): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => typeof part === "string" ? [...new TextEncoder().encode(part)] : part));

const good: { type: string; body: Uint8Array; message: unknown }[] = [
  { type: "Q", body: bytes("select 'ä'", 0), message: { tag: "query", text: "select 'ä'" } },
  {
    type: "P",
    body: bytes("s1", 0, "select $1", 0, [0, 2, 0, 0, 0, 23, 0, 0, 0, 0]),
    message: { tag: "parse", statement: "s1", text: "select $1", oids: [23, 0] },
  },
  {
    type: "B",
    body: bytes("p", 0, "s1", 0, [0, 1, 0, 1], [0, 2], [0, 0, 0, 2], "ab", [255, 255, 255, 255], [0, 2, 0, 0, 0, 1]),
    message: {
      tag: "bind",
      portal: "p",
      statement: "s1",
      argFormats: [1],
      args: [bytes("ab"), null],
      resultFormats: [0, 1],
    },
  },
  { type: "D", body: bytes("Ss1", 0), message: { tag: "describe", what: "statement", name: "s1" } },
  { type: "C", body: bytes("P", 0), message: { tag: "close", what: "portal", name: "" } },
  { type: "E", body: bytes("p", 0, [0, 0, 1, 0]), message: { tag: "execute", portal: "p", rowCountMax: 256 } },
  { type: "p", body: bytes("quest", 0), message: { tag: "password", password: "quest" } },
  { type: "S", body: bytes(), message: { tag: "sync" } },
  { type: "X", body: bytes(), message: { tag: "terminate" } },
];

for (const { type, body, message } of good) {
  const decode = decoderOf(type.charCodeAt(0))!;
  Deno.test(`decoderOf(${type}) reads its message, and refuses shorter and longer ones`, () => {
    assert.deepEqual(decode(new Reader(body)), message);
    for (let size = 0; size < body.length; size++) {
      assert.throws(() => decode(new Reader(body.slice(0, size))), ProtocolError, `cut at ${size}`);
    }
    assert.throws(() => decode(new Reader(bytes([...body], 0))), { sqlState: "08P01" });
  });
}

Deno.test("decodeStartUp() reads versions, parameters and requests, and refuses incomplete ones", () => {
  const startUp = bytes([0, 3, 0, 2], "user", 0, "admin", 0, "options", 0, "-c a=b", 0, 0);
  const parameters = new Map([["user", "admin"], ["options", "-c a=b"]]);
  assert.deepEqual(decodeStartUp(new Reader(startUp)), { tag: "startUp", major: 3, minor: 2, parameters });
  for (let size = 0; size < startUp.length; size++) {
    assert.throws(() => decodeStartUp(new Reader(startUp.slice(0, size))), ProtocolError);
  }
  assert.deepEqual(decodeStartUp(new Reader(bytes([4, 210, 22, 46, 0, 0, 0, 7, 255, 255, 255, 255]))), {
    tag: "cancel",
    pid: 7,
    key: -1,
  });
  assert.deepEqual(decodeStartUp(new Reader(bytes([4, 210, 22, 47]))), { tag: "sslRequest" });
  assert.deepEqual(decodeStartUp(new Reader(bytes([4, 210, 22, 48]))), { tag: "gssRequest" });
});

const refused = [
  { title: "a format that is neither text nor binary", type: "B", body: bytes(0, 0, [0, 1, 0, 2], [0, 0], [0, 0]) },
  {
    title: "an argument of negative size",
    type: "B",
    body: bytes(0, 0, [0, 0], [0, 1], [255, 255, 255, 254], [0, 0]),
  },
  { title: "a target that is neither statement nor portal", type: "D", body: bytes("Xs1", 0) },
];
for (const { title, type, body } of refused) {
  Deno.test(`decoderOf(${type}) refuses ${title}`, () => {
    assert.throws(() => decoderOf(type.charCodeAt(0))!(new Reader(body)), { sqlState: "08P01" });
  });
}

Deno.test("decodeText() refuses invalid UTF-8, and keeps a byte order mark", () => {
  assert.throws(() => decodeText(Uint8Array.of(0xc3, 0x28)), { sqlState: "22021" });
  assert.equal(decodeText(bytes("\ufeffa")), "\ufeffa");
});

Deno.test("decoderOf() returns a message or throws a ProtocolError for any bytes", () => {
  let state = 0x9e3779b9;
  const random = (below: number) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
  for (let round = 0; round < 20_000; round++) {
    const { type, body } = good[random(good.length)];
    const damaged = Uint8Array.from([...body, ...new Array(random(4)).fill(0)]);
    for (let count = random(4); count > 0 && damaged.length > 0; count--) damaged[random(damaged.length)] = random(256);
    const start = Math.min(random(8), damaged.length);
    for (const decode of [decoderOf(type.charCodeAt(0))!, decodeStartUp]) {
      try {
        decode(new Reader(damaged.subarray(random(2) * start)));
      } catch (error) {
        assert.ok(error instanceof ProtocolError, `round ${round}: ${error}`);
      }
    }
  }
});
