/** Which principals may connect. */
import assert from "node:assert/strict";
import { until } from "../programs.ts";
import { startServer } from "../server.ts";
import { ADMIN, basic, startProtected } from "./server.ts";

Deno.test("with access control, everything except the page, /ping and /settings requires credentials", async () => {
  await using server = await startProtected();
  const open = ["/", "/index.html", "/ping", "/settings"];
  for (const path of open) assert.ok([200, 204].includes((await server.request(path)).status), path);
  for (const path of ["/exec?query=select+1", "/exp?query=select+1", "/chk?j=t", "/warnings"]) {
    const refused = await server.request(path);
    assert.equal(refused.status, 401, path);
    assert.equal(refused.headers.get("www-authenticate"), "Bearer", path);
    assert.equal((await server.request(path, basic(ADMIN))).status, 200, path);
  }
  for (const path of ["/nothing", "/exec/", "/.env"]) {
    assert.equal((await server.request(path)).status, 401, path);
    assert.equal((await server.request(path, basic(ADMIN))).status, 404, path);
  }
  assert.equal((await server.request("/write", undefined, { method: "POST", body: "t x=1" })).status, 401);
  assert.equal((await server.lines("t x=1", ADMIN)).status, 204);
  assert.equal(JSON.parse((await server.request("/settings")).text).config["acl.enabled"], true);
  const wrong = [{ ...ADMIN, password: "quest" }, { ...ADMIN, password: "" }, { name: "nobody", password: "x" }];
  for (const credentials of wrong) assert.equal((await server.sql("select 1", credentials)).status, 401);
  const token = await server.request("/exec?query=select+1", "Bearer qt1wrong");
  assert.equal(token.status, 401);
  assert.equal(token.headers.get("www-authenticate"), 'Bearer error="invalid_token"');
});

Deno.test("with access control, PG accepts the administrator by SCRAM, and no users of the configuration", async () => {
  await using server = await startProtected({
    SVC_PG_PASSWORD: "pg's",
    SVC_PG_USER: "pg",
    SVC_HTTP_USER: "web",
    SVC_HTTP_PASSWORD: "w",
  });
  const client = await server.pg(ADMIN);
  assert.deepEqual((await client.query("select current_user()")).rows, [{ "current_user()": "admin" }]);
  await client.end();
  for (const wrong of [{ name: "pg", password: "pg's" }, { ...ADMIN, password: "wrong" }]) {
    await assert.rejects(server.pg(wrong), /password authentication failed/);
  }
  assert.match(server.output(), / A .*http\.user, http\.password, pg\.user, pg\.password have no effect/);
  assert.match(server.output(), / A .*line protocol over TCP is closed/);
  assert.doesNotMatch(server.output(), /root's password|pg's/);
});

Deno.test("line protocol over TCP is open to all with line.tcp.acl.enabled=false", async () => {
  await using server = await startProtected({ SVC_LINE_TCP_ACL_ENABLED: "false" });
  const conn = await Deno.connect({ hostname: "127.0.0.1", port: server.linePort });
  await conn.write(new TextEncoder().encode("tcp x=1\n"));
  // Asking for a table that is not there yet is an error without a dataset.
  await until("the row is visible", async () => String((await server.sql("select x from tcp")).dataset) === "1");
  conn.close();
});

Deno.test("line protocol over TCP is closed with access control", async () => {
  await using server = await startProtected();
  await assert.rejects(Deno.connect({ hostname: "127.0.0.1", port: server.linePort }), Deno.errors.ConnectionRefused);
});

Deno.test("a password that was right is verified quickly the next time, and a session's cookie stays valid", async () => {
  await using server = await startProtected({ SVC_ACL_PASSWORD_HASH_ITERATION_COUNT: "3000000" });
  // The administrator has signed in to start the server.
  const user = { name: "fresh", password: "never used" };
  await server.set(`create user ${user.name} with password '${user.password}'`, `grant http to ${user.name}`);
  const timeOf = async (count: number) => {
    const start = performance.now();
    for (let k = 0; k < count; k++) assert.equal((await server.sql("select 1", user)).status, 200);
    return performance.now() - start;
  };
  const first = await timeOf(1);
  assert.ok(await timeOf(20) < 10 * first, "20 derivations would take twice as long");
  const reply = await server.request("/exec?query=select+1&session=true", basic(user));
  const cookie = reply.headers.get("set-cookie")!.split(";")[0];
  assert.equal((await server.request("/exec?query=select+1", undefined, { headers: { cookie } })).status, 200);
});

for (const key of ["acl.admin.user", "acl.admin.password"]) {
  Deno.test(`without ${key} the start is refused`, async () => {
    const env = { SVC_ACL_ENABLED: "true", [`SVC_${key.toUpperCase().replaceAll(".", "_")}`]: "" };
    await assert.rejects(
      startServer({ env }),
      new RegExp(`${key.replaceAll(".", "\\.")}: found an empty value, expected a name`),
    );
  });
}

Deno.test("with acl.basic.auth.realm.enabled browsers ask for the password themselves", async () => {
  await using server = await startProtected({ SVC_ACL_BASIC_AUTH_REALM_ENABLED: "true" });
  const challenges = async (authorization?: string) =>
    (await server.request("/exec?query=select+1", authorization)).headers.get("www-authenticate");
  const basicChallenge = 'Basic realm="sundial", charset="UTF-8"';
  assert.equal(await challenges(), `Bearer, ${basicChallenge}`);
  assert.equal(await challenges(basic({ ...ADMIN, password: "wrong" })), `Bearer, ${basicChallenge}`);
  assert.equal(await challenges("Bearer qt1wrong"), `Bearer error="invalid_token", ${basicChallenge}`);
});

Deno.test("while too many passwords are checked, others are refused at once and told to come again", async () => {
  await using server = await startProtected({
    SVC_ACL_PASSWORD_HASH_ITERATION_COUNT: "600000",
    SVC_PG_AUTH_METHOD: "password",
  });
  await server.set("create user alice with password a", "grant HTTP, PGWIRE to alice");
  const flood = new AbortController();
  const attempts = Array.from({ length: 100 }, async (_, k) => {
    const reply = await server.request("/exec?query=select+1", basic({ name: "alice", password: `wrong ${k}` }), {
      signal: flood.signal,
    });
    if (reply.status === 429) return reply;
    throw new Error(`${reply.status}`);
  });
  const refused = await Promise.any(attempts);
  const tooMany = /^too many passwords are being checked: try again later/;
  assert.match(refused.text, tooMany);
  assert.match(refused.headers.get("retry-after")!, /^\d+$/);
  const [changed, verified] = await Promise.all([
    server.sql("create user bob with password b"),
    server.sql("select 1"),
    assert.rejects(server.pg({ name: "alice", password: "a" }), { code: "53300", message: tooMany }),
  ]);
  assert.match(changed.error!, tooMany);
  assert.deepEqual(verified.dataset, [[1]], "a password that was verified before is not derived again");
  flood.abort();
  await Promise.allSettled(attempts);
});
