/** Sign-in of local users in the console, in a real browser against a real server. */
import assert from "node:assert/strict";
import { type Browser, chromium, type Page } from "playwright-core";
import { ADMIN, type ProtectedServer, startProtected } from "../access/server.ts";
import { BROWSER_ARGS, browserPath } from "./browser.ts";
import { endSession, run, testSteps, textsOf, type, untilLoaded, watched } from "./visit.ts";

interface Setup {
  server: ProtectedServer;
  browser: Browser;
}

async function withSetup(use: (setup: Setup) => Promise<void>): Promise<void> {
  await using server = await startProtected();
  const browser = await chromium.launch({ executablePath: browserPath, args: BROWSER_ARGS });
  try {
    await server.set(
      "create table prices (ts timestamp, bid double, secret double) timestamp(ts) partition by day",
      "create table hidden (a int)",
      "insert into prices values ('2024-01-01', 1.5, 7)",
      "create user bob with password 'correct horse'",
      "create user nobody with password 'no rights'",
      "grant http to bob",
      "grant select on prices(bid) to bob",
      "grant add column on prices to bob",
    );
    await use({ server, browser });
  } finally {
    await browser.close();
  }
}

async function newPage({ browser, server }: Setup): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1100, height: 720 } });
  const page = watched(await context.newPage());
  await page.goto(server.http);
  return page;
}

async function signIn(page: Page, name: string, password: string): Promise<void> {
  await page.waitForSelector(".sign-in");
  await page.fill("[autocomplete=username]", name);
  await page.fill("[type=password]", password);
  await page.keyboard.press("Enter");
}

