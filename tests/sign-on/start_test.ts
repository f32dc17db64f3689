/** What stops the start of a server with sign-on, and what browsers learn of the provider. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ConfigError } from "../../src/errors.ts";
import { configOf } from "../../src/command/testing.ts";
import { authoritiesFault, IdentityProvider } from "../../src/auth/oidc/mod.ts";
import { oidcSettings } from "../../src/auth/oidc/settings.ts";
import { authority as certificateAuthority } from "../certificates.ts";
import { startProvider } from "./provider.ts";
import { DISCOVERY, logged, startSignOn } from "./server.ts";

const VALID = {
  "acl.enabled": "true",
  "acl.oidc.enabled": "true",
  "acl.oidc.client.id": "sundial",
  "acl.oidc.host": "id.example.org",
};

const refused: { key: string; set: Record<string, string>; why: RegExp }[] = [
  { key: "acl.oidc.enabled", set: { "acl.enabled": "false" }, why: /acl\.enabled=true/ },
  { key: "acl.oidc.client.id", set: { "acl.oidc.client.id": "" }, why: /found an empty value/ },
  { key: "acl.oidc.host", set: { "acl.oidc.host": "" }, why: /found an empty value.*acl\.oidc\.configuration\.url/ },
  { key: "acl.oidc.host", set: { "acl.oidc.host": "a b" }, why: /expected a host/ },
  { key: "acl.oidc.host", set: { "acl.oidc.host": "id.example.org/x" }, why: /expected a host/ },
  {
    key: "acl.oidc.scope",
    set: { "acl.oidc.scope": "profile openidx" },
    why: /found "profile openidx", expected scopes that include openid/,
  },
  { key: "acl.oidc.http.timeout", set: { "acl.oidc.http.timeout": "0" }, why: /found 0/ },
  { key: "acl.oidc.tls.enabled", set: { "acl.oidc.tls.enabled": "false" }, why: /https/ },
  {
    key: "acl.oidc.tls.validation.enabled",
    set: { "acl.oidc.tls.validation.enabled": "false" },
    why: /keystore\.path/,
  },
  { key: "acl.oidc.token.endpoint", set: { "acl.oidc.token.endpoint": "http://id.example.org/t" }, why: /https/ },
  { key: "acl.oidc.userinfo.endpoint", set: { "acl.oidc.userinfo.endpoint": "" }, why: /https/ },
  { key: "acl.oidc.public.keys.endpoint", set: { "acl.oidc.public.keys.endpoint": "ftp://x/y" }, why: /https/ },
  { key: "acl.oidc.redirect.uri", set: { "acl.oidc.redirect.uri": "http://db.example.org/" }, why: /https/ },
  {
    key: "acl.oidc.configuration.url",
    set: { "acl.oidc.configuration.url": `http://id.example.org${DISCOVERY}` },
    why: /https/,
  },
  {
    key: "acl.oidc.configuration.url",
    set: { "acl.oidc.configuration.url": `http://127.evil.example.org${DISCOVERY}` },
    why: /https/,
  },
  {
    key: "acl.oidc.configuration.url",
    set: { "acl.oidc.configuration.url": "https://id.example.org/" },
    why: /ends in/,
  },
];
for (const { key, set, why } of refused) {
  Deno.test(`the start is refused with ${key}: ${Object.entries(set).map((pair) => pair.join("=")).join()}`, () => {
    assert.throws(() => configOf({ ...VALID, ...set }), (error) => {
      assert.ok(error instanceof ConfigError);
      assert.equal(error.key, key);
      assert.match(error.message, why);
      return true;
    });
  });
}

Deno.test("settings of a provider elsewhere, of one on this machine, and of none are accepted", () => {
  configOf(VALID);
  configOf({ ...VALID, "acl.oidc.host": "localhost", "acl.oidc.tls.enabled": "false" });
  configOf({ ...VALID, "acl.oidc.host": "", "acl.oidc.configuration.url": `http://[::1]:8080${DISCOVERY}` });
  configOf({ "acl.oidc.scope": "profile", "acl.oidc.token.endpoint": "" });
});

Deno.test("a file of authorities must hold certificates", async () => {
  const path = await Deno.makeTempFile();
  await Deno.writeTextFile(path, "no certificate");
  assert.match(
    authoritiesFault({ authorities: path })!.message,
    /keystore\.path: no certificate in .*: expected/,
  );
  assert.match(authoritiesFault({ authorities: `${path}.none` })!.message, /keystore\.path: .*No such file/);
  assert.equal(authoritiesFault({ authorities: "" }), undefined);
  await Deno.remove(path);
});

Deno.test("/settings tells browsers where to sign in, and the page may ask the provider", async () => {
  await using provider = await startProvider();
  await using server = await startSignOn(provider);
  const { config } = JSON.parse((await server.request("/settings")).text);
  const about = Object.fromEntries(Object.entries(config).filter(([key]) => key.startsWith("acl.oidc.")));
  assert.deepEqual(about, {
    "acl.oidc.enabled": true,
    "acl.oidc.client.id": "sundial",
    "acl.oidc.redirect.uri": null,
    "acl.oidc.scope": "openid profile groups",
    "acl.oidc.pkce.required": true,
    "acl.oidc.state.required": true,
    "acl.oidc.clock.tolerance": 30,
    "acl.oidc.groups.encoded.in.token": false,
    "acl.oidc.issuer": provider.issuer,
    "acl.oidc.authorization.endpoint": `${provider.issuer}/auth`,
    "acl.oidc.token.endpoint": `${provider.issuer}/token`,
    "acl.oidc.public.keys.endpoint": `${provider.issuer}/jwks`,
    "acl.oidc.end.session.endpoint": `${provider.issuer}/session/end`,
  });
  const page = await server.request("/");
  assert.match(page.headers.get("content-security-policy")!, new RegExp(`connect-src 'self' ${provider.issuer};`));
});

Deno.test("a provider that is down does not stop the start; it is asked again later", async () => {
  await using provider = await startProvider();
  await provider.stop();
  await using server = await startSignOn(provider);
  const told = async () => JSON.parse((await server.request("/settings")).text).config["acl.oidc.token.endpoint"];
  assert.equal(await told(), null);
  await logged(server, / A .*the identity provider is not available/);
  await provider.start();
  for (let tries = 0; tries < 200 && await told() === null; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  assert.equal(await told(), `${provider.issuer}/token`);
});

const documents = [
  {
    title: "an endpoint without TLS",
    change: { token_endpoint: "http://id.example.org/token" },
    why: /token_endpoint/,
  },
  { title: "another issuer", change: { issuer: "http://127.0.0.1:1" }, why: /issuer/ },
  { title: "no user-info endpoint", change: { userinfo_endpoint: undefined }, why: /userinfo_endpoint: found nothing/ },
];
for (const { title, change, why } of documents) {
  Deno.test(`a discovery document with ${title} stops the start`, async () => {
    await using provider = await startProvider();
    const document = await (await fetch(provider.issuer + DISCOVERY)).json();
    provider.disturbance = ({ url }, reply) => {
      if (url !== DISCOVERY) return false;
      reply.setHeader("content-type", "application/json").end(JSON.stringify({ ...document, ...change }));
      return true;
    };
    const url = provider.issuer + DISCOVERY;
    const config = configOf({ ...VALID, "acl.oidc.configuration.url": url });
    const client = new IdentityProvider(config.of(oidcSettings));
    await assert.rejects(client.open(), (error) => {
      assert.ok(error instanceof ConfigError);
      assert.equal(error.key, "acl.oidc.configuration.url");
      assert.match(error.message, why);
      return true;
    });
    client.close();
  });
}

Deno.test("TLS to the provider: its certificate is checked, by the authorities of a file as well", async () => {
  using authority = certificateAuthority("sign-on by TLS");
  if (authority === undefined) return;
  const [cert, key] = ["cert.pem", "key.pem"].map((name) => join(authority.directory, name));
  authority.issue("localhost", cert, key);
  await using server = Deno.serve(
    {
      hostname: "127.0.0.1",
      port: 0,
      cert: Deno.readTextFileSync(cert),
      key: Deno.readTextFileSync(key),
      onListen() {},
    },
    ({ url }) => {
      const { origin: issuer, pathname } = new URL(url);
      if (pathname === "/me") return Response.json({ sub: "bob", groups: ["readers"] });
      const endpoints = { authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token` };
      return Response.json({ issuer, ...endpoints, userinfo_endpoint: `${issuer}/me`, jwks_uri: `${issuer}/jwks` });
    },
  );
  const clientOf = (authorities: string) =>
    new IdentityProvider(
      configOf({
        ...VALID,
        "acl.oidc.configuration.url": `https://localhost:${server.addr.port}${DISCOVERY}`,
        "acl.oidc.tls.keystore.path": authorities,
      }).of(oidcSettings),
    );
  const trusting = clientOf(authority.path), strange = clientOf("");
  await trusting.open();
  assert.deepEqual((await trusting.userOf("a token"))?.groups, ["readers"]);
  await strange.open();
  assert.equal(strange.endpoints, undefined);
  await assert.rejects(strange.userOf("a token"), { name: "ProviderUnavailable", message: /certificate/i });
  trusting.close();
  strange.close();
});
