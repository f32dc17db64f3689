import assert from "node:assert/strict";
import { FakeDatabase } from "../testing/fake-database.ts";
import { Connection } from "./connection.ts";
import type { PgLog } from "./contract.ts";
import { Input } from "./input.ts";
import { Output } from "./output.ts";
import { SessionSettings } from "./session-settings.ts";

const encoder = new TextEncoder();
const int32 = (value: number) => [value >>> 24, value >>> 16 & 255, value >>> 8 & 255, value & 255];
const text = (value: string) => [...encoder.encode(value), 0];
const message = (type: string, ...body: number[]) => [type.charCodeAt(0), ...int32(body.length + 4), ...body];

const PARSE = message("P", ...text("s"), ...text("select"), 0, 0);
const BIND = message("B", 0, ...text("s"), 0, 0, 0, 0, 0, 0);
const EXECUTE = message("E", 0, 0, 0, 0, 0), SYNC = message("S");

/** The types of the messages of each write that answers requests which arrive together. */
async function writesFor(...requests: number[][]): Promise<string[]> {
  const reads = [Uint8Array.from(requests.flat())], writes: string[] = [];
  const reader = {
    read(into: Uint8Array): Promise<number | null> {
      const bytes = reads.shift();
      if (bytes !== undefined) into.set(bytes);
      return Promise.resolve(bytes?.length ?? null);
    },
  };
  const writer = {
    write(bytes: Uint8Array): Promise<number> {
      let types = "";
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      for (let at = 0; at < bytes.length; at += 1 + view.getInt32(at + 1)) types += String.fromCharCode(bytes[at]!);
      writes.push(types);
      return Promise.resolve(bytes.length);
    },
  };
  const database = new FakeDatabase(() => ({ rowCount: 1 }));
  const log: PgLog = { info() {}, error: assert.fail };
  const input = new Input(reader, 100_000, () => {});
  input.endStartUp(100_000);
  const who = { settings: new SessionSettings(), canWrite: true };
  const session = database.session({ name: "ann" });
  await new Connection(input, new Output(writer), session, who, { database, log, namedStatementLimit: 10 } as never)
    .run();
  return writes;
}

Deno.test("Connection: executions that arrive together are answered in one write", async () => {
  const [start, ...answers] = await writesFor(
    PARSE,
    ...Array.from({ length: 16 }, () => [...BIND, ...EXECUTE, ...SYNC]),
  );
  assert.equal(start, "Z");
  assert.deepEqual(answers, [`1${"2DCZ".repeat(16)}`]);
});
