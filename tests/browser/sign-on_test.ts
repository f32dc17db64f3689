/** Sign-in with an identity provider in the console: a real browser, a real provider, a real server. */
import assert from "node:assert/strict";
import { type Browser, chromium, type Page, type Route } from "playwright-core";
import type { ProtectedServer } from "../access/server.ts";
import { startProvider, type TestProvider } from "../sign-on/provider.ts";
import { startSignOn } from "../sign-on/server.ts";
import { BROWSER_ARGS, browserPath } from "./browser.ts";
import { run, testSteps, type, watched } from "./visit.ts";

/** Seconds. Renewal is due after four fifths. */
const TOKEN_TTL = 6;

interface Setup {
  provider: TestProvider;
  server: ProtectedServer;
  browser: Browser;
}

async function withSetup(use: (setup: Setup) => Promise<void>): Promise<void> {
  // The provider must be there before the server's port is known.
  const redirectUris = ["https://console.example.org/"];
  await using provider = await startProvider({
    redirectUris,
    users: {
      alice: { name: "Alice Smith", groups: ["analysts"] },
      zoe: { name: "Zoe", groups: ["visitors"] },
    },
    tokenTtl: { access: TOKEN_TTL },
  });
  await using server = await startSignOn(provider, { SVC_ACL_OIDC_CACHE_TTL: "1000" });
  const browser = await chromium.launch({ executablePath: browserPath, args: BROWSER_ARGS });
  try {
    await server.set("create group readers with external alias 'analysts'", "grant http to readers");
    redirectUris.push(`${server.http}/`);
    await provider.rotateKeys();
    await use({ provider, server, browser });
  } finally {
    await browser.close();
  }
}

/** A browser that has not been at the provider yet. */
async function newPage({ browser, server }: Setup): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1100, height: 720 } });
  const page = watched(await context.newPage());
  await page.goto(server.http);
  return page;
}

const begin = (page: Page) => page.click("button:text-is('Single sign-on')");

/** On the provider's pages: log-in, and consent. */
async function logIn(page: Page, name: string): Promise<void> {
  await page.fill("[name=login]", name);
  await page.fill("[name=password]", "any");
  await page.click("[type=submit]");
  await page.click("[type=submit]:text-is('Continue')");
}

async function signIn(page: Page, name = "alice"): Promise<void> {
  await begin(page);
  await logIn(page, name);
}

const isReady = (page: Page) => page.waitForSelector(".cm-content");

async function error(page: Page): Promise<string> {
  await page.waitForSelector(".sign-in .error");
  return await page.innerText(".sign-in .error");
}

async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 600 && !holds(); tries++) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.ok(holds());
}

const tokenRequests = ({ provider }: Setup) => provider.requests.get("/token") ?? 0;

/** Puts `change`d answers in the place of the provider's, from its token endpoint. Gives the nonce of the sign-in. */
async function changeTokens(
  { provider }: Setup,
  page: Page,
  change: (answer: Record<string, unknown>, nonce: string) => Promise<Record<string, unknown>>,
): Promise<void> {
  let nonce = "";
  page.on("request", (request) => nonce = new URL(request.url()).searchParams.get("nonce") ?? nonce);
  await page.route(`${provider.issuer}/token`, async (route: Route) => {
    if (route.request().method() !== "POST") return await route.continue();
    const response = await route.fetch();
    await route.fulfill({ response, json: await change(await response.json(), nonce) });
  });
}

const now = () => Math.floor(Date.now() / 1000);

const refusedTokens = [
  { title: "of another issuer", claims: () => ({ iss: "https://id.example.org" }), says: /issuer/ },
  { title: "for another client", claims: () => ({ aud: "other" }), says: /audience/ },
  { title: "with another nonce", claims: () => ({ nonce: "another" }), says: /nonce/ },
  {
    title: "that has expired by more than the clocks may differ",
    claims: () => ({ iat: now() - 100, exp: now() - 40 }),
    says: /clock of this computer/,
  },
];

