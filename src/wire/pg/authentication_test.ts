/**
 * Tests log-ins by SCRAM over a real socket, byte by byte. Log-ins by real drivers are tested in
 * `tests/clients/authentication_test.ts`.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash, createHmac, pbkdf2Sync } from "node:crypto";
import { FakeDatabase } from "../testing/fake-database.ts";
import { LogInDelays } from "../log-in-delays.ts";
import { authenticate, type Claim, type Gate } from "./authentication.ts";
import type { FatalError } from "./failure.ts";
import { type PgOptions, startPg } from "./mod.ts";

const int32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const message = (type: string, ...parts: Uint8Array[]) => {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
};
const cstring = (text: string) => Buffer.from(`${text}\0`);
const initial = (data: string, mechanism = "SCRAM-SHA-256") =>
  message("p", cstring(mechanism), int32(data.length), Buffer.from(data));
const response = (data: string) => message("p", Buffer.from(data));

interface Told {
  /** "R10", "E08P01", "end". */
  tag: string;
  text: string;
}

class Client {
  private rest = Buffer.alloc(0);
  private constructor(private readonly conn: Deno.Conn) {}

  static async open(port: number, user: string): Promise<Client> {
    const client = new Client(await Deno.connect({ hostname: "127.0.0.1", port }));
    const body = Buffer.concat([int32(3 << 16), cstring("user"), cstring(user), Buffer.alloc(1)]);
    await client.send(Buffer.concat([int32(body.length + 4), body]));
    return client;
  }

  async send(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += await this.conn.write(bytes.subarray(at));
  }

  async next(): Promise<Told> {
    while (this.rest.length < 5 || this.rest.length < 1 + this.rest.readInt32BE(1)) {
      const chunk = new Uint8Array(4096);
      const count = await this.conn.read(chunk).catch(() => null);
      if (count === null) return { tag: "end", text: "" };
      this.rest = Buffer.concat([this.rest, chunk.subarray(0, count)]);
    }
    const end = 1 + this.rest.readInt32BE(1);
    const type = String.fromCharCode(this.rest[0]), body = this.rest.subarray(5, end);
    this.rest = this.rest.subarray(end);
    if (type === "R") return { tag: `R${body.readInt32BE(0)}`, text: body.subarray(4).toString() };
    if (type !== "E") return { tag: type, text: "" };
    const fields = body.toString().split("\0");
    const field = (name: string) => fields.find((one) => one.startsWith(name))?.slice(1);
    return { tag: `E${field("C")}`, text: field("M") ?? "" };
  }

  async tags(count: number): Promise<string[]> {
    const tags: string[] = [];
    while (tags.length < count) tags.push((await this.next()).tag);
    return tags;
  }

  /** Runs the client's side of RFC 5802. Returns the last message. */
  async logIn(password: string, flag = "n"): Promise<Told> {
    assert.equal((await this.next()).tag, "R10");
    await this.send(initial(`${flag},,n=,r=abc`));
    const serverFirst = (await this.next()).text;
    const { nonce, salt, iterations } = attributes(serverFirst);
    const salted = pbkdf2Sync(password, Buffer.from(salt, "base64"), iterations, 32, "sha256");
    const hmac = (key: Uint8Array, text: string) => createHmac("sha256", key).update(text).digest();
    const clientKey = hmac(salted, "Client Key");
    const withoutProof = `c=${Buffer.from(`${flag},,`).toString("base64")},r=${nonce}`;
    const authMessage = `n=,r=abc,${serverFirst},${withoutProof}`;
    const signature = hmac(createHash("sha256").update(clientKey).digest(), authMessage);
    const proof = Buffer.from(clientKey.map((byte, index) => byte ^ signature[index]));
    await this.send(response(`${withoutProof},p=${proof.toString("base64")}`));
    const final = await this.next();
    if (final.tag !== "R12") return final;
    assert.equal(final.text, `v=${hmac(hmac(salted, "Server Key"), authMessage).toString("base64")}`);
    return await this.next();
  }

  [Symbol.dispose](): void {
    this.conn.close();
  }
}

