/** How drivers authenticate to the real server: by SCRAM-SHA-256, the default, and in clear text. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import postgres from "postgres";
import { installed, pythonWithDriver } from "../programs.ts";
import { startServer } from "../server.ts";
import { pgClient } from "../pg-client.ts";

/** Returns "ok" or the driver's error. */
type SignIn = (port: number, user: string, password: string) => Promise<string>;

const attempt = async (signIn: () => Promise<unknown>) => {
  try {
    await signIn();
    return "ok";
  } catch (error) {
    return (error as Error).message;
  }
};

const run = async (program: string, args: string[], password: string) => {
  const command = new Deno.Command(program, { args, env: { PGPASSWORD: password, LC_ALL: "C.UTF-8" } });
  const { success, stderr } = await command.output();
  return success ? "ok" : new TextDecoder().decode(stderr);
};

const clients: Record<string, SignIn> = {
  "node-postgres": (port, user, password) =>
    attempt(async () => {
      const client = pgClient({ pgPort: port }, { user, password });
      await client.connect();
      await client.end();
    }),
  "postgres.js": (port, user, password) =>
    attempt(async () => {
      const sql = postgres({ host: "127.0.0.1", port, user, password, database: "qdb", max: 1, fetch_types: false });
      try {
        await sql`select 1`;
      } finally {
        await sql.end();
      }
    }),
};
if ((await installed(["psql"], "psql")).length > 0) {
  clients.psql = (port, user, password) =>
    run("psql", ["-h", "127.0.0.1", "-p", `${port}`, "-U", user, "-X", "-d", "qdb", "-c", "select 1"], password);
}
const python = pythonWithDriver();
if (python === undefined) console.log("skipped: psycopg: no Python has it");
else {
  const script = "import psycopg, sys; psycopg.connect(host='127.0.0.1', port=sys.argv[1], user=sys.argv[2]).close()";
  clients.psycopg = (port, user, password) => run(python, ["-c", script, `${port}`, user], password);
}

/** The kind of AuthenticationRequest sent to a client of user `admin`. */
async function askedFor(port: number): Promise<number> {
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  const body = Buffer.from("\0\x03\0\0user\0admin\0\0", "latin1");
  const size = Buffer.alloc(4);
  size.writeInt32BE(body.length + 4);
  await conn.write(Buffer.concat([size, body]));
  const answer = Buffer.alloc(1_000);
  await conn.read(answer);
  return answer.readInt32BE(5);
}

const CLEAR_TEXT = 3, SASL = 10;
const cases: { method: string; env: Record<string, string>; asked: number }[] = [
  { method: "SCRAM", env: {}, asked: SASL },
  { method: "clear text", env: { SVC_PG_AUTH_METHOD: "password" }, asked: CLEAR_TEXT },
];
for (const { method, env, asked } of cases) {
  Deno.test(`drivers sign in by ${method}`, async (t) => {
    await using server = await startServer({
      env: { ...env, SVC_PG_PASSWORD: "pässwörd=, 1", SVC_PG_READONLY_USER_ENABLED: "true" },
    });
    assert.equal(await askedFor(server.pgPort), asked);
    for (const [name, signIn] of Object.entries(clients)) {
      await t.step(name, async () => {
        const said = (user: string, password: string) => signIn(server.pgPort, user, password);
        assert.equal(await said("admin", "pässwörd=, 1"), "ok");
        assert.equal(await said("user", "quest"), "ok");
        for (const [user, password] of [["admin", "quest"], ["Admin", "pässwörd=, 1"]]) {
          assert.match(await said(user, password), new RegExp(`password authentication failed for user "${user}"`));
        }
      });
    }
  });
}

Deno.test(
  { name: "psql: a password in another form of the same text", ignore: clients.psql === undefined },
  async () => {
    await using server = await startServer({ env: { SVC_PG_PASSWORD: "\u2168-nai\u0308f" } });
    assert.equal(await clients.psql(server.pgPort, "admin", "IX-na\u00eff"), "ok");
  },
);
