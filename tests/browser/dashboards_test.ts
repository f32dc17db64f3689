/** Dashboards in the console. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { chromium, type Page } from "playwright-core";
import { ADMIN, basic, startProtected } from "../access/server.ts";
import { startServer } from "../server.ts";
import { BROWSER_ARGS, browserName, browserPath } from "./browser.ts";
import { run, test, watched } from "./visit.ts";

const TRADES = `create table trades as (
  select case when x % 2 = 0 then 'BTC' else 'ETH' end symbol, x price, timestamp_sequence('2026-01-01', 60000000) ts
  from long_sequence(1000)
) timestamp(ts) partition by day`;

const number = (page: Page, title: string) => page.innerText(`.panel[aria-label='${title}'] strong`);
const more = async (page: Page, name: string) => {
  await page.click(".board-bar >> text=More ▾");
  await page.click(`.menu >> text=${name}`);
};

/** A panel with a single number. */
async function addNumber(page: Page, title: string, statement: string): Promise<void> {
  await page.click("text=Add a panel");
  await page.fill(".panel-dialog [name=title]", title);
  await page.fill(".panel-dialog [name=statement]", statement);
  await page.selectOption(".panel-dialog [name=kind]", "number");
  await page.click(".panel-dialog button.main");
  await page.waitForSelector(`.panel[aria-label='${title}']`);
}

/** Drags over a part of a chart, which the whole dashboard shows then. */
async function zoom(page: Page): Promise<void> {
  await page.click("text=Add a panel");
  await page.fill(".panel-dialog [name=title]", "Drawn");
  await page.fill(
    ".panel-dialog [name=statement]",
    "select ts, avg(price) from trades where ts between @from and @to sample by 1h",
  );
  await page.click(".panel-dialog button.main");
  const over = page.locator(".panel[aria-label=Drawn] .u-over");
  await over.scrollIntoViewIfNeeded();
  const { x, y, width } = (await over.boundingBox())!;
  await page.mouse.move(x + 0.25 * width, y + 20);
  await page.mouse.down();
  await page.mouse.move(x + 0.5 * width, y + 30, { steps: 4 });
  // A SAMPLE BY has finer buckets for the range.
  const finer = page.waitForResponse((reply) => reply.request().postData()?.includes("buckets=") === true);
  await page.mouse.up();
  await page.waitForSelector(".board-bar button:has-text('2026-01-01 0')");
  assert.equal((await (await finer).json()).bucket, "15s");
}

/** A list of values, whose choices depend on another variable. */
async function chooseSeveral(page: Page): Promise<void> {
  await more(page, "Variables");
  await page.click("text=Add a variable");
  const last = page.locator(".variables-dialog fieldset").last();
  await last.locator("input >> nth=0").fill("prices");
  await last.locator("select >> nth=1").selectOption("a statement");
  await last.locator(".wide input").fill("select price from trades where symbol = @symbol and price < 9 order by 1");
  await last.locator("select >> nth=0").selectOption("number");
  await page.click(".variables-dialog .check:has-text('several') >> nth=-1");
  await page.click(".variables-dialog button.main");
  await addNumber(page, "Some", "select count() from trades where price in (@prices)");
  await page.selectOption(".variables select", "BTC");
  await page.waitForSelector(".panel[aria-label=Some] strong:text-is('4')");
  await page.click(".variables summary");
  await page.click(".variables .list label:has-text('2')");
  await page.click(".variables .list label:has-text('4')");
  await page.waitForSelector(".panel[aria-label=Some] strong:text-is('2')");
  assert.equal(await page.innerText(".variables summary span"), "2, 4 ▾");
  await page.keyboard.press("Escape");
  await page.click(".variables summary");
  await page.click(".variables .list button:text-is('All')");
  await page.waitForSelector(".panel[aria-label=Some] strong:text-is('4')");
}

