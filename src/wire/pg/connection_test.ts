import assert from "node:assert/strict";
import v8 from "node:v8";
import vm from "node:vm";
import { FakeDatabase } from "../testing/fake-database.ts";
import { Connection } from "./connection.ts";
import type { PgLog } from "./contract.ts";
import { Input } from "./input.ts";
import { KeptMemory } from "./kept.ts";
import { Output } from "./output.ts";
import { SessionSettings } from "./session-settings.ts";
import { SharedTurn } from "./shared-turn.ts";

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
  const session = database.session({ name: "ann" }), kept = new KeptMemory(Infinity);
  await new Connection(
    input,
    new Output(writer),
    session,
    who,
    { database, log, namedStatementLimit: 10, kept, turn: new SharedTurn() } as never,
  )
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

/** DataRow of one text column. */
const row = (value: string) => message("D", 0, 1, ...int32(value.length), ...encoder.encode(value));

class LentRows {
  readonly kind = "rows";
  readonly timestamp = -1;

  constructor(
    readonly columns: { name: string; type: string }[],
    readonly ready: { bytes: Uint8Array; rows: number }[],
  ) {}

  get chunks() {
    return ReadableStream.from(this.ready);
  }

  totalRows(): number {
    return 1;
  }
}

/**
 * A session whose statement is answered at once, with rows in one buffer that each execution overwrites. `valueOf`: the value of an
 * execution, by its number.
 */
function lendingSession(valueOf: (execution: number) => string) {
  const columns = [{ name: "x", type: "VARCHAR" }], buffer = new Uint8Array(1 << 20);
  let executions = 0;
  const prepared = {
    ...{ columns, timestamp: -1, parameters: [], parameterArrays: [], notices: [], category: "query" },
    execute: (_values: unknown, { lends }: { lends?: boolean }) => {
      const bytes = Uint8Array.from(row(valueOf(executions++)));
      buffer.set(bytes);
      const lent = lends ? buffer.subarray(0, bytes.length) : bytes;
      return new LentRows(columns, [{ bytes: lent, rows: 1 }]);
    },
  };
  return {
    identity: { name: "ann" },
    transaction: "idle",
    prepare: () => prepared,
    split: (text: string) => [{ text, at: 0 }],
    end: () => Promise.resolve(),
  };
}

function connectionOf(
  session: ReturnType<typeof lendingSession>,
  read: (into: Uint8Array) => Promise<number | null>,
  write: (bytes: Uint8Array) => Promise<number>,
): Connection {
  const input = new Input({ read }, 100_000, () => {});
  input.endStartUp(100_000);
  const who = { settings: new SessionSettings(), canWrite: true };
  const log: PgLog = { info() {}, error: assert.fail };
  return new Connection(
    input,
    new Output({ write }),
    session as never,
    who,
    { log, namedStatementLimit: 10, kept: new KeptMemory(Infinity), turn: new SharedTurn() } as never,
  );
}

Deno.test("Connection: rows in a buffer that the next execution overwrites are sent as they were, few and many", async () => {
  for (const size of [3, 20_000, 70_000]) {
    const valueOf = (execution: number) => String.fromCharCode(97 + execution).repeat(size);
    const session = lendingSession(valueOf);
    // Two connections whose executions alternate.
    const told = await Promise.all([0, 1].map(async () => {
      const requests = [PARSE, ...Array.from({ length: 4 }, () => [...BIND, ...EXECUTE, ...SYNC])];
      let text = "";
      const read = async (into: Uint8Array) => {
        await new Promise((resolve) => setTimeout(resolve));
        const request = requests.shift();
        if (request === undefined) return null;
        into.set(request);
        return request.length;
      };
      const write = async (bytes: Uint8Array) => {
        await new Promise((resolve) => setTimeout(resolve));
        text += new TextDecoder("latin1").decode(bytes);
        return bytes.length;
      };
      await connectionOf(session, read, write).run();
      return text;
    }));
    const values = told.flatMap((text) => [...text.matchAll(/([a-h])\1{2,}/g)].map(([value]) => value));
    assert.deepEqual(values.toSorted(), Array.from({ length: 8 }, (_, k) => valueOf(k)));
  }
});

Deno.test("Connection: a known execution takes one read, one write, and little of the JavaScript heap", async () => {
  v8.setFlagsFromString("--expose-gc");
  const collect = vm.runInNewContext("gc") as () => void;
  const request = Uint8Array.from([...BIND, ...EXECUTE, ...SYNC]), parse = Uint8Array.from(PARSE);
  const calls = 50, warmUp = 3_000, measured: number[] = [];
  let reads = 0, writes = 0, before = 0;
  const counts: number[] = [];
  const read = (into: Uint8Array): Promise<number | null> => {
    const at = reads++ - warmUp;
    if (at === 10 * calls) return Promise.resolve(null);
    if (at >= 0 && at % calls === 0) {
      const used = Deno.memoryUsage().heapUsed;
      if (at > 0) measured.push((used - before) / calls);
      counts.push(writes);
      collect();
      before = Deno.memoryUsage().heapUsed;
    }
    const bytes = reads === 1 ? parse : request;
    into.set(bytes);
    return Promise.resolve(bytes.length);
  };
  const write = (bytes: Uint8Array): Promise<number> => (writes++, Promise.resolve(bytes.length));
  await connectionOf(lendingSession(() => "1"), read, write).run();
  assert.deepEqual(counts.map((count) => count - counts[0]), counts.map((_, k) => k * calls));
  // The session of the test takes a part. A collection within a measurement makes it useless.
  const least = Math.min(...measured.filter((bytes) => bytes > 0));
  assert.ok(least < 5_000, `${least} bytes`);
});
