/**
 * Every state of the console at two widths, or at full length at three, light and dark: axe finds no fault by WCAG AA, and nothing is wider than the
 * window. All are operated at each width. With `SUNDIAL_PICTURES=true`, pictures of them are left in `build/screenshots/`, for people to look at.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { FULL } from "../../src/testing.ts";
import { ADMIN, basic, type ProtectedServer, startProtected } from "../access/server.ts";
import { fromFileUrl } from "../paths.ts";
import { BROWSER_ARGS, browserName, browserPath } from "./browser.ts";
import { endSession, run, type, watched } from "./visit.ts";

const FOLDER = fromFileUrl("../build/screenshots");
const PICTURES = Deno.env.get("SUNDIAL_PICTURES") === "true";
const THEMES = ["light", "dark"] as const;
/** `axe`: the themes in which axe looks at the states. Only width and theme change what it finds. */
const SIZES: readonly { width: number; height: number; axe: readonly typeof THEMES[number][] }[] = [
  { width: 1440, height: 900, axe: THEMES },
  // Only the width is tested here, which those above and below mostly cover.
  ...FULL || PICTURES ? [{ width: 1024, height: 768, axe: [] }] : [],
  { width: 375, height: 760, axe: ["light"] },
];

interface Fault {
  id: string;
  nodes: { target: string[]; any: { message: string }[] }[];
}

async function faultsByAxe(page: Page): Promise<string[]> {
  const found = await page.evaluate(`axe.run(document, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"], preload: false
  }).then(({ violations }) => violations.map(({ id, nodes }) =>
    ({ id, nodes: nodes.map(({ target, any }) => ({ target, any: any.map(({ message }) => ({ message })) })) })))`);
  return (found as Fault[]).flatMap(({ id, nodes }) =>
    nodes
      // The editor keeps the focus and moves in its list of completions by arrow keys.
      .filter(({ target }) => !(id === "scrollable-region-focusable" && target[0].startsWith("#cm-ac-")))
      .map(({ target, any }) => `${id}: ${target}: ${any[0]?.message ?? ""}`)
  );
}

async function checkLooks(page: Page, state: string, size: typeof SIZES[number]): Promise<void> {
  const faults: string[] = [];
  for (const colorScheme of PICTURES ? THEMES : size.axe) {
    await page.emulateMedia({ colorScheme });
    // Canvases follow in the next frame.
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    if (size.axe.includes(colorScheme)) {
      faults.push(...(await faultsByAxe(page)).map((fault) => `${colorScheme}: ${fault}`));
    }
    if (!PICTURES) continue;
    const path = join(FOLDER, `${state.replaceAll(/\W+/g, "-")}-${size.width}-${colorScheme}.png`);
    // A hidden caret would be a style that the page's policy refuses.
    await page.screenshot({ path, caret: "initial" });
  }
  const width = await page.evaluate("document.documentElement.scrollWidth");
  if (width as number > size.width) faults.push(`${width} px wide`);
  assert.deepEqual(faults, [], state);
}

/** Opens a state, and closes what would cover the next. */
type State = [name: string, open: (page: Page) => Promise<unknown>, close?: (page: Page) => Promise<unknown>];

const escape = (page: Page) => page.keyboard.press("Escape");
const goTo = (page: Page, name: string) => page.click(`nav[aria-label=Pages] a:text-is('${name}')`);
const isNarrow = (page: Page) => page.viewportSize()!.width < 640;

async function openTree(page: Page): Promise<void> {
  if (!await page.isVisible(".tree")) await page.click("[aria-label='Show or hide the tables']");
}

/** On a narrow screen the tree covers the editor. */
async function closeTree(page: Page): Promise<void> {
  if (isNarrow(page)) await page.click("[aria-label='Show or hide the tables']");
}