test("a dashboard is made of a statement, has variables and a range, and is saved and exported", async (visit) => {
  const { page, server } = visit;
  await server.exec(TRADES);
  await run(page, "select ts, avg(price) from trades sample by 1h");
  await page.click("text=Add to a dashboard");
  await page.fill(".dialog [name=title]", "Prices");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".panel[aria-label=Prices] .grid .row");

  await more(page, "Variables");
  await page.click("text=Add a variable");
  await page.fill(".variables-dialog input", "symbol");
  await page.selectOption(".variables-dialog fieldset select >> nth=1", "a statement");
  await page.fill(".variables-dialog .wide input", "select distinct symbol from trades order by 1");
  await page.click('.variables-dialog .check:has-text("all")');
  await page.click(".variables-dialog button.main");
  const count = "select count() from trades where ts between @from and @to and (@symbol = '' or symbol = @symbol)";
  await addNumber(page, "Count", count);
  await page.click("text=Last 24 hours ▾");
  await page.click(".menu >> text=All times");
  await page.waitForSelector(".panel[aria-label=Count] strong:has-text('1,000')");
  await page.selectOption(".variables select", "BTC");
  await page.waitForSelector(".panel[aria-label=Count] strong:has-text('500')");
  await chooseSeveral(page);
  await page.click("text=All times ▾");
  await page.click(".menu >> text=From … to …");
  await page.fill(".dialog [name=from]", "2026-01-01T00:00");
  await page.fill(".dialog [name=to]", "2026-01-01T00:09");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".panel[aria-label=Count] strong:text-is('5')");

  await page.click("[aria-label='Actions of Count']");
  await page.click(".menu >> text=Edit …");
  await page.fill(".panel-dialog [name=title]", "Half typed");
  await page.waitForSelector(".unsaved");
  await page.reload();
  await page.waitForSelector(".panel[aria-label=Count]");
  assert.equal(await page.innerText(".unsaved"), "not saved", "changes outlive a reload");
  await page.click("[aria-label='Actions of Count']");
  await page.click(".menu >> text=Edit …");
  assert.equal(await page.inputValue(".panel-dialog [name=title]"), "Half typed", "a form outlives it, too");
  await page.click(".panel-dialog >> text=Cancel");
  await page.click("text=/Last 24 hours/");
  await page.click(".menu >> text=All times");
  await zoom(page);
  await page.click("button:text-is('Save')");
  await page.waitForSelector(".unsaved", { state: "detached" });
  assert.match(page.url(), /#\/dashboards\/[0-9a-f-]{36}$/);
  assert.deepEqual((await server.exec("select name, owner, version from _dashboards")).dataset, [[
    "Prices",
    "admin",
    1,
  ]]);

  await page.click(".board-bar >> text=More ▾");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Export as a file")]);
  const file = await Deno.readFile(await download.path());
  await page.click("[aria-label='All dashboards']");
  await page.waitForSelector(".facts td:has-text('Prices')");
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.click("text=Import a file")]);
  await chooser.setFiles({ name: "prices.json", mimeType: "application/json", buffer: Buffer.from(file) });
  await page.waitForSelector(".panel[aria-label=Count] strong");
  await page.click("button:text-is('Save')");
  await page.waitForSelector(".unsaved", { state: "detached" });
  assert.equal((await server.exec("select count() from _dashboards")).dataset?.[0][0], 2);
});

test("panels only read, and values of variables stay values", async ({ page, server }) => {
  await server.exec(TRADES);
  await page.goto(`${server.http}/#/dashboards`);
  await page.click("text=Empty dashboard");
  await addNumber(page, "Evil", "drop table trades");
  await page.waitForSelector(".panel[aria-label=Evil] .panel-error:has-text('only statements that read')");
  await more(page, "Variables");
  await page.click("text=Add a variable");
  await page.fill(".variables-dialog input", "s");
  await page.click(".variables-dialog button.main");
  await addNumber(page, "Length", "select length(@s)");
  await page.fill(".variables input", "'; drop table trades; --");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".panel[aria-label=Length] strong:text-is('24')");
  assert.equal((await server.exec("select count() from trades")).dataset?.[0][0], 1000);
});

test("a dashboard is refreshed by itself", async ({ page, server }) => {
  await page.goto(`${server.http}/#/dashboards/new`);
  await addNumber(page, "Now", "select now()::long now");
  const before = await page.innerText(".panel[aria-label=Now] strong");
  await page.click(".board-bar >> text=Refresh ▾");
  await page.click(".menu >> text=Every 5 s");
  await page.waitForSelector(`.panel[aria-label=Now] strong:not(:text-is("${before}"))`);
});

