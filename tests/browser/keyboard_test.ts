/** The whole console without a mouse: every control is reached by Tab, the focus can be seen and is never lost. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type Browser, chromium, type Page } from "playwright-core";
import { ADMIN, startProtected } from "../access/server.ts";
import { BROWSER_ARGS, browserPath } from "./browser.ts";
import { testSteps, watched } from "./visit.ts";

interface Setup {
  browser: Browser;
  page: Page;
}

async function withSetup(use: (setup: Setup) => Promise<void>): Promise<void> {
  await using server = await startProtected();
  await server.set(
    "create table prices as (select dateadd('h', x::int, '2026-01-01T00:00:00Z'::timestamp) ts, " +
      "case when x % 2 = 0 then 'even' else 'odd' end symbol, x price from long_sequence(48)) timestamp(ts) partition by day",
    "create table quotes (ts timestamp, bid double) timestamp(ts) partition by day",
  );
  const browser = await chromium.launch({ executablePath: browserPath, args: BROWSER_ARGS });
  try {
    const page = watched(await browser.newPage({ viewport: { width: 1100, height: 720 } }));
    await page.goto(server.http);
    await use({ browser, page });
  } finally {
    await browser.close();
  }
}

interface Focus {
  /** Undefined if nothing has it. */
  label?: string;
  isSeen: boolean;
  /** Index among the controls that were numbered. */
  index?: number;
}

const focusOf = (page: Page): Promise<Focus> =>
  page.evaluate(`(() => {
    const { activeElement: element, body } = document;
    if (element === null || element === body) return { isSeen: false };
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    const { width, height } = element.getBoundingClientRect();
    // Where text is typed, the caret shows it; the divider changes its colour.
    const isText = element.matches(".cm-content, .chooser input"), isDivider = element.matches(".line");
    const isOutlined = outlineStyle !== "none" && parseFloat(outlineWidth) > 0;
    const label = element.getAttribute("aria-label") ?? (element.name || element.innerText.trim().slice(0, 40));
    const { number } = element.dataset;
    return { label, isSeen: width > 0 && height > 0 && (isOutlined || isText || isDivider), index: number && Number(number) };
  })()`);

/** Presses keys, and finds the focus somewhere after each. */
async function press(page: Page, ...keys: string[]): Promise<void> {
  for (const key of keys) {
    await page.keyboard.press(key);
    await assertFocus(page, key);
  }
}

async function assertFocus(page: Page, after: string): Promise<void> {
  const { label } = await focusOf(page);
  assert.notEqual(label, undefined, `the focus is lost after ${after}`);
}

/** In the editor Tab indents. After Escape it moves the focus. */
async function tab(page: Page, key = "Tab"): Promise<Focus> {
  if (await page.evaluate("document.activeElement.matches('.cm-content')")) await page.keyboard.press("Escape");
  await page.keyboard.press(key);
  return await focusOf(page);
}

/** Tab reaches the control with this label. */
async function tabTo(page: Page, label: string | RegExp, key = "Tab"): Promise<void> {
  const isThere = (focus: Focus) =>
    typeof label === "string" ? focus.label === label : focus.label !== undefined && label.test(focus.label);
  const seen: (string | undefined)[] = [];
  for (let presses = 0; presses < 80; presses++) {
    const focus = await tab(page, key);
    if (isThere(focus)) return;
    seen.push(focus.label);
  }
  assert.fail(`Tab does not reach ${label}: ${seen.join(", ")}`);
}

/** Reaches a control by Tab, and presses Enter there. */
async function activate(page: Page, label: string | RegExp, key = "Tab"): Promise<void> {
  await tabTo(page, label, key);
  await press(page, "Enter");
}

const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex], [role=button], .cm-content";