async function chooseFile(page: Page, text: string): Promise<void> {
  await openTree(page);
  const chosen = page.waitForEvent("filechooser");
  await page.click("[aria-label='Import a CSV or Parquet file']");
  await (await chosen).setFiles({ name: "prices.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  await page.waitForSelector(".import .preview td");
}

async function showChart(page: Page, sql: string, kind: string): Promise<void> {
  await run(page, sql);
  if (await page.getAttribute(".results button:text-is('Chart')", "aria-pressed") === "false") {
    await page.click(".results button:text-is('Chart')");
  }
  await page.waitForSelector(".chart canvas");
  if (await page.locator(`button:text-is('${kind} ▾')`).count() === 0) {
    await page.click("button[aria-haspopup=menu]:text-matches('^(Line|Candlestick|Heat map|Area) ▾$')");
    await page.click(`.menu button:text-is('${kind}')`);
  }
  await page.waitForSelector(`button:text-is('${kind} ▾')`);
}

const TRADES = "(read_parquet('trades.parquet') timestamp(timestamp))";

/** One after the other, on one page. */
const states: State[] = [
  ["sign-in", (page) => page.waitForSelector(".sign-in")],
  ["sign-in refused", async (page) => {
    await page.fill("[autocomplete=username]", ADMIN.name);
    await page.fill("[type=password]", "guess");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".sign-in .error");
  }],
  ["first screen", async (page) => {
    await page.fill("[type=password]", ADMIN.password);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".welcome button >> nth=2");
  }],
  ["rows", (page) => run(page, "select * from read_parquet('trades.parquet')")],
  ["running", async (page) => {
    await type(page, "select count() from long_sequence(2000000000000) where rnd_double() < 0");
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector(".results [role=status]:has-text(' read ')");
  }, async (page) => {
    await page.click("text=Cancel");
    await page.waitForSelector(".results[aria-busy=false]");
  }],
  ["no rows", (page) => run(page, "select * from t")],
  ["value", async (page) => {
    await run(page, "select 1 id, repeat('a long text ', 300) text, null nothing, 1.5e300 large, '{}' json");
    await page.dblclick(".grid .row:first-child [aria-colindex='2']");
    await page.waitForSelector(".dialog pre");
  }, escape],
  [
    "chart",
    (page) => showChart(page, `select timestamp, symbol, avg(amount) from ${TRADES} sample by 1d`, "Line"),
  ],
  ["candles", async (page) => {
    const prices = "first(price) open, max(price) high, min(price) low, last(price) close";
    await showChart(
      page,
      `select timestamp, ${prices} from ${TRADES} where symbol = 'BTC-USD' sample by 6h`,
      "Candlestick",
    );
  }],
  [
    "heat map",
    (page) => showChart(page, `select timestamp, symbol, count() from ${TRADES} sample by 1d`, "Heat map"),
    (page) => page.click(".results button:text-is('Rows')"),
  ],
  ["plan", async (page) => {
    await run(page, `explain analyze select symbol, count() from ${TRADES} where price > 1 order by 2`);
    await page.waitForSelector(".plan .bar");
  }],
  ["several statements", (page) => run(page, "select 1; select x; select 2", "Control+Shift+Enter")],
  ["refused statement", (page) => run(page, "select pricee from read_parquet('trades.parquet')")],
  ["completion", async (page) => {
    await type(page, "select vwap");
    await page.keyboard.press("Control+Space");
    await page.waitForSelector(".cm-completionInfo .form");
  }, escape],
  ["open table", async (page) => {
    await openTree(page);
    if (await page.locator(".tree .column").count() === 0) await page.click(".tree .name:has-text('trades')");
    await page.waitForSelector(".tree .column");
  }],
  ["menu of a table", (page) => page.click("[aria-label='Actions of trades']"), escape],
  ["question", async (page) => {
    await page.click("[aria-label='Actions of t']");
    await page.click(".menu button:text-is('Drop …')");
    await page.waitForSelector(".dialog pre");
  }, escape],
  ["create a table", async (page) => {
    await page.click("[aria-label='Create a table']");
    await page.waitForSelector(".create-table pre");
  }, escape],
  [
    "import",
    (page) => chooseFile(page, "ts,symbol,price\n2024-01-01T00:00:00.000000Z,BTC,1.5\n2024-01-02,ETH,2\n"),
    async (page) => {
      await escape(page);
      await closeTree(page);
    },
  ],
  ["import report", async (page) => {
    await chooseFile(
      page,
      "ts,symbol,price\n2024-01-01,BTC,1.5\n2024-01-02,ETH,2\n2024-01-03,ETH,3,4\n2024-01-04,A,5\n",
    );
    await page.click(".import button.main");
    await page.waitForSelector(".import .faults");
  }, async (page) => {
    await escape(page);
    await closeTree(page);
  }],
  ["commands", (page) => page.keyboard.press("Control+K"), escape],
  ["history", (page) => page.keyboard.press("Control+H"), escape],
  ["account", async (page) => {
    await page.click("nav button:has-text('admin')");
    await page.click(".menu button >> nth=0");
    await page.waitForSelector(".account td");
  }, escape],
  ["server", async (page) => {
    await goTo(page, "Server");
    // A rate needs two readings.
    await page.waitForSelector(".numbers div:nth-child(2) dd:not(:text-is('–'))");
    await page.waitForSelector(".live-charts canvas");
  }],
  ...["Tables", "Errors", "Settings"].map((name): State => [`server ${name}`, async (page) => {
    await page.click(`.sections a:text-is('${name}')`);
    await page.waitForSelector(".facts td");
  }]),
  ["dashboards", async (page) => {
    await goTo(page, "Dashboards");
    await page.waitForSelector(".facts td");
  }],
  ["dashboard", async (page) => {
    await page.click(".facts a:text-is('Trading')");
    await page.waitForSelector(".panel canvas");
    await page.waitForSelector(".panel .grid .row");
    await page.waitForSelector(".panel strong");
  }],
  ["panel form", async (page) => {
    await page.click("[aria-label='Actions of Trades']");
    await page.click(".menu button:text-is('Edit …')");
    await page.waitForSelector(".panel-dialog textarea");
  }, escape],
  ["variables form", async (page) => {
    await page.click(".board-bar >> text=More ▾");
    await page.click(".menu >> text=Variables …");
    await page.waitForSelector(".variables-dialog fieldset");
  }, escape],
  ["server away", async (page) => {
    await page.route("**/*", (route) => route.abort());
    await goTo(page, "Query");
    await type(page, "select 1");
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector(".away:not([hidden])");
  }, async (page) => {
    await page.unroute("**/*");
    await page.waitForSelector(".away", { state: "hidden" });
  }],
  ["expired session", async (page) => {
    await endSession(page);
    await type(page, "select 1");
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector("dialog .sign-in");
  }],
  ["missing permission", async (page) => {
    await page.fill("dialog [autocomplete=username]", "bob");
    await page.fill("dialog [type=password]", "bob's");
    await page.keyboard.press("Enter");
    await page.waitForSelector("nav button:has-text('bob')");
    await page.evaluate(axe.source);
    await run(page, "select * from trades");
    await page.waitForSelector(".denied");
  }],
];