const steps: Record<string, (setup: Setup) => Promise<void>> = {
  "nothing of the console is shown before the sign-in, and wrong passwords are told": async (setup) => {
    const page = await newPage(setup);
    await page.waitForSelector(".sign-in");
    assert.equal(await page.locator(".cm-content").count(), 0);
    await signIn(page, "bob", "guess");
    await page.waitForSelector(".sign-in .error");
    assert.equal(await page.innerText(".sign-in .error"), "The user name or the password is wrong.");
    await signIn(page, "bob", "correct horse");
    await page.waitForSelector(".cm-content");
    assert.match(await run(page, "select current_user()"), /^1 row/);
    assert.equal(await page.innerText(".grid [role=gridcell]"), "bob");
    // The session outlives a reload, and nothing of it can be read by scripts.
    await page.reload();
    await page.waitForSelector(".cm-content");
    const readable = await page.evaluate("JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])");
    assert.doesNotMatch(String(readable), /sundial_session|correct horse|Basic/);
    await page.context().close();
  },

  "a user without the permission HTTP is told what is missing and who can give it": async (setup) => {
    const page = await newPage(setup);
    await signIn(page, "nobody", "no rights");
    await page.waitForSelector(".sign-in .denied");
    assert.equal(await page.innerText(".sign-in .error"), "Access denied for nobody [HTTP]");
    assert.match(await page.innerText(".sign-in .denied"), /administrator.*GRANT HTTP TO nobody;/s);
    await page.context().close();
  },

  "only what the user may do is offered; a refusal says how to get the permission": async (setup) => {
    const page = await newPage(setup);
    await signIn(page, "bob", "correct horse");
    await page.waitForSelector(".tree .item");
    assert.deepEqual(await textsOf(page, ".tree .name span:not(.arrow)"), ["prices"]);
    assert.equal(await page.locator("[aria-label^='Import'], [aria-label='Create a table']").count(), 0);
    await page.keyboard.press("Control+K");
    await page.waitForSelector(".chooser li");
    assert.equal(await page.locator(".chooser li:text-matches('Import|Create')").count(), 0);
    await page.keyboard.press("Escape");
    await page.click("[aria-label='Actions of prices']");
    const offered = await textsOf(page, ".menu button");
    assert.ok(offered.includes("Add a column …") && !offered.includes("Drop …") && !offered.includes("Rename …"));
    // `select *` would be refused: one column is hidden.
    await page.click(".menu button:text-is('Show rows')");
    await page.waitForSelector(".grid .row");
    assert.match(await page.innerText(".cm-line"), /^select ts, bid from prices/);
    await run(page, "insert into prices values ('2024-01-02', 1, 1)");
    assert.match(await page.innerText(".results .denied"), /INSERT on prices.*GRANT INSERT ON prices TO bob;/s);
    await page.click("nav button:has-text('bob')");
    await page.click(".menu button:text-is('Show my account and permissions')");
    await page.waitForSelector(".account td");
    assert.equal(await page.innerText(".account h2"), "bob");
    await page.waitForSelector(".account dd:has-text('password')");
    assert.ok((await textsOf(page, ".account tbody tr")).some((row) => /ADD COLUMN\s+prices\s+no/.test(row)));
    await page.keyboard.press("Escape");
    // Permissions granted in the meantime are offered after the next check.
    await setup.server.set("grant drop table on prices to bob");
    await page.click("[aria-label='Refresh the tables']");
    await page.click("[aria-label='Actions of prices']");
    await page.waitForSelector(".menu button:text-is('Drop …')");
    await page.context().close();
  },

  "a session that ends asks to sign in anew, and the statement that noticed then runs": async (setup) => {
    const page = await newPage(setup);
    await signIn(page, "bob", "correct horse");
    await untilLoaded(page);
    await setup.server.set("alter user bob with password 'new one'");
    await type(page, "select 41 + 1 answer");
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector("dialog .sign-in");
    assert.equal(await page.inputValue("[autocomplete=username]"), "bob");
    await signIn(page, "bob", "correct horse");
    await page.waitForSelector("dialog .sign-in .error");
    await signIn(page, "bob", "new one");
    await page.waitForSelector(".grid [role=gridcell]:text-is('42')");
    assert.equal(await page.locator("dialog .sign-in").count(), 0);
    // Cancelled, the statement fails and its text stays.
    await endSession(page);
    await type(page, "select 43");
    await page.keyboard.press("Control+Enter");
    await page.click("dialog .sign-in button:text-is('Not now')");
    await page.waitForSelector(".summary.error");
    assert.match(await page.innerText(".cm-line"), /^select 43/);
    // Somebody else signs in: neither texts nor history nor results of the user before are there.
    await page.keyboard.press("Control+Enter");
    await signIn(page, ADMIN.name, ADMIN.password);
    await page.waitForSelector("nav button:has-text('admin')");
    await page.waitForSelector(".summary:has-text('Ctrl + Enter runs')");
    assert.doesNotMatch(await page.innerText(".cm-content"), /select 43/);
    await page.keyboard.press("Control+H");
    await page.waitForSelector(".chooser");
    assert.doesNotMatch(await page.innerText(".chooser"), /answer/);
    await page.keyboard.press("Escape");
    // The user before finds the texts again.
    await endSession(page);
    await type(page, "select 44");
    await page.keyboard.press("Control+Enter");
    await signIn(page, "bob", "new one");
    await page.waitForSelector("nav button:has-text('bob')");
    await page.waitForSelector(".cm-line:has-text('select 43')");
    await page.keyboard.press("Control+H");
    await page.waitForSelector(".chooser:has-text('answer')");
    await page.context().close();
  },

  "sign-out ends the session in the server": async (setup) => {
    const page = await newPage(setup);
    await signIn(page, ADMIN.name, ADMIN.password);
    await page.waitForSelector(".cm-content");
    const [{ name, value }] = await page.context().cookies();
    const cookie = `${name}=${value}`;
    await page.keyboard.press("Control+K");
    await page.keyboard.type("sign out");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".sign-in-page");
    const { status, body } = await fetch(`${setup.server.http}/exec?query=select+1`, { headers: { cookie } });
    await body?.cancel();
    assert.equal(status, 401);
    await page.context().close();
  },
};

testSteps("sign-in of local users", withSetup, steps);
