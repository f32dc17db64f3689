/** The protocol over a real socket, with a fake database. */
import assert from "node:assert/strict";
import { SqlError } from "../../errors.ts";
import { FakeDatabase, type FakeStatement } from "../testing/fake-database.ts";
import { LargeStatements } from "../large-statements.ts";
import { type PgOptions, startPg } from "./mod.ts";

const encoder = new TextEncoder(), decoder = new TextDecoder();

type Part = string | number | number[] | Uint8Array;
function join(parts: Part[]): Uint8Array<ArrayBuffer> {
  const all = parts.map((part) =>
    typeof part === "string" ? encoder.encode(part) : typeof part === "number" ? [part] : part
  );
  return Uint8Array.from(all.flatMap((part) => [...part]));
}
const int16 = (value: number) => [(value >> 8) & 255, value & 255];
const int32 = (value: number) => [...int16(value >> 16), ...int16(value)];
const message = (type: string, ...parts: Part[]): Uint8Array => {
  const body = join(parts);
  return join([type, int32(body.length + 4), body]);
};
const query = (text: string) => message("Q", text, 0);
const parse = (name: string, text: string, ...oids: number[]) =>
  message("P", name, 0, text, 0, int16(oids.length), ...oids.map(int32));
const bind = (portal: string, name: string, ...args: string[]) =>
  message(
    "B",
    portal,
    0,
    name,
    0,
    int16(0),
    int16(args.length),
    ...args.flatMap((arg) => [int32(arg.length), arg]),
    int16(0),
  );
const describe = (what: "S" | "P", name: string) => message("D", what, name, 0);
const execute = (portal = "", rows = 0) => message("E", portal, 0, int32(rows));
const SYNC = message("S"), FLUSH = message("H");

/** Sends bytes, and abbreviates answers: "C:SELECT 1", "Z:I", "E:42601@8". */
class RawClient {
  private buffer = new Uint8Array(0);
  pid = 0;
  key = 0;
  rows: string[][] = [];
  errors: Record<string, string>[] = [];
  statuses = new Map<string, string>();

  constructor(readonly conn: Deno.Conn) {}

  static async open(
    port: number,
    parameters: Record<string, string> = {},
    password = "quest",
    version = 3 << 16,
  ): Promise<RawClient> {
    const client = new RawClient(await Deno.connect({ hostname: "127.0.0.1", port }));
    const pairs = Object.entries({ user: "admin", ...parameters }).flatMap(([name, value]) => [name, 0, value, 0]);
    await client.sendStartUp(int32(version), ...pairs, 0);
    await client.send(message("p", password, 0));
    return client;
  }

  async sendStartUp(...parts: Part[]): Promise<void> {
    const body = join(parts);
    await this.send(join([int32(body.length + 4), body]));
  }

  async send(...messages: Uint8Array[]): Promise<void> {
    const bytes = join(messages);
    for (let at = 0; at < bytes.length;) at += await this.conn.write(bytes.subarray(at));
  }

  /** Reads messages up to one of type `last`. Returns "end" if the connection ends. */
  async until(last: string): Promise<string[]> {
    const told: string[] = [];
    for (;;) {
      const next = await this.next();
      told.push(next);
      if (next === "end" || next[0] === last) return told;
    }
  }

  private async next(): Promise<string> {
    while (this.buffer.length < 5 || this.buffer.length < this.size()) {
      const chunk = new Uint8Array(65_536);
      const count = await this.conn.read(chunk).catch(() => null);
      if (count === null) return "end";
      this.buffer = join([this.buffer, chunk.subarray(0, count)]);
    }
    const size = this.size();
    const type = String.fromCharCode(this.buffer[0]);
    const body = this.buffer.slice(5, size);
    this.buffer = this.buffer.slice(size);
    return this.tell(type, body);
  }

  private size(): number {
    return 1 + new DataView(this.buffer.buffer).getInt32(1);
  }