function attributes(serverFirst: string): { nonce: string; salt: string; iterations: number } {
  const { nonce, salt, iterations } = /^r=(?<nonce>.*),s=(?<salt>.*),i=(?<iterations>\d+)$/.exec(serverFirst)!.groups!;
  return { nonce, salt, iterations: Number(iterations) };
}

/** Settings can change by a reload. */
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function test(
  name: string,
  body: (open: (user?: string) => Promise<Client>, options: Mutable<PgOptions>) => Promise<void>,
) {
  Deno.test(`startPg() ${name}`, async () => {
    const unhandled: string[] = [];
    const options: Mutable<PgOptions> = {
      hostname: "127.0.0.1",
      port: 0,
      database: new FakeDatabase(() => ({})),
      user: "admin",
      password: "quest",
      readonlyEnabled: true,
      readonlyUser: "reader",
      readonlyPassword: "read",
      log: { info() {}, error: (text) => unhandled.push(text) },
      closeGraceMs: 50,
    };
    const server = await startPg(options);
    try {
      await body((user = "admin") => Client.open(server.port, user), options);
    } finally {
      await server.close();
    }
    assert.deepEqual(unhandled, []);
  });
}

test("signs users in by SCRAM, whether or not they could bind to a channel", async (open) => {
  for (const [user, password, flag] of [["admin", "quest", "n"], ["admin", "quest", "y"], ["reader", "read", "n"]]) {
    using client = await open(user);
    assert.equal((await client.logIn(password, flag)).tag, "R0", `${user} ${flag}`);
  }
});

test("refuses wrong passwords and unknown users with the same message", async (open) => {
  for (const [user, password] of [["admin", "Quest"], ["admin", ""], ["reader", "quest"], ["nobody", "quest"]]) {
    using client = await open(user);
    assert.deepEqual(await client.logIn(password), {
      tag: "E28P01",
      text: `password authentication failed for user "${user}"`,
    });
    assert.equal((await client.next()).tag, "end");
  }
});

test("uses a constant salt for each name, known or not, and a new nonce each time", async (open) => {
  const challenge = async (user: string) => {
    using client = await open(user);
    await client.next();
    await client.send(initial("n,,n=,r=abc"));
    return attributes((await client.next()).text);
  };
  const names = ["admin", "reader", "nobody", "Admin"];
  const first = await Promise.all(names.map(challenge)), second = await Promise.all(names.map(challenge));
  assert.deepEqual(first.map(({ salt }) => salt), second.map(({ salt }) => salt));
  assert.equal(new Set(first.map(({ salt }) => salt)).size, names.length);
  assert.equal(new Set([...first, ...second].map(({ nonce }) => nonce)).size, 2 * names.length);
  assert.deepEqual(
    new Set([...first, ...second].map(({ salt, iterations }) => [salt.length, iterations].join())),
    new Set(["24,4096"]),
  );
});

test("applies a changed password, number of iterations and method", async (open, options) => {
  const logIn = async (password: string) => {
    using client = await open();
    return (await client.logIn(password)).tag;
  };
  options.password = "other";
  assert.deepEqual([await logIn("quest"), await logIn("other")], ["E28P01", "R0"]);
  options.scramIterations = 5_000;
  assert.equal(await logIn("other"), "R0");
  options.authMethod = "password";
  using client = await open();
  await client.next();
  await client.send(message("p", cstring("other")));
  assert.equal((await client.next()).tag, "R0");
});

