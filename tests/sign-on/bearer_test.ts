/** Requests with a token of the identity provider. */
import assert from "node:assert/strict";
import type { ProtectedServer } from "../access/server.ts";
import { startProvider, type TestProvider } from "./provider.ts";
import { bearer, logged, startSignOn } from "./server.ts";

const GROUPS = [
  "create table trades (ts timestamp, price double) timestamp(ts) partition by day",
  "insert into trades values (now(), 1.5)",
  "create group readers with external alias 'CN=readers'",
  "create group also_readers with external alias 'CN=readers'",
  "create group writers with external alias 'CN=writers'",
  "grant HTTP to readers",
  "grant SELECT on trades to also_readers",
  "grant HTTP, PGWIRE to writers",
  "grant INSERT on trades to writers",
];

const query = (text: string) => `/exec?${new URLSearchParams({ query: text })}`;

async function asks(server: ProtectedServer, token: string, text = "select count() from trades") {
  const { status, headers, text: body } = await server.request(query(text), bearer(token));
  return { status, challenge: headers.get("www-authenticate"), body, ...body.startsWith("{") ? JSON.parse(body) : {} };
}

interface Stage extends AsyncDisposable {
  provider: TestProvider;
  server: ProtectedServer;
}

async function stage(env: Record<string, string> = {}): Promise<Stage> {
  const provider = await startProvider({
    users: {
      "8c1f": { name: "Alice Smith", groups: ["CN=readers", "CN=nobody"] },
      bob: { name: "Bob", groups: ["CN=writers", "CN=readers"] },
      carol: { name: "Carol" },
      dave: { name: "Dave", groups: ["CN=other"] },
      admin: { name: "Not the admin", groups: ["CN=readers"] },
    },
  });
  const server = await startSignOn(provider, env);
  await server.set(...GROUPS);
  return {
    provider,
    server,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
    },
  };
}