const panel = (title: string, kind: string, statement: string, width: number, height = "low") => ({
  ...{ title, kind, statement, width, height, unit: "plain" },
});
const PANELS = [
  panel("Trades", "number", "select count() from trades where symbol = @symbol or @symbol = ''", 3),
  panel("Refused", "number", "select nothing from trades", 3),
  panel("Last trades", "table", "select * from trades order by timestamp desc limit 100", 6),
  panel("Amounts", "chart", "select timestamp, symbol, avg(amount) from trades sample by 1d", 8, "medium"),
  panel("No rows", "chart", "select timestamp, price from trades where price < 0", 4, "medium"),
];

async function furnish(server: ProtectedServer): Promise<void> {
  await server.set(
    "create table t (ts timestamp, name symbol, price double) timestamp(ts) partition by day",
    "create table trades as (select * from read_parquet('trades.parquet')) timestamp(timestamp) partition by day",
    "create user bob with password 'bob''s'",
    "grant http to bob",
  );
  const definition = {
    version: 1,
    range: { all: true },
    refreshSeconds: 0,
    variables: [{
      ...{ name: "symbol", type: "text", value: "BTC-USD", hasAll: true },
      statement: "select distinct symbol from trades order by 1",
    }],
    panels: PANELS.map((one, at) => ({ id: at + 1, ...one })),
  };
  const body = JSON.stringify({ name: "Trading", sharedWith: ["*"], definition: JSON.stringify(definition) });
  const { status, text } = await server.request("/api/v1/dashboards", basic(ADMIN), { method: "POST", body });
  assert.equal(status, 200, text);
}

async function visitAll(
  test: Deno.TestContext,
  browser: Browser,
  server: ProtectedServer,
  size: typeof SIZES[number],
): Promise<void> {
  const context = await browser.newContext({ viewport: size, reducedMotion: "reduce" });
  const page = watched(await context.newPage());
  await page.goto(server.http);
  await page.evaluate(axe.source);
  for (const [name, open, close] of states) {
    await test.step(`${name}, ${size.width} px`, async () => {
      await open(page);
      try {
        await checkLooks(page, name, size);
      } finally {
        await close?.(page);
      }
    });
  }
  await context.close();
}

Deno.test({
  name: "console: every state, wide and narrow, light and dark, is accessible and fits the window",
  ignore: browserName === undefined,
  sanitizeOps: false,
  sanitizeResources: false,
  async fn(test) {
    if (PICTURES) await Deno.mkdir(FOLDER, { recursive: true });
    await using server = await startProtected();
    await furnish(server);
    const browser = await chromium.launch({ executablePath: browserPath, args: BROWSER_ARGS });
    try {
      for (const size of SIZES) await visitAll(test, browser, server, size);
    } finally {
      await browser.close();
    }
  },
});
