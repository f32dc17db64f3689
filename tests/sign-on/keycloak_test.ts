/** Sign-on by Keycloak, an implementation of OpenID Connect that shares nothing with the one of the other tests. */
import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { BROWSER_ARGS, browserName, browserPath } from "../browser/browser.ts";
import { run, watched } from "../browser/visit.ts";
import { CLIENTS_ENV, CLIENTS_SETUP, signInByClients } from "./clients.ts";
import { startKeycloak } from "./keycloak.ts";
import { bearer, startSignOn } from "./server.ts";

const WHO = `/exec?${new URLSearchParams({ query: "select current_user()", nm: "true" })}`;
const BOB = { name: "bob", password: "bob's", groups: ["readers"] };
const CAROL = { name: "carol", password: "carol's", groups: [] };

Deno.test("Keycloak", { sanitizeOps: false, sanitizeResources: false }, async (test) => {
  await using keycloak = await startKeycloak([BOB, CAROL]);
  if (keycloak === undefined) return;
  await using server = await startSignOn(keycloak, {
    ...CLIENTS_ENV,
    SVC_ACL_OIDC_SCOPE: "openid profile",
    SVC_ACL_OIDC_SUB_CLAIM: "preferred_username",
    SVC_ACL_OIDC_CACHE_TTL: "200",
  });
  await server.set(...CLIENTS_SETUP);
  const token = await keycloak.accessToken(BOB.name, BOB.password);
  const ask = (token: string) => server.request(WHO, bearer(token));
  const pause = () => new Promise((resolve) => setTimeout(resolve, 300));

  await signInByClients(server, { token, ...BOB }, test);
  await test.step("a user without groups is signed in, without permission", async () => {
    const { status, text } = await ask(await keycloak.accessToken(CAROL.name, CAROL.password));
    assert.equal(status, 403);
    assert.match(text, /Access denied for carol \[HTTP\]: signed in, but/);
  });
  await test.step("the ID token's groups, with its signature, issuer and audience checked by Keycloak's keys", async () => {
    await using local = await startSignOn(keycloak, {
      SVC_ACL_OIDC_SCOPE: "openid profile",
      SVC_ACL_OIDC_SUB_CLAIM: "preferred_username",
      SVC_ACL_OIDC_GROUPS_ENCODED_IN_TOKEN: "true",
    });
    await local.set(...CLIENTS_SETUP);
    const idToken = await keycloak.idToken(BOB.name, BOB.password);
    const status = async (token: string) => (await local.request(WHO, bearer(token))).status;
    assert.equal(await status(idToken), 200);
    assert.equal(await status(`${idToken.slice(0, -8)}AAAAAAAA`), 401, "a forged signature");
    assert.equal(await status(token), 401, "an access token, whose audience is another");
  });
  await test.step({
    name: "the console signs in and out by the code flow",
    ignore: browserName === undefined,
    async fn() {
      const browser = await chromium.launch({ executablePath: browserPath, args: BROWSER_ARGS });
      try {
        const context = await browser.newContext({ viewport: { width: 1100, height: 720 } });
        const page = watched(await context.newPage());
        await page.goto(server.http);
        await page.click("button:text-is('Single sign-on')");
        await page.fill("#username", BOB.name);
        await page.fill("#password", BOB.password);
        await page.click("#kc-login");
        await page.waitForSelector(".cm-content");
        await run(page, "select current_user()");
        assert.equal(await page.innerText(".grid .row [role=gridcell] >> nth=-1"), BOB.name);
        await page.click(`nav button:has-text('${BOB.name}')`);
        await page.click(".menu button:text-is('Sign out')");
        await page.click("#kc-logout");
        await page.waitForSelector("button:text-is('Single sign-on')");
        await page.click("button:text-is('Single sign-on')");
        await page.waitForSelector("#username");
      } finally {
        await browser.close();
      }
    },
  });
  await test.step("a removed group, and a disabled user", async () => {
    assert.equal((await ask(token)).status, 200);
    await keycloak.leave(BOB.name, "readers");
    await pause();
    assert.equal((await ask(token)).status, 403);
    await keycloak.alter(BOB.name, { enabled: false });
    await pause();
    const { status, headers } = await ask(token);
    assert.deepEqual([status, headers.get("www-authenticate")], [401, 'Bearer error="invalid_token"']);
  });
});