test("a server that goes away and others' changes lose nothing of a dashboard", async ({ page, server }) => {
  await page.goto(`${server.http}/#/dashboards/new`);
  await addNumber(page, "One", "select 1");
  await page.click("button:text-is('Save')");
  await page.waitForSelector(".unsaved", { state: "detached" });
  await addNumber(page, "Two", "select 2");
  await server.stop();
  await page.click("button:text-is('Save')");
  await page.waitForSelector(".refusal:has-text('Your changes stay in this browser')");
  await page.waitForSelector(".away:not([hidden])");
  assert.equal(await number(page, "One"), "1");
  await using again = await startServer({ root: server.root, httpPort: server.httpPort });
  await page.waitForSelector(".away", { state: "hidden" });
  const id = /[^/]+$/.exec(page.url())![0];
  const body = JSON.stringify({ id, version: 1, name: "theirs", definition: '{"version":0}' });
  await (await fetch(`${again.http}/api/v1/dashboards`, { method: "POST", body })).body?.cancel();
  await page.click("button:text-is('Save')");
  await page.waitForSelector(".refusal:has-text('changed in the meantime')");
  await page.click("text=Keep mine as a copy");
  await page.click("button:text-is('Save')");
  await page.waitForSelector(".unsaved", { state: "detached" });
  assert.deepEqual([await number(page, "One"), await number(page, "Two")], ["1", "2"]);
}, { isAlone: true });

const name = "console: a shared dashboard shows what the viewer's permissions allow, and no buttons that would fail";
const options = { ignore: browserName === undefined, sanitizeOps: false, sanitizeResources: false };
Deno.test({ name, ...options, fn: showShared });

async function showShared(): Promise<void> {
  await using server = await startProtected();
  await server.set(
    "create table prices (a int)",
    "create table hidden (a int)",
    "create user bob with password 'bob''s'",
    "grant http to bob",
    "grant select on prices to bob",
  );
  const panel = (id: number, title: string, statement: string) => ({
    ...{ id, title, statement, kind: "number", width: 6, height: "low", unit: "plain" },
  });
  const panels = [
    panel(1, "Prices", "select count() from prices"),
    panel(2, "Hidden", "select count() from hidden"),
    panel(3, "Running", "select count() from server_metrics()"),
  ];
  const definition = JSON.stringify({ version: 1, range: { all: true }, refreshSeconds: 0, variables: [], panels });
  const body = JSON.stringify({ name: "all", sharedWith: ["*"], definition });
  const { text } = await server.request("/api/v1/dashboards", basic(ADMIN), { method: "POST", body });
  const browser = await chromium.launch({ executablePath: browserPath, args: BROWSER_ARGS });
  try {
    const page = watched(await browser.newPage());
    await page.goto(`${server.http}/#/dashboards/${JSON.parse(text).id}`);
    await page.fill("[autocomplete=username]", "bob");
    await page.fill("[type=password]", "bob's");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".panel[aria-label=Prices] strong:text-is('0')");
    const error = (title: string) => page.innerText(`.panel[aria-label=${title}] .panel-error`);
    assert.match(await error("Hidden"), /Access denied for bob \[SELECT on hidden\].*GRANT SELECT ON hidden TO bob;/s);
    assert.match(await error("Running"), /Access denied for bob \[SYSTEM ADMIN\].*GRANT SYSTEM ADMIN TO bob;/s);
    assert.deepEqual(
      await Promise.all(["text=Add a panel", "button:text-is('Save')"].map((one) => page.locator(one).count())),
      [0, 0],
    );
    await page.click("[aria-label='Actions of Prices']");
    assert.deepEqual(await page.locator(".menu button").allInnerTexts(), ["Open in the editor"]);
    await page.keyboard.press("Escape");
    await page.click("text=Server");
    await page.waitForSelector(".empty:has-text('Metrics are shown to users with the permission SYSTEM ADMIN')");
    await page.waitForSelector("text=Nothing runs at the moment.");
    for (const [section, what] of [["Errors", "Errors"], ["Settings", "Settings"]]) {
      await page.click(`.sections >> text=${section}`);
      await page.waitForSelector(`.empty:has-text('${what} are shown to users with the permission SYSTEM ADMIN')`);
    }
    await page.click(".sections >> text=Tables");
    await page.waitForSelector(".facts td:has-text('prices')");
    assert.equal(await page.locator(".facts td:has-text('hidden')").count(), 0);
  } finally {
    await browser.close();
  }
}