const steps: Record<string, (setup: Setup) => Promise<void>> = {
  "a user signs in, is known by name and groups, and a reload needs no second log-in": async (setup) => {
    const page = await newPage(setup);
    await signIn(page);
    await isReady(page);
    assert.equal(new URL(page.url()).search, "");
    assert.match(await run(page, "select current_user()"), /^1 row/);
    assert.equal(await page.innerText(".grid [role=gridcell]"), "alice");
    const kept = await page.evaluate("JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])");
    assert.doesNotMatch(String(kept), /eyJ|Bearer|verifier|token/);
    await page.click("text=Download ▾");
    const [file] = await Promise.all([page.waitForEvent("download"), page.click("text=All rows as CSV")]);
    assert.match(await Deno.readTextFile(await file.path()), /alice/);
    assert.match(file.suggestedFilename(), /\.csv$/);
    await page.reload();
    await isReady(page);
    await page.click("nav button:has-text('Alice Smith')");
    await page.click(".menu button:text-is('Show my account and permissions')");
    await page.waitForSelector(".account td");
    assert.match(await page.innerText(".account dl"), /alice\s+Signs in by\s+identity provider/);
    assert.match(await page.innerText(".account tbody"), /HTTP/);
    await page.context().close();
  },

  "tokens are renewed before they expire; a provider that is down meanwhile is asked again": async (setup) => {
    const page = await newPage(setup);
    await signIn(page);
    await isReady(page);
    const before = tokenRequests(setup);
    await until(() => tokenRequests(setup) > before);
    // The first failure comes when the provider has replaced the refresh token already.
    for (const path of ["/jwks", "/token"]) {
      const requests = () => setup.provider.requests.get(path) ?? 0;
      setup.provider.disturbance = ({ url }, reply) => {
        if (url === path) reply.writeHead(500).end();
        return url === path;
      };
      const failing = requests();
      await until(() => requests() > failing);
    }
    await setup.provider.stop();
    setup.provider.disturbance = undefined;
    await setup.provider.rotateKeys();
    await setup.provider.start();
    const down = tokenRequests(setup);
    // The next request of an expired token renews it.
    await page.waitForTimeout(TOKEN_TTL * 1000);
    assert.match(await run(page, "select 1"), /^1 row/);
    assert.ok(tokenRequests(setup) > down);
    assert.equal(await page.locator("dialog").count(), 0);
    await page.context().close();
  },

  "when the renewal is refused, the page asks to sign in anew and keeps what was typed": async (setup) => {
    const page = await newPage(setup);
    await signIn(page);
    await isReady(page);
    await run(page, "select x, x * 2 twice from long_sequence(200000)");
    await page.click("[aria-label='New tab']");
    setup.provider.users.get("alice")!.isRevoked = true;
    await type(page, "select 7 * 6 answer");
    const before = tokenRequests(setup);
    await until(() => tokenRequests(setup) > before);
    // The server caches the provider's answer for a second.
    await page.waitForTimeout(1_100);
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector("dialog .sign-in");
    setup.provider.users.get("alice")!.isRevoked = false;
    await begin(page);
    await page.waitForSelector("nav button:has-text('Alice Smith')");
    assert.match(await page.innerText(".cm-line"), /^select 7 \* 6 answer/);
    await page.click("button:text-is('Run again')");
    await page.waitForSelector(".grid [role=gridcell]:text-is('42')");
    // A result from before is found again in the server.
    await page.click(".tab button:text-is('Query 1')");
    await page.focus(".grid");
    await page.keyboard.press("Control+End");
    await page.waitForSelector(".grid .row:not(.loading) >> text=400000");
    await page.context().close();
  },

  "sign-out ends the session at the provider too": async (setup) => {
    const page = await newPage(setup);
    await signIn(page);
    await isReady(page);
    const addresses: string[] = [];
    page.on("request", (request) => addresses.push(request.url()));
    await page.click("nav button:has-text('Alice Smith')");
    await page.click(".menu button:text-is('Sign out')");
    await page.click("button:has-text('Yes')");
    await page.waitForSelector(".sign-in-page");
    assert.deepEqual(addresses.filter((url) => url.includes("eyJ")), []);
    // A link to a page, or with a statement, comes back from the provider.
    await page.goto(`${setup.server.http}/#/server`);
    await begin(page);
    await logIn(page, "alice");
    await page.waitForSelector("[aria-current=page]:text-is('Server')");
    await page.goto(`${setup.server.http}/?query=select%201`);
    await page.waitForSelector(".tab button:text-is('Link')");
    await page.context().close();
  },

  "an answer with another state, or to no sign-in of this page, is refused": async (setup) => {
    const page = await newPage(setup);
    await begin(page);
    await page.waitForSelector("[name=login]");
    await page.goto(
      `${setup.server.http}/?${new URLSearchParams({ code: "x", state: "y", iss: setup.provider.issuer })}`,
    );
    assert.match(await error(page), /"state"/);
    assert.equal(new URL(page.url()).search, "");
    await page.goto(`${setup.server.http}/?code=x&state=y`);
    assert.match(await error(page), /not started here/);
    await begin(page);
    await page.waitForSelector("[name=login]");
    // A path of the same origin that is not a page of the console.
    await page.goto(`${setup.server.http}/settings`);
    const state = String(await page.evaluate("JSON.parse(sessionStorage.getItem('sundial.sign-in')).state"));
    await page.goto(`${setup.server.http}/?${new URLSearchParams({ error: "access_denied", state })}`);
    assert.match(await error(page), /access_denied/);
    await page.context().close();
  },

  "a code that was used before is refused by the provider, and the page says so": async (setup) => {
    const page = await newPage(setup);
    await page.route(`${setup.provider.issuer}/token`, async (route: Route) => {
      if (route.request().method() === "POST") await route.fetch();
      await route.continue();
    });
    await signIn(page);
    assert.match(await error(page), /invalid_grant/);
    assert.equal(await page.locator(".cm-content").count(), 0);
    await page.context().close();
  },

  "id tokens with wrong claims are refused": async (setup) => {
    const page = await newPage(setup);
    let claims = () => ({});
    await changeTokens(setup, page, async (answer, nonce) => ({
      ...answer,
      id_token: await setup.provider.idToken("alice", { nonce, ...claims() }),
    }));
    await begin(page);
    await page.waitForSelector("[name=login]");
    for (const [index, refused] of refusedTokens.entries()) {
      claims = refused.claims;
      // The provider knows the user after the first time.
      await (index === 0 ? logIn(page, "alice") : begin(page));
      await page.waitForSelector(".sign-in .error");
      assert.match(await error(page), refused.says, refused.title);
      assert.equal(await page.locator(".cm-content").count(), 0);
    }
    await page.context().close();
  },

  "an id token that has expired by less than the clocks may differ is taken; one of an unknown key is not": async (
    setup,
  ) => {
    const page = await newPage(setup);
    let idToken = (nonce: string) => setup.provider.idToken("alice", { nonce, iat: now() - 60, exp: now() - 10 });
    await changeTokens(setup, page, async (answer, nonce) => ({ ...answer, id_token: await idToken(nonce) }));
    await signIn(page);
    await isReady(page);
    idToken = async (nonce) => {
      const signed = await setup.provider.idToken("alice", { nonce });
      await setup.provider.rotateKeys();
      return signed;
    };
    await page.reload();
    assert.match(await error(page), /key that the identity provider does not list/);
    await page.context().close();
  },

  "a provider that fails or is slow is told from one that refuses": async (setup) => {
    const page = await newPage(setup);
    setup.provider.disturbance = ({ url }, reply) => {
      if (url !== "/token") return false;
      reply.writeHead(500, { "access-control-allow-origin": "*" }).end("out of order");
      return true;
    };
    await signIn(page);
    assert.match(await error(page), /is unavailable: status 500/);
    setup.provider.disturbance = undefined;
    let answer = () => {};
    const asked = new Promise<void>((resolve) => answer = resolve);
    await page.route(`${setup.provider.issuer}/token`, async (route: Route) => {
      await asked;
      await route.continue();
    });
    await begin(page);
    assert.equal(await page.innerText(".sign-in-page [role=status]"), "Signing in …");
    answer();
    await isReady(page);
    await page.context().close();
  },

  "a user without a mapped group is told what is missing, and can leave": async (setup) => {
    const page = await newPage(setup);
    await signIn(page, "zoe");
    assert.match(await error(page), /HTTP/);
    await page.click("button:text-is('Sign out at the provider')");
    await page.click("button:has-text('Yes')");
    await page.waitForSelector(".sign-in-page");
    await signIn(page, "alice");
    await isReady(page);
    await page.context().close();
  },
};

testSteps("sign-in with an identity provider", withSetup, steps, (setup) => setup.provider.disturbance = undefined);
