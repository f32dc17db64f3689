/** The PostgreSQL wire: tokens as the password of _sso, and names with passwords of the identity provider. */
import assert from "node:assert/strict";
import type pg from "pg";
import { basic, type Credentials, type ProtectedServer } from "../access/server.ts";
import { startProvider, type TestProvider } from "./provider.ts";
import { logged, startSignOn } from "./server.ts";

const SET_UP = [
  "create group readers with external alias 'CN=readers'",
  "grant HTTP, PGWIRE to readers",
  "grant SELECT on all tables to readers",
  "create user local with password 'local''s'",
  "grant PGWIRE, HTTP to local",
];

interface Stage extends AsyncDisposable {
  provider: TestProvider;
  server: ProtectedServer;
}

async function stage(env: Record<string, string>): Promise<Stage> {
  const provider = await startProvider({
    users: {
      bob: { name: "Bob Jones", groups: ["CN=readers"], password: "bob's" },
      local: { name: "Another local", groups: ["CN=readers"], password: "other's" },
      carol: { name: "Carol", password: "carol's" },
    },
  });
  const server = await startSignOn(provider, {
    SVC_ACL_OIDC_CACHE_TTL: "200",
    SVC_ACL_OIDC_HTTP_TIMEOUT: "1s",
    ...env,
  });
  await server.set(...SET_UP);
  return {
    provider,
    server,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
    },
  };
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 250));
const user = async (client: pg.Client) => (await client.query("select current_user() as u")).rows[0].u;

/** The code of the error with which a connection or statement is refused. */
async function refusal(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  const error = await work.then(() => undefined, (error) => error);
  assert.ok(error instanceof Error, "it is refused");
  return error as unknown as { code: string; message: string };
}

