/** The web console in a real browser, against a real server: visits and what they have in common. */
import assert from "node:assert/strict";
import { type Browser, chromium, type Page, type Request } from "playwright-core";
import { startServer, type TestServer } from "../server.ts";
import { BROWSER_ARGS, browserName, browserPath } from "./browser.ts";

export interface Visit {
  page: Page;
  server: TestServer;
}

interface Options {
  path?: string;
  /** The server's environment. */
  env?: Record<string, string>;
  /** The visit has a server of its own: it stops it, or looks at files of all its clients. */
  isAlone?: boolean;
}

/** Shared by the visits of a test file. Each has its own profile. */
let shared: Promise<Browser> | undefined;
/** Shared by the visits of a test file that want the same environment. Each begins without tables. */
const servers = new Map<string, Promise<TestServer>>();
Deno.test.afterAll(async () => {
  await (await shared)?.close();
  for (const server of servers.values()) await (await server)[Symbol.asyncDispose]();
});

function sharedServer(env: Options["env"]): Promise<TestServer> {
  const name = JSON.stringify(env ?? {}), started = servers.get(name) ?? startServer({ env });
  servers.set(name, started);
  return started;
}

async function visit(use: (visit: Visit) => Promise<void>, { path = "/", env, isAlone }: Options): Promise<void> {
  shared ??= chromium.launch({ executablePath: browserPath, args: BROWSER_ARGS });
  const [server, browser] = await Promise.all([isAlone ? startServer({ env }) : sharedServer(env), shared]);
  const context = await browser.newContext({ viewport: { width: 1100, height: 720 } });
  try {
    const page = watched(await context.newPage());
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      // Refused requests are 400s, 403s and 409s, and expired results 404s, which the browser logs too.
      const isExpected = /40[039]|ERR_CONNECTION|ERR_EMPTY_RESPONSE/.test(message.text()) ||
        message.location().url.includes("/sql/results");
      if (message.type() === "error" && !isExpected) faults.push(message.text());
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(server.http)) faults.push(`the page asks for ${request.url()}`);
    });
    await page.goto(`${server.http}${path}`);
    await page.waitForSelector(".cm-content");
    await use({ page, server });
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
    if (isAlone) await server[Symbol.asyncDispose]();
    else assert.equal((await server.exec("drop all tables")).error, undefined);
  }
}

export async function type(page: Page, text: string): Promise<void> {
  await page.click(".cm-content");
  await page.keyboard.press("Control+A");
  // Text over a selection makes Chromium itself write an inline style.
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(text);
}

/** On a machine that is busy with other tests, a page may take long. */
const PATIENCE_MS = 120_000;

interface Traffic {
  /** Requests in progress. */
  open: Set<Request>;
  /** Whether the page has asked for the names of the language since it was loaded. */
  hasLanguage: boolean;
}

const traffic = new WeakMap<Page, Traffic>();

/** Follows the requests of a new page for `untilLoaded`, and waits for it with patience. */
export function watched(page: Page): Page {
  page.setDefaultTimeout(PATIENCE_MS);
  const state: Traffic = { open: new Set(), hasLanguage: false };
  traffic.set(page, state);
  page.on("request", (request) => {
    if (request.isNavigationRequest()) state.hasLanguage = false;
    else if (request.url().endsWith("/language")) state.hasLanguage = true;
    state.open.add(request);
  });
  page.on("requestfinished", (request) => state.open.delete(request));
  page.on("requestfailed", (request) => state.open.delete(request));
  return page;
}

/**
 * Waits until a watched page has its tables, its permissions and the language, which it requests together when somebody has signed in. One of
 * these requests that met the end of the session would ask for the sign-in before the test does.
 */
export async function untilLoaded(page: Page): Promise<void> {
  const state = traffic.get(page)!, end = Date.now() + PATIENCE_MS;
  while (!state.hasLanguage || state.open.size > 0) {
    assert.ok(Date.now() < end, `the page still waits for ${[...state.open].map((request) => request.url())}`);
    await page.waitForTimeout(50);
  }
}

/** Ends the page's session in the server. Without its cookie alone it could go on: replies under way bring new cookies. */
export async function endSession(page: Page): Promise<void> {
  await untilLoaded(page);
  await page.evaluate(async () => {
    const body = new URLSearchParams({ query: "select 1" });
    await (await fetch("exec?session=false", { method: "POST", headers: { "x-sundial-page": "1" }, body })).text();
  });
}

/** Runs a text, and gives the summary of its last statement. */
export async function run(page: Page, sql: string, keys = "Control+Enter"): Promise<string> {
  await type(page, sql);
  const before = await page.getAttribute(".results", "data-run");
  await page.keyboard.press(keys);
  await page.waitForSelector(`.results[aria-busy=false]:not([data-run="${before}"])`);
  return await page.innerText(".results [role=status]");
}

export const textsOf = (page: Page, selector: string) => page.locator(selector).allInnerTexts();

export function test(name: string, use: (visit: Visit) => Promise<void>, visited: Options = {}): void {
  // Connections of the browser outlive a test case here and there.
  const options = { ignore: browserName === undefined, sanitizeOps: false, sanitizeResources: false };
  Deno.test({ name: `console: ${name}`, ...options, fn: () => visit(use, visited) });
}

/** Steps that share a server and a browser. `clean`: called after each. */
export function testSteps<Setup>(
  name: string,
  withSetup: (use: (setup: Setup) => Promise<void>) => Promise<void>,
  steps: Record<string, (setup: Setup) => Promise<void>>,
  clean?: (setup: Setup) => void,
): void {
  const options = { ignore: browserName === undefined, sanitizeOps: false, sanitizeResources: false };
  const all = (test: Deno.TestContext) =>
    withSetup(async (setup) => {
      for (const [title, step] of Object.entries(steps)) {
        await test.step(title, () => step(setup).finally(() => clean?.(setup)));
      }
    });
  Deno.test({ name: `console: ${name}`, ...options, fn: all });
}