const SCRAM = "SCRAM-SHA-256";
const refused: { title: string; sent: () => Uint8Array[]; tags: string[] }[] = [
  { title: "a password in clear text", sent: () => [response("quest\0")], tags: ["E08P01", "end"] },
  { title: "a statement", sent: () => [message("Q", cstring("select 1"))], tags: ["E08P01", "end"] },
  { title: "another mechanism", sent: () => [initial("n,,n=,r=a", "PLAIN")], tags: ["E08P01", "end"] },
  { title: "the mechanism with TLS", sent: () => [initial("n,,n=,r=a", `${SCRAM}-PLUS`)], tags: ["E08P01", "end"] },
  { title: "channel binding", sent: () => [initial("p=tls-unique,,n=,r=a")], tags: ["E08P01", "end"] },
  { title: "no data", sent: () => [message("p", cstring(SCRAM), int32(-1))], tags: ["E08P01", "end"] },
  {
    title: "less data than declared",
    sent: () => [message("p", cstring(SCRAM), int32(9), Buffer.from("n,,"))],
    tags: ["E08P01", "end"],
  },
  {
    title: "a message of 70,000 bytes",
    sent: () => [initial(`n,,n=,r=${"a".repeat(70_000)}`)],
    tags: ["E54000", "end"],
  },
  { title: "a name to act as", sent: () => [initial("n,a=admin,n=,r=a")], tags: ["E0A000", "end"] },
  {
    title: "a last message without proof",
    sent: () => [initial("n,,n=,r=a"), response("c=biws,r=a")],
    tags: ["R11", "E08P01", "end"],
  },
  {
    title: "a first message in place of the last one",
    sent: () => [initial("n,,n=,r=a"), initial("n,,n=,r=a")],
    tags: ["R11", "E08P01", "end"],
  },
  { title: "a client that disconnects", sent: () => [initial("n,,n=,r=a"), message("X")], tags: ["R11", "end"] },
];
for (const { title, sent, tags } of refused) {
  test(`refuses ${title}, and serves others`, async (open) => {
    using client = await open();
    assert.equal((await client.next()).tag, "R10");
    for (const bytes of sent()) await client.send(bytes);
    assert.deepEqual(await client.tags(tags.length), tags);
    using other = await open();
    assert.equal((await other.logIn("quest")).tag, "R0");
  });
}

test("makes log-ins wait after three wrong proofs", async (open) => {
  for (let count = 0; count < 4; count++) {
    using client = await open();
    assert.equal((await client.logIn("wrong")).tag, "E28P01");
  }
  const clients = await Promise.all(Array.from({ length: 12 }, () => open()));
  const tags = await Promise.all(clients.map(async (client) => (await client.logIn("quest")).tag));
  for (const client of clients) client[Symbol.dispose]();
  assert.deepEqual(tags.toSorted(), [...Array(4).fill("E53300"), ...Array(8).fill("R0")]);
});

/** The outcome of a log-in by a password in clear text: what the server asks for, or the error. */
async function clearText(hostname: string, isEncrypted: boolean, allowsClearText: boolean): Promise<string> {
  const sent: string[] = [];
  const output = { authenticationCleartextPassword: () => sent.push("asks"), flush: async () => {} };
  const input = { fill: async () => false }; // the client leaves when it is asked
  const address = { hostname, port: 1, transport: "tcp" };
  const options = { authMethod: "password", allowsClearText, database: { access: {} } };
  const accounts = { proofOf: () => "local" };
  const delays = new LogInDelays();
  try {
    await authenticate(
      { user: "alice", input, output, address, isEncrypted } as unknown as Claim,
      { delays, accounts, options } as unknown as Gate,
    );
    return sent.join();
  } catch (error) {
    return `${(error as FatalError).message} after ${sent.length} messages`;
  } finally {
    delays.close();
  }
}

const REFUSED = /^passwords in clear text need TLS \(acl\.clear\.text\.passwords\): .* after 0 messages$/;
const clearTexts: [hostname: string, isEncrypted: boolean, allows: boolean, expected: RegExp][] = [
  ["192.0.2.7", false, false, REFUSED],
  ["192.0.2.7", true, false, /^asks$/],
  ["192.0.2.7", false, true, /^asks$/],
  ["127.0.0.1", false, false, /^asks$/],
  ["::1", false, false, /^asks$/],
];
for (const [hostname, isEncrypted, allows, expected] of clearTexts) {
  Deno.test(`authenticate() with a password in clear text from ${hostname}, TLS ${isEncrypted}, allowed ${allows}`, async () => {
    assert.match(await clearText(hostname, isEncrypted, allows), expected);
  });
}