Deno.test("PG takes a token as the password of _sso, and asks the provider again", async (test) => {
  await using made = await stage({ SVC_ACL_OIDC_PG_TOKEN_AS_PASSWORD_ENABLED: "true" });
  const { provider, server } = made;
  const token = await provider.accessToken("bob");
  const signOn = (password: string) => server.pg({ name: "_sso", password });

  await test.step("the user is that of the token", async () => {
    const client = await signOn(token);
    assert.equal(await user(client), "bob");
    const { rows } = await client.query("select username, full_name from query_activity()");
    assert.deepEqual(rows, [{ username: "bob", full_name: "Bob Jones" }]);
    await client.end();
  });

  await test.step("an empty name is as good as _sso", async () => {
    using conn = await Deno.connect({ hostname: "127.0.0.1", port: server.pgPort });
    const send = (type: string, text: string) => {
      const body = new TextEncoder().encode(text), size = new Uint8Array(4);
      new DataView(size.buffer).setInt32(0, body.length + 4);
      return conn.write(new Uint8Array([...new TextEncoder().encode(type), ...size, ...body]));
    };
    const answer = new Uint8Array(4096);
    await send("", "\0\x03\0\0user\0\0database\0qdb\0\0");
    await conn.read(answer);
    assert.deepEqual([...answer.subarray(0, 9)], [0x52, 0, 0, 0, 8, 0, 0, 0, 3], "a password is asked for");
    await send("p", `${token}\0`);
    await conn.read(answer);
    assert.deepEqual([...answer.subarray(0, 9)], [0x52, 0, 0, 0, 8, 0, 0, 0, 0], "it is accepted");
  });

  await test.step("false tokens, REST tokens, and users without permission are refused", async () => {
    const { code, message } = await refusal(signOn("false"));
    assert.equal((await refusal(signOn("x".repeat(60_000)))).code, "28P01", "tokens may be long");
    assert.equal(code, "28P01");
    assert.match(message, /the token is not valid: sign in again/);
    const { dataset } = await server.sql("alter user local create token type rest with ttl '1d'");
    assert.equal((await refusal(signOn(String(dataset![0][1])))).code, "28P01");
    const carol = await refusal(signOn(await provider.accessToken("carol")));
    assert.equal(carol.code, "42501");
    assert.match(carol.message, /Access denied for carol \[PGWIRE\]: signed in, but .* no groups/);
    assert.equal((await refusal(server.pg({ name: "bob", password: "bob's" }))).code, "28P01");
  });

  await test.step("a connection asks again, and follows changes of groups", async () => {
    const client = await signOn(token);
    const before = provider.requests.get("/me")!;
    await pause();
    await client.query("select 1");
    await client.query("select 1");
    assert.equal(provider.requests.get("/me"), before + 1);
    provider.users.get("bob")!.groups = [];
    await pause();
    assert.equal((await refusal(client.query("select 1"))).code, "42501");
    provider.users.get("bob")!.groups = ["CN=readers"];
    await pause();
    assert.equal(await user(client), "bob");
    await client.end();
  });

  await test.step("service accounts that a group may assume", async () => {
    await server.set("create service account app", "grant PGWIRE, SYSTEM ADMIN to app");
    const client = await signOn(token);
    assert.equal((await refusal(client.query("assume service account app"))).code, "42501");
    await server.set("grant assume service account app to readers");
    await client.query("assume service account app");
    assert.equal((await client.query("show permissions")).rows.length > 0, true);
    await client.query("exit service account app");
    await client.end();
  });

  await test.step("while the provider is down statements fail, and the connection goes on afterwards", async () => {
    const client = await signOn(token);
    await provider.stop();
    await pause();
    for (const statement of ["select 1", { text: "select $1::int", values: [1] }]) {
      const { code, message } = await refusal(client.query(statement as string));
      assert.equal(code, "57P03");
      assert.match(message, /try again later/);
    }
    assert.equal((await refusal(signOn(await provider.accessToken("bob")))).code, "57P03");
    const local = await server.pg({ name: "local", password: "local's" });
    assert.equal(await user(local), "local");
    await local.end();
    await provider.start();
    assert.equal(await user(client), "bob");
    await client.end();
  });

  await test.step("a revoked user's connection ends", async () => {
    const client = await signOn(token);
    provider.users.get("bob")!.isRevoked = true;
    await pause();
    const { code, message } = await refusal(client.query("select 1"));
    assert.equal(code, "28000");
    assert.match(message, /no longer accepts the user/);
    await refusal(client.query("select 1"));
    assert.equal((await refusal(signOn(token))).code, "28P01");
  });

  await test.step("no token is in the log", async () => {
    await server.stop();
    assert.ok(!server.output().includes(token));
  });
});