Deno.test("a token of the provider signs in over HTTP, with the permissions of the mapped groups", async (test) => {
  await using made = await stage({ SVC_ACL_OIDC_HTTP_TIMEOUT: "1s" });
  const { provider, server } = made;
  const alice = await provider.accessToken("8c1f"), bob = await provider.accessToken("bob");

  await test.step("the union of all groups with the alias", async () => {
    assert.deepEqual((await asks(server, alice)).dataset, [[1]]);
    assert.deepEqual((await asks(server, alice, "select current_user()")).dataset, [["8c1f"]]);
    assert.equal((await server.request(query("select 1"), `bearer  ${alice}`)).status, 200, "schemes have no case");
    const refused = await asks(server, alice, "insert into trades values (now(), 2)");
    assert.equal(refused.status, 403);
    assert.match(refused.error, /Access denied for 8c1f \[INSERT on trades\]/);
    assert.equal((await asks(server, bob, "insert into trades values (now(), 2)")).status, 200);
    assert.deepEqual((await asks(server, bob)).dataset, [[2]]);
  });

  await test.step("SHOW PERMISSIONS tells the user's own", async () => {
    const { dataset } = await asks(server, alice, "show permissions");
    assert.deepEqual(dataset.toSorted(), [["HTTP", null, null, false, "G"], ["SELECT", "trades", null, false, "G"]]);
  });

  await test.step("lines by /write", async () => {
    const lines = (token: string) =>
      server.request("/write", bearer(token), { method: "POST", body: "trades price=3" });
    assert.equal((await lines(bob)).status, 204);
    const refused = await lines(alice);
    assert.equal(refused.status, 403);
    assert.match(refused.text, /INSERT on trades/);
  });

  await test.step("the cache answers", async () => {
    const before = provider.requests.get("/me");
    for (let time = 0; time < 10; time++) await asks(server, alice);
    assert.equal(provider.requests.get("/me"), before);
  });

  await test.step("one question for many simultaneous requests", async () => {
    const token = await provider.accessToken("bob"), before = provider.requests.get("/me")!;
    const replies = await Promise.all(Array.from({ length: 20 }, () => asks(server, token)));
    assert.deepEqual([...new Set(replies.map(({ status }) => status))], [200]);
    assert.equal(provider.requests.get("/me"), before + 1);
  });

  await test.step("a false token", async () => {
    const before = provider.requests.get("/me")!;
    for (let time = 0; time < 3; time++) {
      const refused = await asks(server, "false");
      assert.equal(refused.status, 401);
      assert.equal(refused.challenge, 'Bearer error="invalid_token"');
    }
    assert.equal(provider.requests.get("/me"), before + 1);
    assert.equal((await asks(server, "qt1" + "x".repeat(43))).status, 401);
    assert.equal(provider.requests.get("/me"), before + 1, "REST tokens are not for the provider");
  });

  await test.step("without groups, or with groups of which none is mapped, the answer says why", async () => {
    const without = await asks(server, await provider.accessToken("carol"));
    assert.equal(without.status, 403);
    assert.equal(
      without.body.trim(),
      'Access denied for carol [HTTP]: signed in, but the identity provider returned no groups for this user (claim "groups")',
    );
    const unmapped = await asks(server, await provider.accessToken("dave"));
    assert.equal(unmapped.status, 403);
    assert.match(
      unmapped.body,
      /Access denied for dave \[HTTP\]: signed in, but no group here has one of the user's groups .* alias/,
    );
  });

  await test.step("the name of the administrator gives nothing", async () => {
    const token = await provider.accessToken("admin");
    assert.equal((await asks(server, token, "create table x (y int)")).status, 403);
    assert.equal((await asks(server, token, "show users")).status, 403);
    assert.deepEqual((await asks(server, token, "show permissions")).dataset.length, 2);
  });

  await test.step("a new alias counts at once", async () => {
    const dave = await provider.accessToken("dave");
    assert.equal((await asks(server, dave)).status, 403);
    await server.set("alter group readers with external alias 'CN=other'");
    assert.equal((await asks(server, dave, "select 1")).status, 200);
    assert.equal((await asks(server, alice, "select 1")).status, 403);
    await server.set("alter group readers with external alias 'CN=readers'");
  });

  await test.step("the audit tells subject and name", async () => {
    await server.set("create group admins with external alias 'CN=admins'", "grant DATABASE ADMIN to admins");
    provider.users.set("9d2e", { name: "Erin Roe", groups: ["CN=admins"] });
    const erin = await provider.accessToken("9d2e");
    assert.equal((await asks(server, erin, "create user made with password 'secret of made'")).status, 200);
    await logged(server, / A .*CREATE USER 'made'.*\[by=9d2e \(Erin Roe\), from=127\.0\.0\.1:\d+, wire=http\]/);
    assert.doesNotMatch(server.output(), /secret of made/);
    assert.equal((await asks(server, erin, "create table of_erin (x int)")).status, 200);
    assert.equal((await asks(server, erin, "select wrong")).status, 400);
    await logged(server, /err \[sql=`select wrong`, principal=9d2e \(Erin Roe\)/);
  });

  await test.step("users that are known go on while the provider is slow, and then down", async () => {
    const other = await provider.accessToken("bob");
    provider.disturbance = () => true;
    const slow = asks(server, other);
    assert.equal((await asks(server, bob)).status, 200);
    assert.equal((await slow).status, 503);
    provider.disturbance = undefined;
    await provider.stop();
    assert.equal((await asks(server, bob)).status, 200);
    assert.equal((await asks(server, other)).status, 503);
    await provider.start();
    assert.equal((await asks(server, other)).status, 200);
  });

  await test.step("users of the database still sign in", async () => {
    await server.set("create user local with password 'p'", "grant HTTP to local");
    assert.equal((await server.sql("select 1", { name: "local", password: "p" })).status, 200);
    assert.equal((await server.sql("select 1", { name: "bob", password: "p" })).status, 401);
  });
});

Deno.test("changes at the provider count when the time of the cache is over", async (test) => {
  await using made = await stage({
    SVC_ACL_OIDC_CACHE_TTL: "200",
    SVC_ACL_OIDC_HTTP_TIMEOUT: "1s",
    SVC_METRICS_ENABLED: "true",
  });
  const { provider, server } = made;
  const alice = await provider.accessToken("8c1f");
  const pause = () => new Promise((resolve) => setTimeout(resolve, 250));
  const status = async (token = alice) => (await asks(server, token)).status;

  await test.step("groups", async () => {
    assert.equal(await status(), 200);
    provider.users.get("8c1f")!.groups = [];
    await pause();
    assert.equal(await status(), 403);
    // Some providers send a text for a single group.
    provider.users.get("8c1f")!.groups = "CN=readers";
    await pause();
    assert.equal(await status(), 200);
  });

  await test.step("a revoked user", async () => {
    provider.users.get("8c1f")!.isRevoked = true;
    await pause();
    const refused = await asks(server, alice);
    await asks(server, alice);
    assert.equal(refused.status, 401);
    assert.equal(refused.challenge, 'Bearer error="invalid_token"');
    provider.users.get("8c1f")!.isRevoked = false;
  });

  await test.step("a session of a browser, which the provider is asked about again", async () => {
    const reply = await server.request("/exec?query=select+1&session=true", bearer(await provider.accessToken("8c1f")));
    const cookie = reply.headers.get("set-cookie")!.split(";")[0];
    const bySession = async () =>
      (await server.request("/exec?query=select+1", undefined, { headers: { cookie } })).status;
    assert.equal(await bySession(), 200);
    await pause();
    assert.equal(await bySession(), 200);
    await provider.stop();
    await pause();
    assert.equal(await bySession(), 503);
    await provider.start();
    provider.users.get("8c1f")!.isRevoked = true;
    assert.equal(await bySession(), 401);
    provider.users.get("8c1f")!.isRevoked = false;
  });

  await test.step("a provider that is down: 503 for those whose time is over; afterwards they go on", async () => {
    const bob = await provider.accessToken("bob");
    assert.equal(await status(bob), 200);
    await provider.stop();
    await pause();
    const { status: down, body } = await asks(server, bob);
    assert.equal(down, 503);
    assert.match(body, /the identity provider is not available: try again later/);
    assert.equal((await server.sql("select 1")).status, 200, "users of the database are not affected");
    await provider.start();
    assert.equal(await status(bob), 200);
  });

  const disturbances: { title: string; disturb: NonNullable<TestProvider["disturbance"]> }[] = [
    { title: "with status 500", disturb: (_, reply) => (reply.writeHead(500).end("x"), true) },
    {
      title: "with a redirect",
      disturb: ({ url }, reply) => (reply.writeHead(302, { location: url + "/elsewhere" }).end(), true),
    },
    {
      title: "with a megabyte",
      disturb: (_, reply) => {
        reply.writeHead(200, { "content-type": "application/json" });
        reply.end(JSON.stringify({ sub: "bob", groups: ["CN=readers"], more: "x".repeat(1 << 20) }));
        return true;
      },
    },
    {
      title: "with a page",
      disturb: (_, reply) => (reply.writeHead(200, { "content-type": "text/html" }).end("<html>"), true),
    },
    {
      title: "with JSON that breaks off",
      disturb: (_, reply) => (reply.writeHead(200, { "content-type": "application/json" }).end('{"sub":'), true),
    },
    {
      title: "without a subject",
      disturb: (_, reply) => (reply.writeHead(200, { "content-type": "application/json" }).end("{}"), true),
    },
    {
      title: "with a subject of two lines",
      disturb: (_, reply) => {
        reply.writeHead(200, { "content-type": "application/json" }).end('{"sub":"a\\nb","groups":["CN=readers"]}');
        return true;
      },
    },
    { title: "with a connection that breaks", disturb: ({ socket }) => (socket.destroy(), true) },
    { title: "after the time limit", disturb: () => true },
  ];
  for (const { title, disturb } of disturbances) {
    await test.step(`a provider that answers ${title}: 503, and right again afterwards`, async () => {
      const token = await provider.accessToken("bob");
      provider.disturbance = disturb;
      assert.equal(await status(token), 503);
      provider.disturbance = undefined;
      assert.equal(await status(token), 200);
    });
  }

  await test.step("metrics count outcomes, hits, and requests to the provider", async () => {
    const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
    const value = (series: string) =>
      Number(text.split("\n").find((row) => row.startsWith(`service_${series} `))!.split(" ")[1]);
    const moved = [
      ...["accepted", "refused", "unavailable"].map((outcome) => `sign_ons_total{outcome="${outcome}"}`),
      ...["answered", "failed"].map((outcome) => `provider_requests_total{outcome="${outcome}"}`),
      "sign_on_cache_hits_total",
      "sign_ons_cached",
      "provider_request_seconds_count",
    ];
    for (const series of moved) assert.ok(value(series) > 0, series);
    assert.ok(value("sign_on_cache_age_seconds") < 60);
  });

  await test.step("neither tokens nor answers of the provider are in the log", async () => {
    await logged(server, /signed in by the identity provider: 8c1f \(Alice Smith\)/);
    await logged(server, / E .*the identity provider did not answer/);
    await server.stop();
    const log = server.output();
    assert.ok(!log.includes(alice));
    assert.doesNotMatch(log, /Bearer [A-Za-z0-9_-]{20}/);
  });
});
