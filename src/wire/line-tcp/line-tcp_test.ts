import assert from "node:assert/strict";
import { LineError } from "../../errors.ts";
import { parseLines } from "../line/mod.ts";
import { FakeDatabase } from "../testing/fake-database.ts";
import { type LineTcpOptions, startLineTcp } from "./mod.ts";

/** Accepts every line except those that contain "bad". */
class LineSink extends FakeDatabase {
  readonly taken: string[] = [];

  constructor() {
    super(() => ({}));
  }

  override takeLines(body: Uint8Array): Promise<{ rows: number; doneBytes: number }> {
    const { fault, doneBytes } = parseLines(body, { precision: "n", nowMicros: 0n, isContinued: true });
    assert.equal(fault, undefined);
    const lines = new TextDecoder().decode(body.subarray(0, doneBytes)).split("\n").slice(0, -1);
    const bad = lines.findIndex((line) => line.includes("bad"));
    if (bad >= 0) return Promise.reject(new LineError(bad + 1, "it is bad"));
    this.taken.push(...lines);
    return Promise.resolve({ rows: lines.length, doneBytes });
  }
}

async function sent(pieces: string[], disconnectOnError: boolean, idleTimeoutMs = 0): Promise<string[]> {
  const database = new LineSink();
  const options: LineTcpOptions = {
    hostname: "127.0.0.1",
    port: 0,
    database,
    precision: "n",
    connectionLimit: 4,
    idleTimeoutMs,
    lineSizeMax: 1 << 20,
    disconnectOnError,
    showsLines: true,
    log: { info: () => {}, error: () => {} },
  };
  const server = startLineTcp(options);
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const bytes = new TextEncoder();
  for (const piece of pieces) {
    await connection.write(bytes.encode(piece));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await connection.closeWrite().catch(() => {});
  await connection.read(new Uint8Array(1)).catch(() => {});
  connection.close();
  await server.close();
  return database.taken;
}

Deno.test("lines over TCP are committed once they are complete, wherever the stream was split", async () => {
  assert.deepEqual(await sent(["a v=1\nb v", "=2\nc", " v=3\n", "never ended"], true), ["a v=1", "b v=2", "c v=3"]);
});

Deno.test("an idle time-out beyond the timer's range does not expire immediately", async () => {
  assert.deepEqual(await sent(["a v=1\n", "b v=2\n"], true, 40 * 86_400_000), ["a v=1", "b v=2"]);
});

Deno.test("a bad line closes the connection, and the lines before it are kept", async () => {
  assert.deepEqual(await sent(["a v=1\nb v=2\nbad x=1\nc v=3\n"], true), ["a v=1", "b v=2"]);
});

Deno.test("with line.tcp.disconnect.on.error=false only the bad line is skipped", async () => {
  assert.deepEqual(await sent(["a v=1\nbad x=1\nc v=3\nbad x=1\n", "d v=4\n"], false), ["a v=1", "c v=3", "d v=4"]);
});

Deno.test("a value with a line feed may arrive in two pieces", async () => {
  const double = "\u0010\n\u0001\u0001\u0001\u0001\u0001\u0001\u0001";
  const [first, ...rest] = ["a v=1\nb v==", double.slice(0, 2), `${double.slice(2)} 1\nc v=3\n`];
  assert.deepEqual(
    (await sent([first + rest[0], rest[1]], true)).join("|"),
    `a v=1|b v==${double.replace("\n", "|")} 1|c v=3`,
  );
  const text = 'd s="one\\\n';
  assert.deepEqual((await sent([text, 'two"\n'], true)).join("|"), 'd s="one\\|two"');
});

Deno.test("a line above the limit closes the connection", async () => {
  assert.deepEqual(await sent(["a v=1\n", `b v="${"x".repeat(2 << 20)}`], true), ["a v=1"]);
});