/** Tab reaches everything that can be used, and the focus is seen there. */
async function assertReached(page: Page, what: string): Promise<void> {
  const labels = await page.evaluate(`(() => {
    const place = [...document.querySelectorAll("dialog:modal")].at(-1) ?? document;
    for (const element of document.querySelectorAll("[data-number]")) delete element.dataset.number;
    // Entries of a list are reached by arrow keys.
    const all = [...place.querySelectorAll(${JSON.stringify(CONTROLS)})].filter((element) =>
      element.checkVisibility({ visibilityProperty: true }) && !element.matches(":disabled") &&
      !(element.tabIndex < 0 && element.closest("[role=tree], .cm-editor") !== null));
    return all.map((element, number) => {
      element.dataset.number = number;
      return element.getAttribute("aria-label") ?? (element.name || element.innerText.trim().slice(0, 40));
    });
  })()`) as string[];
  const missing = new Set(labels.keys()), unseen: (string | undefined)[] = [];
  for (let presses = 0; presses < 2 * labels.length + 10 && missing.size > 0; presses++) {
    const { label, isSeen, index } = await tab(page);
    if (index === undefined) continue;
    if (missing.delete(index) && !isSeen) unseen.push(label);
  }
  assert.deepEqual([...missing].map((index) => labels[index]), [], `${what}: not reached by Tab`);
  assert.deepEqual(unseen, [], `${what}: the focus is not seen`);
}

async function command(page: Page, name: string): Promise<void> {
  await press(page, "Control+K");
  await page.keyboard.type(name);
  await page.keyboard.press("Enter");
}

/** Chooses an entry of the open menu. */
async function choose(page: Page, name: string): Promise<void> {
  await page.waitForSelector(".menu");
  for (let presses = 0; presses < 20 && (await focusOf(page)).label !== name; presses++) await press(page, "ArrowDown");
  assert.equal((await focusOf(page)).label, name);
  await page.keyboard.press("Enter");
}

/** Writes a text into the editor, and runs it. */
async function run(page: Page, sql: string): Promise<void> {
  await press(page, "Alt+E", "Control+A", "Delete");
  await page.keyboard.insertText(sql);
  const before = await page.getAttribute(".results", "data-run");
  await press(page, "Control+Enter");
  await page.waitForSelector(`.results[aria-busy=false]:not([data-run="${before}"])`);
}