  private tell(type: string, body: Uint8Array): string {
    const view = new DataView(body.buffer);
    const text = decoder.decode(body);
    switch (type) {
      case "Z":
        return `Z:${text}`;
      case "C":
        return `C:${text.slice(0, -1)}`;
      case "K":
        this.pid = view.getInt32(0);
        this.key = view.getInt32(4);
        return "K";
      case "S": {
        const [name, value] = text.split("\0");
        this.statuses.set(name, value);
        return "S";
      }
      case "D": {
        const row: string[] = [];
        for (let at = 2, left = view.getInt16(0); left > 0; left--) {
          const length = view.getInt32(at);
          row.push(length < 0 ? "NULL" : decoder.decode(body.subarray(at + 4, at + 4 + length)));
          at += 4 + Math.max(0, length);
        }
        this.rows.push(row);
        return "D";
      }
      case "E": {
        const fields = Object.fromEntries(
          text.split("\0").filter((field) => field !== "").map((field) => [field[0], field.slice(1)]),
        );
        this.errors.push(fields);
        return `E:${fields.C}${fields.P === undefined ? "" : `@${fields.P}`}`;
      }
      case "N":
        return `N:${text.split("\0").find((field) => field.startsWith("M"))!.slice(1)}`;
      case "t":
        return `t:${Array.from({ length: view.getInt16(0) }, (_, index) => view.getInt32(2 + index * 4))}`;
      case "R":
        return `R:${view.getInt32(0)}`;
      default:
        return type;
    }
  }
}

/** Changes of the connection's state, by the start of the statement. */
const SESSION: [start: string, change: NonNullable<FakeStatement["change"]>][] = [
  ["set app", ({ settings }) => settings.set("application_name", "x", { isLocal: false, at: 0 })],
  ["set timeout", ({ settings }) => settings.set("statement_timeout", "0.5 min", { isLocal: false, at: 0 })],
  ["set wrong", ({ settings }) => settings.set("statement_timeout", "soon", { isLocal: false, at: 10 })],
  ["set local", ({ settings }) => settings.set("statement_timeout", "60", { isLocal: true, at: 0 })],
  ["set x", () => {}],
  ["reset timeout", ({ settings }) => settings.reset("statement_timeout")],
  ["deallocate all", (connection) => connection.deallocate()],
  ["deallocate nobody", (connection) => connection.deallocate({ text: "nobody", at: 11 })],
  ["close all", (connection) => connection.closePortals()],
  ["close nobody", (connection) => connection.closePortals({ text: "nobody", at: 6 })],
];

function statements(text: string): FakeStatement {
  if (text === "") return { done: { category: "empty", tag: "", rows: 0 } };
  const count = /^rows (\d+)/.exec(text);
  if (count) return { rowCount: Number(count[1]), chunkRows: 7 };
  if (text.startsWith("bad")) return { prepareError: new SqlError("not understood", 4) };
  if (text === "begin" || text === "commit" || text === "rollback") {
    return { done: { category: "transaction", tag: text.toUpperCase(), rows: 0 } };
  }
  if (text.startsWith("insert")) {
    return { done: { category: "dml", tag: "INSERT 0 3", rows: 3 }, parameters: text.includes("$1") ? ["LONG"] : [] };
  }
  if (text.startsWith("create")) return { done: { category: "ddl", tag: "CREATE TABLE", rows: 0 } };
  if (text === "ctas") return { done: { category: "ddl", tag: "SELECT 5", rows: 5 } };
  if (text === "echo") return { parameters: ["LONG"], echo: true };
  if (text === "breaks") return { rowCount: 100, chunkRows: 10, failAt: 30 };
  if (text === "told") return { notices: ["größer", "and more"] };
  const session = SESSION.find(([start]) => text.startsWith(start));
  if (session !== undefined) return { done: { category: "session", tag: "SET", rows: 0 }, change: session[1] };
  if (text === "slow") {
    return {
      onChunk: (signal) =>
        new Promise((_resolve, reject) =>
          signal!.addEventListener("abort", () => reject(signal!.reason), { once: true })
        ),
    };
  }
  return {};
}

function test(
  name: string,
  body: (
    open: (parameters?: Record<string, string>) => Promise<RawClient>,
    database: FakeDatabase,
    port: number,
  ) => Promise<void>,
  options: Partial<PgOptions> = {},
) {
  Deno.test(`startPg() ${name}`, async () => {
    const database = new FakeDatabase(statements);
    const clients: RawClient[] = [];
    const server = await startPg({
      hostname: "127.0.0.1",
      port: 0,
      database,
      user: "admin",
      password: "quest",
      authMethod: "password",
      log: { info() {}, error() {} },
      closeGraceMs: 50,
      ...options,
    });
    try {
      await body(
        async (parameters) => {
          const client = await RawClient.open(server.port, parameters);
          clients.push(client);
          assert.equal((await client.until("Z")).at(-1), "Z:I");
          return client;
        },
        database,
        server.port,
      );
    } finally {
      for (const { conn } of clients) {
        try {
          conn.close();
        } catch { /* the test did */ }
      }
      await server.close();
    }
  });
}

