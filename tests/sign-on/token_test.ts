/** Users and groups from signed tokens (acl.oidc.groups.encoded.in.token), which the server checks itself. */
import assert from "node:assert/strict";
import * as jose from "jose";
import { startProvider } from "./provider.ts";
import { bearer, logged, startSignOn } from "./server.ts";

const base64 = (data: unknown) =>
  new TextEncoder().encode(JSON.stringify(data)).toBase64({ alphabet: "base64url", omitPadding: true });

Deno.test("signed tokens are checked by the server", async (test) => {
  await using provider = await startProvider({
    users: { bob: { name: "Bob", groups: ["CN=readers"], password: "bob's" } },
  });
  await using server = await startSignOn(provider, {
    SVC_ACL_OIDC_GROUPS_ENCODED_IN_TOKEN: "true",
    SVC_ACL_OIDC_CLOCK_TOLERANCE: "20s",
    SVC_ACL_OIDC_HTTP_TIMEOUT: "1s",
    SVC_ACL_OIDC_ROPC_FLOW_ENABLED: "true",
  });
  await server.set("create group readers with external alias 'CN=readers'", "grant HTTP to readers");
  const ask = (token: string) => server.request("/exec?query=select+current_user()", bearer(token));
  const status = async (token: string) => (await ask(token)).status;
  const now = () => Math.floor(Date.now() / 1000);

  await test.step("a right one is accepted without the user-info endpoint", async () => {
    const reply = await ask(await provider.idToken("bob"));
    assert.equal(reply.status, 200);
    assert.match(reply.text, /\[\["bob"\]\]/);
    assert.equal(provider.requests.get("/me"), undefined);
  });

  await test.step("the groups are those of the token", async () => {
    const reply = await ask(await provider.idToken("bob", { groups: [] }));
    assert.equal(reply.status, 403);
    assert.match(reply.text, /returned no groups/);
  });

  const accepted: [title: string, claims: () => jose.JWTPayload][] = [
    ["of a clock that is a little ahead", () => ({ iat: now() + 15, nbf: now() + 15 })],
    ["of a clock that is a little behind", () => ({ exp: now() - 10 })],
    ["for several audiences", () => ({ aud: ["other", "sundial"] })],
  ];
  for (const [title, claims] of accepted) {
    await test.step(`a token ${title} is accepted`, async () => {
      assert.equal(await status(await provider.idToken("bob", claims())), 200);
    });
  }

  const refused: [title: string, claims: () => jose.JWTPayload, log: RegExp][] = [
    ["of another audience", () => ({ aud: "other" }), /token refused: unexpected "aud"/],
    ["of another issuer", () => ({ iss: "http://127.0.0.1:1" }), /token refused: unexpected "iss"/],
    ["that has expired", () => ({ exp: now() - 60 }), /token refused: "exp" claim timestamp check/],
    ["without an expiry", () => ({ exp: undefined }), /token refused: missing required "exp"/],
    ["of a clock that is far ahead", () => ({ nbf: now() + 60 }), /token refused: "nbf"/],
  ];
  for (const [title, claims, log] of refused) {
    await test.step(`a token ${title} is refused, and the log says why`, async () => {
      const reply = await ask(await provider.idToken("bob", claims()));
      assert.equal(reply.status, 401);
      assert.equal(reply.headers.get("www-authenticate"), 'Bearer error="invalid_token"');
      await logged(server, log);
    });
  }

  await test.step("tokens without a signature, or signed by a stranger or by the client itself, are refused", async () => {
    const claims = { iss: provider.issuer, aud: "sundial", sub: "bob", exp: now() + 600, groups: ["CN=readers"] };
    const right = await provider.idToken("bob");
    const [head, , signature] = right.split(".");
    const { privateKey } = await jose.generateKeyPair("RS256");
    const forged = [
      `${base64({ alg: "none" })}.${base64(claims)}.`,
      `${head}.${base64(claims)}.${signature}`,
      await new jose.SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "key-1" }).sign(privateKey),
      // The public key as a shared secret.
      await new jose.SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: "key-1" })
        .sign(new TextEncoder().encode(await (await fetch(`${provider.issuer}/jwks`)).text())),
      await provider.accessToken("bob"),
      "x",
    ];
    for (const token of forged) assert.equal(await status(token), 401, token);
  });

  await test.step("the password flow takes the ID token", async () => {
    assert.deepEqual((await server.sql("select current_user()", { name: "bob", password: "bob's" })).dataset, [[
      "bob",
    ]]);
    assert.equal(provider.requests.get("/me"), undefined);
  });

  await test.step("new keys of the provider", async () => {
    const old = await provider.idToken("bob", { jti: "old" });
    await provider.rotateKeys();
    // Keys are asked for at most once a second.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    assert.equal(await status(await provider.idToken("bob")), 200);
    assert.equal(await status(old), 401);
  });

  await test.step("a provider that is down, when a key is not known", async () => {
    await provider.rotateKeys();
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const token = await provider.idToken("bob");
    for (const code of [500, 302, 404]) {
      provider.disturbance = (_, reply) => (reply.writeHead(code).end(), true);
      assert.equal(await status(token), 503, String(code));
    }
    provider.disturbance = undefined;
    await provider.stop();
    assert.equal(await status(token), 503);
    await provider.start();
    assert.equal(await status(token), 200);
  });

  await test.step("no token is in the log", async () => {
    await server.stop();
    assert.doesNotMatch(server.output(), /eyJ[A-Za-z0-9]/);
  });
});