Deno.test("names and passwords of the provider, over HTTP, line protocol and PG", async (test) => {
  await using made = await stage({ SVC_ACL_OIDC_ROPC_FLOW_ENABLED: "true" });
  const { provider, server } = made;
  const bob = { name: "bob", password: "bob's" };
  const asked = () => provider.requests.get("/token") ?? 0;

  await test.step("Basic, and the cache", async () => {
    assert.deepEqual((await server.sql("select current_user()", bob)).dataset, [["bob"]]);
    const before = asked();
    await server.sql("select 1", bob);
    assert.ok(asked() - before <= 1);
    await pause();
    await server.sql("select 1", bob);
    assert.ok(asked() > before, "the password is checked again when it is stale");
  });

  await test.step("lines", async () => {
    assert.equal((await server.lines("t x=1", bob)).status, 403);
    await server.set("grant CREATE TABLE to readers");
    await server.set("create table t (x double, timestamp timestamp) timestamp(timestamp) partition by day");
    await server.set("grant INSERT on t to readers");
    assert.equal((await server.lines("t x=1", bob)).status, 204);
  });

  await test.step("PG, though it asks users of the database by SCRAM", async () => {
    const client = await server.pg(bob);
    assert.equal(await user(client), "bob");
    await client.end();
  });

  await test.step("wrong passwords and unknown names are refused alike", async () => {
    for (const wrong of [{ ...bob, password: "wrong" }, { name: "nobody", password: "x" }]) {
      assert.equal((await server.sql("select 1", wrong)).status, 401);
      const { code, message } = await refusal(server.pg(wrong));
      assert.equal(code, "28P01");
      assert.match(message, /password authentication failed for user/);
    }
  });

  await test.step("users of the database come first, and their passwords do not reach the provider", async () => {
    const before = asked();
    assert.equal((await server.sql("select 1", { name: "local", password: "local's" })).status, 200);
    assert.equal((await server.sql("select 1", { name: "local", password: "other's" })).status, 401);
    assert.equal((await server.sql("select 1", { name: "LOCAL", password: "other's" })).status, 401);
    assert.equal((await server.sql("select 1", { name: "admin", password: "x" })).status, 401);
    assert.equal(asked(), before);
  });

  await test.step("a connection outlives its access token by the refresh token, but not the user", async () => {
    const client = await server.pg(bob);
    provider.disturbance = ({ url, headers }, reply) => {
      if (url !== "/me" || headers.authorization === `Bearer ${fresh}`) return false;
      reply.writeHead(401).end();
      return true;
    };
    let fresh = "";
    const passToken = provider.disturbance;
    // The provider renews; its new access token is accepted.
    provider.disturbance = (request, reply) => {
      if (request.url === "/token") {
        const end = reply.end.bind(reply) as (...parts: unknown[]) => typeof reply;
        reply.end = ((...parts: unknown[]) => {
          fresh = /"access_token":"([^"]+)"/.exec(String(parts[0]))?.[1] ?? fresh;
          return end(...parts);
        }) as typeof reply.end;
        return false;
      }
      return passToken(request, reply);
    };
    await pause();
    assert.equal(await user(client), "bob");
    assert.notEqual(fresh, "");
    provider.disturbance = undefined;
    provider.users.get("bob")!.isRevoked = true;
    await pause();
    assert.equal((await refusal(client.query("select 1"))).code, "28000");
    assert.equal((await server.sql("select 1", bob)).status, 401);
    provider.users.get("bob")!.isRevoked = false;
  });

  await test.step("a provider that refuses the client, or is down: 503", async () => {
    await pause();
    provider.disturbance = ({ url }, reply) => {
      if (url !== "/token") return false;
      reply.writeHead(401, { "content-type": "application/json" }).end('{"error":"invalid_client"}');
      return true;
    };
    assert.equal((await server.sql("select 1", { ...bob, password: "bob's " })).status, 503);
    assert.equal((await refusal(server.pg({ ...bob, password: "bob's  " }))).code, "57P03");
    await logged(server, / E .*token endpoint is unusable: status 401, invalid_client/);
    provider.disturbance = (_, reply) => (reply.writeHead(500).end(), true);
    assert.equal((await server.sql("select 1", { ...bob, password: "bob's   " })).status, 503);
    // As Keycloak answers.
    provider.disturbance = ({ url }, reply) => {
      if (url !== "/token") return false;
      reply.writeHead(401, { "content-type": "application/json" }).end('{"error":"invalid_grant"}');
      return true;
    };
    assert.equal((await server.sql("select 1", { ...bob, password: "bob's    " })).status, 401);
    provider.disturbance = undefined;
  });

  await test.step("passwords are in no log, list or audit", async () => {
    const { dataset } = await server.sql("select query from query_activity()");
    assert.ok(!JSON.stringify(dataset).includes("bob's"));
    await server.stop();
    for (const { password } of [bob, { password: "other's" }] satisfies Pick<Credentials, "password">[]) {
      assert.ok(!server.output().includes(password), password);
    }
    assert.ok(!server.output().includes(basic(bob).slice(6)));
  });
});

Deno.test("without acl.oidc.ropc.flow.enabled no password reaches the provider", async () => {
  await using made = await stage({});
  const { provider, server } = made;
  const bob = { name: "bob", password: "bob's" };
  assert.equal((await server.sql("select 1", bob)).status, 401);
  assert.equal((await refusal(server.pg(bob))).code, "28P01");
  assert.equal((await refusal(server.pg({ name: "_sso", password: await provider.accessToken("bob") }))).code, "28P01");
  assert.equal(provider.requests.get("/token"), undefined);
  assert.equal(provider.requests.get("/me"), undefined);
});