test("declines encryption and continues with the same connection", async (_open, _database, port) => {
  const client = new RawClient(await Deno.connect({ hostname: "127.0.0.1", port }));
  const answer = new Uint8Array(1);
  for (const code of [80877103, 80877104]) {
    await client.sendStartUp(int32(code));
    await client.conn.read(answer);
    assert.equal(answer[0], 0x4e);
  }
  await client.sendStartUp(int32(3 << 16), "user", 0, "admin", 0, 0);
  await client.send(message("p", "quest", 0));
  const told = await client.until("Z");
  assert.deepEqual(told.filter((one) => one !== "S"), ["R:3", "R:0", "K", "Z:I"]);
  assert.equal(client.statuses.get("standard_conforming_strings"), "on");
  assert.equal(client.statuses.get("client_encoding"), "UTF8");
  assert.equal(client.statuses.get("DateStyle"), "ISO, YMD");
  client.conn.close();
});

test("negotiates 3.0 with a client of 3.2, and refuses 2.0", async (_open, _database, port) => {
  const newer = await RawClient.open(port, { "_pq_.option": "x" }, "quest", (3 << 16) | 2);
  assert.equal((await newer.until("Z"))[0], "v");
  newer.conn.close();
  const older = await RawClient.open(port, {}, "quest", 2 << 16);
  assert.deepEqual(await older.until("E"), ["E:0A000"]);
  assert.equal(older.errors[0].S, "FATAL");
  older.conn.close();
});

test("refuses wrong passwords and unknown users", async (_open, _database, port) => {
  for (
    const [user, password] of [["admin", "no"], ["admin", ""], ["admin", "questx"], ["Admin", "quest"], [
      "user",
      "quest",
    ]]
  ) {
    const client = await RawClient.open(port, { user }, password);
    assert.deepEqual(await client.until("!"), ["R:3", "E:28P01", "end"]);
    assert.equal(client.errors[0].S, "FATAL");
    client.conn.close();
  }
});

test("delays log-ins after wrong passwords of that user, and of no other", async (_open, _database, port) => {
  const guess = (password: string) => RawClient.open(port, {}, password);
  for (let count = 0; count < 5; count++) {
    const client = await guess(`guess ${count}`);
    assert.deepEqual(await client.until("!"), ["R:3", "E:28P01", "end"]);
    client.conn.close();
  }
  const ended: string[] = [];
  const clients = await Promise.all(Array.from({ length: 12 }, () => guess("quest")));
  const waiting = clients.map(async (client) => {
    const told = await client.until("Z");
    ended.push(told.includes("E:53300") ? "refused" : told.at(-1)!);
  });
  const reader = await RawClient.open(port, { user: "reader" });
  assert.equal((await reader.until("Z")).at(-1), "Z:I");
  ended.push("reader");
  await Promise.all(waiting);
  // The four clients above the limit are refused at once. Eight wait longer than the other user and succeed.
  assert.deepEqual(ended.toSorted(), [...Array(8).fill("Z:I"), "reader", ...Array(4).fill("refused")]);
  assert.deepEqual(new Set(ended.slice(-8)), new Set(["Z:I"]));
  const after = await guess("quest");
  assert.equal((await after.until("Z")).at(-1), "Z:I");
  for (const { conn } of [...clients, reader, after]) conn.close();
}, { readonlyEnabled: true, readonlyUser: "reader", readonlyPassword: "quest" });

test("disconnects clients that do not log in, silent ones and slow ones", async (_open, _database, port) => {
  const silent = new RawClient(await Deno.connect({ hostname: "127.0.0.1", port }));
  const slow = new RawClient(await Deno.connect({ hostname: "127.0.0.1", port }));
  const asked = new RawClient(await Deno.connect({ hostname: "127.0.0.1", port }));
  await asked.sendStartUp(int32(3 << 16), "user", 0, "admin", 0, 0);
  // Sends a long message byte by byte.
  await slow.send(Uint8Array.from(int32(8000)));
  const drip = setInterval(() => slow.conn.write(new Uint8Array(1)).catch(() => {}), 20);
  try {
    const told = await Promise.all([silent.until("!"), slow.until("!"), asked.until("!")]);
    assert.deepEqual(told, [["end"], ["end"], ["R:3", "end"]]);
  } finally {
    clearInterval(drip);
  }
  for (const { conn } of [silent, slow, asked]) conn.close();
}, { logInTimeoutMs: 200 });