const steps: Record<string, (setup: Setup) => Promise<void>> = {
  "sign-in": async ({ page }) => {
    await page.waitForSelector(".sign-in");
    await assertReached(page, "sign-in");
    await tabTo(page, /^$|User/, "Shift+Tab");
    await page.focus("[autocomplete=username]");
    await page.keyboard.type(ADMIN.name);
    await page.keyboard.press("Tab");
    await page.keyboard.type("wrong");
    await press(page, "Enter");
    await page.waitForSelector(".sign-in .error");
    await page.keyboard.type(ADMIN.password);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".tree .item");
    assert.equal((await focusOf(page)).label, "SQL");
  },

  "editor: everything is reached, an error is fixed, panels give the focus back": async ({ page }) => {
    await assertReached(page, "first screen");
    await run(page, "select pricee from prices");
    await assertReached(page, "error");
    await press(page, "Alt+R");
    assert.equal((await focusOf(page)).label, "Replace by price");
    await press(page, "Enter");
    assert.equal((await focusOf(page)).label, "SQL");
    await press(page, "Control+Enter");
    await page.waitForSelector(".run-mark.done");
    for (const panel of ["Control+K", "Control+H"]) {
      await press(page, panel, "ArrowDown", "Escape");
      assert.equal((await focusOf(page)).label, "SQL");
    }
    await press(page, "Alt+T");
    await page.waitForSelector(".tab >> nth=1");
    await tabTo(page, "Close Query 2", "Shift+Tab");
    // The button goes with its tab.
    await press(page, "Enter");
    assert.equal(await page.locator(".tab").count(), 1);
    await command(page, "rename the tab");
    await page.keyboard.type("Mine");
    await press(page, "Enter");
    assert.equal((await focusOf(page)).label, "SQL");
  },

  "results: cells, menus of columns, copies and values": async ({ page }) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await run(page, "select x, -x y, repeat('long ', 100) s from long_sequence(300)");
    await assertReached(page, "rows");
    await press(page, "Alt+R");
    await press(page, "Control+End", "Enter");
    await page.waitForSelector(".dialog pre:has-text('long')");
    await press(page, "Escape");
    assert.equal((await focusOf(page)).label, "Rows");
    await press(page, "Control+Home", "ArrowRight", "Shift+F10");
    await choose(page, "Sort ascending");
    await page.waitForSelector("[aria-colindex='2'][aria-sort=ascending]");
    await press(page, "Shift+F10");
    await choose(page, "Freeze");
    await page.waitForSelector(".head .frozen");
    await press(page, "Shift+F10");
    await choose(page, "Statistics");
    await page.waitForSelector(".dialog pre:has-text('distinct')");
    await press(page, "Escape");
    await press(page, "Control+C");
    await page.waitForSelector(".notice:has-text('The value is in the clipboard')");
    await activate(page, "Copy ▾", "Shift+Tab");
    await choose(page, "As Markdown");
    await page.waitForSelector(".notice:has-text('Markdown')");
    assert.equal((await focusOf(page)).label, "Copy ▾");
    await run(page, "explain analyze select count() from prices");
    await assertReached(page, "plan");
  },

  "tables: found, opened and changed": async ({ page }) => {
    await press(page, "Alt+S");
    await page.waitForSelector(".tree input:focus");
    await page.keyboard.type("pri");
    await press(page, "ArrowDown", "ArrowRight");
    await page.waitForSelector(".tree .column:has-text('symbol')");
    await press(page, "ArrowDown", "ArrowDown");
    assert.match((await focusOf(page)).label!, /^symbol/);
    await press(page, "Enter");
    await page.waitForSelector(".menu");
    await press(page, "Escape", "ArrowLeft");
    assert.match((await focusOf(page)).label!, /prices/);
    // A key right after Escape moves the focus before the menu tells that it is closed.
    await press(page, "ArrowDown", "ArrowDown", "Enter");
    await page.waitForSelector(".menu");
    await page.evaluate("document.querySelector('.menu').hidePopover(); document.querySelector('.tree .name').focus()");
    await page.waitForSelector(".menu", { state: "detached" });
    assert.match((await focusOf(page)).label!, /prices/);
    await press(page, "ArrowLeft");
    assert.equal(await page.locator(".tree .column").count(), 0);
    await press(page, "Tab");
    assert.equal((await focusOf(page)).label, "Actions of prices");
    await press(page, "Enter");
    await choose(page, "Add a column …");
    await page.waitForSelector(".dialog [name=name]");
    await assertReached(page, "a question");
    await page.focus(".dialog [name=name]");
    await page.keyboard.type("note");
    await press(page, "Enter");
    await page.waitForSelector(".notice:has-text('add column note')");
    await command(page, "create a table");
    await page.waitForSelector(".create-table");
    await assertReached(page, "form of a table");
    await page.focus(".create-table [name=table]");
    await page.keyboard.type("by_keys");
    await press(page, "Enter");
    await page.waitForSelector(".create-table", { state: "detached" });
    await assertFocus(page, "the table is created");
    await press(page, "Alt+S");
    await page.waitForSelector(".tree input:focus");
    await press(page, "Control+A");
    await page.keyboard.type("quotes");
    // The item and its button are gone when the table is.
    await press(page, "ArrowDown", "Tab", "Enter");
    await choose(page, "Drop …");
    await page.waitForSelector(".dialog pre");
    await page.focus(".dialog button.danger");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".tree:not(:has(.name))");
    await assertFocus(page, "the table is dropped");
    await tabTo(page, "Search tables", "Shift+Tab");
    await press(page, "Control+A", "Delete");
  },

  "import: mapped and reported": async ({ page }) => {
    const chosen = page.waitForEvent("filechooser");
    await command(page, "import a csv");
    const buffer = Buffer.from("ts,price\n2026-01-01,1\n2026-01-02,2\n2026-01-03,3\n2026-01-04,4,5\n");
    await (await chosen).setFiles({ name: "days.csv", mimeType: "text/csv", buffer });
    await page.waitForSelector(".import .mapping td");
    await assertReached(page, "import");
    await tabTo(page, "Name of price in the table");
    await press(page, "Control+A");
    await page.keyboard.type("paid");
    await press(page, "Enter");
    await page.waitForSelector(".import .faults");
    await assertReached(page, "report of an import");
    await page.focus(".import button.main");
    await press(page, "Enter");
    await page.waitForSelector(".import", { state: "detached" });
    await assertFocus(page, "the report is closed");
  },

  "charts: crosshair, zoom, series and pictures": async ({ page }) => {
    await run(page, "select ts, symbol, sum(price) from prices sample by 4h");
    await activate(page, "Chart");
    await page.waitForSelector(".chart canvas");
    await assertReached(page, "chart");
    await press(page, "Alt+R", "ArrowRight", "ArrowRight");
    await page.waitForSelector(".chart .u-legend:has-text('2026-01-01 04:00')");
    const answered = () => page.waitForResponse((reply) => reply.request().postData()?.includes("buckets=") === true);
    const zoomed = answered();
    await press(page, "+");
    assert.notEqual((await (await zoomed).json()).bucket, undefined);
    await page.waitForSelector("button:text-is('Show all')");
    const moved = answered();
    await press(page, "PageDown");
    await moved;
    await activate(page, "Show all", "Shift+Tab");
    await page.waitForSelector("button:text-is('Show all')", { state: "detached" });
    await assertFocus(page, "all is shown");
    await activate(page, "odd");
    await page.waitForSelector(".u-label[aria-pressed=false]:text-is('odd')");
    await tabTo(page, "Save as PNG", "Shift+Tab");
    await Promise.all([page.waitForEvent("download"), press(page, "Enter")]);
    await activate(page, "Rows", "Shift+Tab");
  },

  "dashboards: made, zoomed, saved and changed": async ({ page }) => {
    await press(page, "Alt+2");
    await page.waitForSelector(".facts .tools");
    await assertFocus(page, "the page");
    await assertReached(page, "dashboards");
    await activate(page, /^Make one/);
    await page.waitForSelector(".panel[aria-label=Mine]");
    await assertReached(page, "dashboard");
    await activate(page, "Add a panel");
    await page.waitForSelector(".panel-dialog");
    await assertReached(page, "panel form");
    await page.focus(".panel-dialog [name=title]");
    await page.keyboard.type("Drawn");
    await press(page, "Tab");
    await page.keyboard.insertText("select ts, avg(price) from prices where ts between @from and @to sample by 1h");
    await activate(page, "Done");
    await activate(page, "Last 24 hours ▾");
    await choose(page, "All times");
    await tabTo(page, /^Chart of/);
    await press(page, "+");
    await page.waitForSelector(".board-bar button:has-text('2026-01-0')");
    await activate(page, "More ▾", "Shift+Tab");
    await choose(page, "Variables …");
    await page.waitForSelector(".variables-dialog");
    await activate(page, "Add a variable");
    await assertReached(page, "variables form");
    await press(page, "Escape");
    await activate(page, "Save", "Shift+Tab");
    await page.waitForSelector(".unsaved", { state: "detached" });
    await assertFocus(page, "Save is gone");
    await activate(page, "Actions of Drawn");
    await choose(page, "Remove");
    await page.waitForSelector(".panel[aria-label=Drawn]", { state: "detached" });
    await assertFocus(page, "the panel is removed");
  },

  "server page: sections, searches and settings": async ({ page }) => {
    await press(page, "Alt+3");
    await page.waitForSelector(".live-charts canvas");
    await assertFocus(page, "the page");
    await assertReached(page, "overview");
    for (const section of ["Tables", "Errors", "Settings"]) {
      await activate(page, section);
      await page.waitForSelector(`.facts[aria-label=${section}]`);
      await page.waitForSelector(".facts td");
      await assertReached(page, section);
    }
  },

  "account and sign-out": async ({ page }) => {
    await press(page, "Alt+1");
    assert.equal((await focusOf(page)).label, "SQL");
    await command(page, "show my account");
    await page.waitForSelector(".account td");
    await assertReached(page, "account");
    await press(page, "Escape");
    await command(page, "sign out");
    await page.waitForSelector(".sign-in-page");
    await page.waitForSelector(".sign-in input:focus");
  },
};

testSteps("by keys alone", withSetup, steps);