test("allows the second user only to read", async (open) => {
  const client = await open({ user: "reader" });
  await client.send(query("select"), query("insert"), query("create"), query("set x = 1"));
  assert.deepEqual(await client.until("Z"), ["T", "D", "C:SELECT 1", "Z:I"]);
  assert.deepEqual(await client.until("Z"), ["E:25006", "Z:I"]);
  assert.deepEqual(await client.until("Z"), ["E:25006", "Z:I"]);
  assert.deepEqual(await client.until("Z"), ["C:SET", "Z:I"]);
}, { readonlyEnabled: true, readonlyUser: "reader", readonlyPassword: "quest" });

const simple: { text: string; told: string[] }[] = [
  { text: "select", told: ["T", "D", "C:SELECT 1", "Z:I"] },
  { text: "rows 0", told: ["T", "C:SELECT 0", "Z:I"] },
  { text: "", told: ["I", "Z:I"] },
  { text: ";;", told: ["I", "Z:I"] },
  { text: "insert; create; ctas", told: ["C:INSERT 0 3", "C:OK", "C:OK 5", "Z:I"] },
  { text: "select; bad; select", told: ["T", "D", "C:SELECT 1", "E:42601@13", "Z:I"] },
  { text: "bad 'ä😀'", told: ["E:42601@5", "Z:I"] },
  { text: "begin; select; bad", told: ["C:BEGIN", "T", "D", "C:SELECT 1", "E:42601@20", "Z:E"] },
  { text: "set app; set app", told: ["S", "C:SET", "C:SET", "Z:I"] },
  { text: "deallocate nobody", told: ["E:26000", "Z:I"] },
  { text: "close nobody", told: ["E:34000", "Z:I"] },
  { text: "set wrong", told: ["E:22023@11", "Z:I"] },
  { text: "insert $1", told: ["E:42P02@1", "Z:I"] },
];
for (const { text, told } of simple) {
  test(`answers the simple query ${JSON.stringify(text)}`, async (open) => {
    const client = await open();
    await client.send(query(text));
    assert.deepEqual(await client.until("Z"), told);
    await client.send(query("rollback"), query("select"));
    await client.until("Z");
    assert.equal((await client.until("Z")).at(-2), "C:SELECT 1");
  });
}

test("sends notices once, regardless of how a statement is run", async (open) => {
  const client = await open();
  await client.send(query("told"));
  assert.deepEqual(await client.until("Z"), ["T", "N:größer", "N:and more", "D", "C:SELECT 1", "Z:I"]);
  await client.send(parse("s", "told"), bind("p", "s"), execute("p", 1), execute("p", 1), SYNC);
  assert.deepEqual(await client.until("Z"), ["1", "2", "N:größer", "N:and more", "D", "s", "C:SELECT 0", "Z:I"]);
});

test("runs a statement by Parse, Bind, Describe, Execute", async (open, database) => {
  const client = await open();
  await client.send(
    parse("s", "echo", 20),
    describe("S", "s"),
    bind("", "s", "42"),
    describe("P", ""),
    execute(),
    SYNC,
  );
  assert.deepEqual(await client.until("Z"), ["1", "t:20", "T", "2", "T", "D", "C:SELECT 1", "Z:I"]);
  await client.send(bind("", "s", "-7"), execute(), SYNC);
  assert.deepEqual(await client.until("Z"), ["2", "D", "C:SELECT 1", "Z:I"]);
  assert.deepEqual(client.rows, [["42"], ["-7"]]);
  assert.deepEqual(database.executed.map(({ values }) => values), [[42n], [-7n]]);
  await client.send(parse("", "insert"), describe("S", ""), bind("", ""), execute(), SYNC);
  assert.deepEqual(await client.until("Z"), ["1", "t:", "n", "2", "C:INSERT 0 3", "Z:I"]);
  await client.send(parse("", "rows 0"), bind("", ""), execute(), SYNC, bind("", ""), execute("", 5), SYNC);
  for (const hello of [["1", "2"], ["2"]]) assert.deepEqual(await client.until("Z"), [...hello, "C:SELECT 0", "Z:I"]);
  await client.send(parse("", ""), bind("", ""), execute(), SYNC);
  assert.deepEqual(await client.until("Z"), ["1", "2", "I", "Z:I"]);
});

test("answers in text and in binary, one format for all columns", async (open) => {
  const client = await open();
  const binary = message("B", 0, 0, int16(0), int16(0), int16(1), int16(1));
  await client.send(parse("", "rows 2"), binary, execute(), SYNC);
  assert.deepEqual(await client.until("Z"), ["1", "2", "D", "D", "C:SELECT 2", "Z:I"]);
  assert.deepEqual(client.rows, [["\0\0\0\0\0\0\0\x01"], ["\0\0\0\0\0\0\0\x02"]]);
});

test("returns a portal's rows in steps, also after Sync, and none twice", async (open, database) => {
  const client = await open();
  await client.send(parse("", "rows 20"), bind("p", ""), execute("p", 5), execute("p", 3), SYNC);
  assert.deepEqual(await client.until("Z"), ["1", "2", ..."DDDDD", "s", ..."DDD", "s", "Z:I"]);
  await client.send(execute("p", 12), execute("p", 5), execute("p", 5), SYNC);
  assert.deepEqual(await client.until("Z"), [..."DDDDDDDDDDDD", "s", "C:SELECT 0", "C:SELECT 0", "Z:I"]);
  assert.deepEqual(client.rows.map(([x]) => Number(x)), Array.from({ length: 20 }, (_, index) => index + 1));
  await client.send(bind("q", ""), execute("q", 5), message("C", "P", "q", 0), execute("q", 5), SYNC);
  assert.deepEqual(await client.until("Z"), ["2", ..."DDDDD", "s", "3", "E:34000", "Z:I"]);
  assert.equal(database.chunksReturned, 2);
});

test("frees the names of portals at Sync, except those that have more rows", async (open) => {
  const client = await open();
  await client.send(
    parse("s", "rows 4"),
    bind("whole", "s"),
    bind("part", "s"),
    execute("whole"),
    execute("part", 3),
    SYNC,
  );
  await client.until("Z");
  await client.send(query("set x = 1"), bind("whole", "s"), execute("part"), bind("part", "s"), SYNC);
  assert.deepEqual(await client.until("Z"), ["C:SET", "Z:I"]);
  assert.deepEqual(await client.until("Z"), ["2", "D", "C:SELECT 1", "E:42P03", "Z:I"]);
  await client.send(bind("part", "s"), execute("part", 1), query("begin; commit"), execute("part"), SYNC);
  assert.deepEqual(await client.until("Z"), ["2", "D", "s", "C:BEGIN", "C:COMMIT", "Z:I"]);
  assert.deepEqual(await client.until("Z"), ["E:34000", "Z:I"]);
});

test("skips all messages between an error and Sync", async (open) => {
  const client = await open();
  await client.send(parse("", "bad"), bind("", ""), execute(), FLUSH, SYNC, query("select"));
  assert.deepEqual(await client.until("Z"), ["E:42601@5", "Z:I"]);
  assert.deepEqual(await client.until("Z"), ["T", "D", "C:SELECT 1", "Z:I"]);
  await client.send(parse("", "breaks"), bind("", ""), execute(), execute(), SYNC);
  assert.deepEqual(await client.until("Z"), ["1", "2", ...new Array(30).fill("D"), "E:42601@8", "Z:I"]);
});

const refused: { title: string; messages: Uint8Array[]; told: string[] }[] = [
  { title: "an unknown statement", messages: [bind("", "nobody")], told: ["E:26000"] },
  { title: "an unknown portal", messages: [execute("nobody")], told: ["E:34000"] },
  {
    title: "a name that is already used",
    messages: [parse("a", "select"), parse("a", "select")],
    told: ["1", "E:42P05"],
  },
  { title: "two statements in one Parse", messages: [parse("", "select; select")], told: ["E:42601@9"] },
  { title: "too few arguments", messages: [parse("", "echo"), bind("", "")], told: ["1", "E:08P01"] },
  { title: "too many arguments", messages: [parse("", "select"), bind("", "", "1")], told: ["1", "E:08P01"] },
  {
    title: "an argument that is not a number",
    messages: [parse("", "echo"), bind("", "", "x")],
    told: ["1", "E:22P02@1"],
  },
  { title: "a parameter type without counterpart", messages: [parse("", "echo", 1186)], told: ["E:0A000@1"] },
  { title: "an incomplete message", messages: [message("P", "a", 0, "select")], told: ["E:08P01"] },
];
for (const { title, messages, told } of refused) {
  test(`refuses ${title}`, async (open) => {
    const client = await open();
    await client.send(...messages, SYNC);
    assert.deepEqual(await client.until("Z"), [...told, "Z:I"]);
    await client.send(query("select"));
    assert.equal((await client.until("Z")).at(-1), "Z:I");
  });
}

test("sends at Flush what is ready", async (open) => {
  const client = await open();
  await client.send(parse("s", "echo"), describe("S", "s"), FLUSH);
  assert.deepEqual(await client.until("T"), ["1", "t:20", "T"]);
  await client.send(bind("", "s", "1"), execute(), SYNC);
  assert.deepEqual(await client.until("Z"), ["2", "D", "C:SELECT 1", "Z:I"]);
});

test("keeps a failed transaction failed until it ends", async (open) => {
  const client = await open();
  await client.send(query("begin"), query("insert"), query("bad"), query("insert"), query("select"), query("commit"));
  const told = [["C:BEGIN", "Z:T"], ["C:INSERT 0 3", "Z:T"], ["E:42601@5", "Z:E"], ["E:25P02", "Z:E"], [
    "E:25P02",
    "Z:E",
  ], ["C:ROLLBACK", "Z:I"]];
  for (const expected of told) assert.deepEqual(await client.until("Z"), expected);
});

test("ends prepared statements and portals for its statements", async (open) => {
  const client = await open();
  await client.send(parse("s", "rows 4"), bind("p", "s"), execute("p", 1), SYNC);
  assert.deepEqual(await client.until("Z"), ["1", "2", "D", "s", "Z:I"]);
  await client.send(query("close all"), execute("p", 1), SYNC);
  assert.deepEqual(await client.until("Z"), ["C:SET", "Z:I"]);
  assert.deepEqual(await client.until("Z"), ["E:34000", "Z:I"]);
  await client.send(query("deallocate all"), bind("p", "s"), SYNC);
  assert.deepEqual(await client.until("Z"), ["C:SET", "Z:I"]);
  assert.deepEqual(await client.until("Z"), ["E:26000", "Z:I"]);
});

test("cancels by pid and key, but not with a wrong key", async (open, _database, port) => {
  const client = await open();
  await client.send(query("slow"));
  for (const key of [client.key ^ 1, client.key]) {
    const other = new RawClient(await Deno.connect({ hostname: "127.0.0.1", port }));
    await other.sendStartUp(int32(80877102), int32(client.pid), int32(key));
    assert.deepEqual(await other.until("!"), ["end"]);
    other.conn.close();
  }
  assert.deepEqual(await client.until("Z"), ["T", "E:57014", "Z:I"]);
  await client.send(query("select"));
  assert.equal((await client.until("Z")).at(-2), "C:SELECT 1");
});

test(
  "gives others a turn within a script of many statements, and can be cancelled between them",
  async (open, _database, port) => {
    const client = await open(), other = await open();
    await client.send(query("select;".repeat(50_000)));
    await other.send(query("select"));
    assert.equal((await other.until("Z")).at(-2), "C:SELECT 1");
    const cancelling = new RawClient(await Deno.connect({ hostname: "127.0.0.1", port }));
    await cancelling.sendStartUp(int32(80877102), int32(client.pid), int32(client.key));
    assert.deepEqual(await cancelling.until("!"), ["end"]);
    cancelling.conn.close();
    assert.deepEqual((await client.until("Z")).slice(-2), ["E:57014", "Z:I"]);
  },
);

test("cancels the statement of a client that has disconnected", async (open, database) => {
  const client = await open();
  await client.send(query("slow"));
  await new Promise((resolve) => setTimeout(resolve, 50));
  client.conn.close();
  for (let waited = 0; database.chunksReturned === 0; waited++) {
    assert.ok(waited < 100, "the statement runs on");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});

test("applies the client's time limit to its statements", async (open, database) => {
  const client = await open({ options: "-c statement_timeout=250" });
  const texts = [
    "select; set timeout; select; reset timeout",
    "set local; select",
    "begin; set local",
    "select",
    "commit",
  ];
  await client.send(...texts.map(query), query("select"));
  for (let k = 0; k <= texts.length; k++) await client.until("Z");
  const limits = database.executed.filter(({ text }) => text.trim() === "select").map(({ options }) =>
    options.timeoutMs
  );
  assert.deepEqual(limits, [250, 30_000, 60, 60, 250]);
});

test("ends the connection at a message of unknown type, or one that is too long", async (open) => {
  const unknown = await open();
  await unknown.send(query("select"), message("y"), query("select"));
  assert.deepEqual(await unknown.until("!"), ["T", "D", "C:SELECT 1", "Z:I", "E:08P01", "end"]);
  const long = await open();
  await long.send(query("select " + " ".repeat(1000)));
  assert.deepEqual(await long.until("!"), ["E:54000", "end"]);
}, { messageSizeMax: 1000 });

test("accepts messages in pieces of any size, and longer ones than its buffer", async (open, database) => {
  const client = await open();
  const bytes = join([parse("", "echo"), bind("", "", "5"), execute(), SYNC]);
  for (const byte of bytes) await client.conn.write(Uint8Array.of(byte));
  assert.deepEqual(await client.until("Z"), ["1", "2", "D", "C:SELECT 1", "Z:I"]);
  const text = "insert " + "x".repeat(300_000);
  await client.send(query("select"), query(text), query("select"));
  await client.until("Z");
  assert.deepEqual(await client.until("Z"), ["C:INSERT 0 3", "Z:I"]);
  assert.equal((await client.until("Z")).at(-1), "Z:I");
  assert.equal(database.executed[2].text, text);
});

test("answers thousands of statements that arrived together, in order", async (open) => {
  const client = await open();
  const count = 3000;
  const sending = client.send(
    parse("s", "echo"),
    ...Array.from({ length: count }, (_, index) => join([bind("", "s", String(index)), execute()])),
    SYNC,
  );
  await client.until("Z");
  await sending;
  assert.deepEqual(client.rows.map(([x]) => Number(x)), Array.from({ length: count }, (_, index) => index));
});

test("does not produce more rows while the client does not read", async (open, database) => {
  const client = await open();
  await client.send(query("rows 20000000"));
  await new Promise((resolve) => setTimeout(resolve, 300));
  const sent = () => database.heap.i64.length >= 0 && database.executed.length;
  assert.equal(sent(), 1);
  assert.equal(database.chunksReturned, 0, "20 million rows do not fit between the two sockets");
  client.conn.close();
});

test("refuses connections above the limit", async (open, _database, port) => {
  const first = await open();
  const second = await RawClient.open(port);
  assert.deepEqual(await second.until("!"), ["R:3", "R:0", "E:53300", "end"]);
  second.conn.close();
  await first.send(message("X"));
  assert.deepEqual(await first.until("!"), ["end"]);
  await open();
}, { connectionLimit: 1 });

test("tells idle clients why they are disconnected", async (open) => {
  const client = await open();
  assert.deepEqual(await client.until("!"), ["E:57P05", "end"]);
}, { idleTimeoutMs: 50 });

const largeStatements = new LargeStatements(1_000_000, 100);
test("refuses a large message if its room is not free for too long", async (open) => {
  const large = query(`rows 1 ${" ".repeat(400_000)}`), [refused, waiting] = [await open(), await open()];
  const release = await largeStatements.take(900_000);
  await refused.send(large);
  assert.deepEqual(await refused.until("E"), ["E:53200"]);
  assert.deepEqual(await refused.until("Z"), ["end"]);
  setTimeout(release, 20);
  await waiting.send(large);
  assert.deepEqual((await waiting.until("Z")).slice(-2), ["C:SELECT 1", "Z:I"]);
  // Given back when the next message is awaited.
  await waiting.send(query("rows 1"));
  await waiting.until("Z");
  (await largeStatements.take(1_000_000))();
}, { largeStatements });

let testMs = 0;
const quickStatements = new LargeStatements(1_000_000, 5_000, 2, () => testMs += 1_000);
test("ends a client that does not send the rest of its large message while others wait", async (open) => {
  const large = query(`rows 1 ${" ".repeat(800_000)}`), [silent, waiting] = [await open(), await open()];
  await silent.send(large.subarray(0, 400_000));
  await new Promise((resolve) => setTimeout(resolve, 50));
  await waiting.send(large);
  assert.deepEqual((await waiting.until("Z")).slice(-2), ["C:SELECT 1", "Z:I"]);
  assert.deepEqual(await silent.until("E"), ["E:53200"]);
  assert.deepEqual(await silent.until("Z"), ["end"]);
}, { largeStatements: quickStatements });

/** Some 364,000 of the bytes that statements may take. */
const long = (start = "rows 1") => start.padEnd(30_000);
test("limits the memory of prepared statements and portals of all connections", async (open) => {
  const [first, second] = [await open(), await open()];
  const answer = async (client: RawClient, ...messages: Uint8Array[]) => {
    await client.send(...messages, SYNC);
    return (await client.until("Z")).join(" ");
  };
  assert.equal(await answer(first, parse("a", long()), parse("b", long())), "1 1 Z:I");
  assert.equal(await answer(second, parse("c", long())), "E:53200 Z:I");
  assert.match(
    second.errors.at(-1)!.M!,
    /pg\.statement\.memory\.size, 1048576 bytes: found 7\d{5} bytes, and 36\d{4} more/,
  );
  assert.equal(await answer(second, bind("", "c")), "E:26000 Z:I");
  // Portals count their statement again, as it may be closed before them.
  assert.equal(await answer(first, bind("p", "a")), "E:53200 Z:I");
  assert.equal(await answer(first, bind("", "a"), execute()), "2 D C:SELECT 1 Z:I");
  assert.equal(await answer(first, message("C", "S", "b", 0)), "3 Z:I");
  assert.equal(await answer(second, parse("c", long())), "1 Z:I");
  // A failed one, one without a name, and one replaced leave nothing.
  for (let k = 0; k < 5; k++) {
    assert.equal(await answer(second, parse("bad", long("bad"))), "E:42601@5 Z:I");
    assert.equal(await answer(second, parse("", long()), bind("", ""), execute()), "1 2 D C:SELECT 1 Z:I");
  }
  first.conn.close();
  const third = await open();
  while (await answer(third, parse("d", long())) !== "1 Z:I") await new Promise((resolve) => setTimeout(resolve, 5));
}, { statementMemoryBytes: 1 << 20 });

test("forgets unnamed statements of waiting connections if statements take too much memory", async (open) => {
  const [waiting, running, small, other] = [await open(), await open(), await open(), await open()];
  await waiting.send(parse("", long()), SYNC);
  assert.deepEqual(await waiting.until("Z"), ["1", "Z:I"]);
  await running.send(parse("", long("rows 9")), bind("", ""), execute("", 3), FLUSH);
  assert.deepEqual(await running.until("s"), ["1", "2", "D", "D", "D", "s"]);
  await small.send(parse("", "rows 1"), SYNC);
  assert.deepEqual(await small.until("Z"), ["1", "Z:I"]);
  await other.send(parse("a", long()), parse("b", long()), SYNC);
  assert.deepEqual(await other.until("Z"), ["1", "1", "Z:I"]);
  await running.send(execute("", 3), SYNC);
  assert.deepEqual(await running.until("Z"), ["E:34000", "Z:I"]);
  await small.send(bind("", ""), execute(), SYNC);
  assert.deepEqual(await small.until("Z"), ["2", "D", "C:SELECT 1", "Z:I"]);
  // The next one is not refused, as it is not kept.
  await waiting.send(bind("", ""), SYNC, parse("", long()), bind("", ""), execute(), SYNC);
  assert.deepEqual(await waiting.until("Z"), ["E:26000", "Z:I"]);
  assert.deepEqual(await waiting.until("Z"), ["1", "2", "D", "C:SELECT 1", "Z:I"]);
}, { statementMemoryBytes: 1 << 20 });

Deno.test("startPg() tells clients that it is closing, and cancels statements that do not end", async () => {
  const server = await startPg({
    hostname: "127.0.0.1",
    port: 0,
    database: new FakeDatabase(statements),
    user: "admin",
    password: "quest",
    authMethod: "password",
    log: { info() {}, error() {} },
    closeGraceMs: 50,
  });
  const idle = await RawClient.open(server.port), busy = await RawClient.open(server.port);
  await Promise.all([idle.until("Z"), busy.until("Z")]);
  await busy.send(query("slow"));
  await new Promise((resolve) => setTimeout(resolve, 50));
  await server.close();
  assert.deepEqual(await idle.until("!"), ["E:57P01", "end"]);
  assert.deepEqual(await busy.until("!"), ["T", "E:57014", "Z:I", "E:57P01", "end"]);
  idle.conn.close();
  busy.conn.close();
});
