/** Tests in a real browser what pages of other sites can do to a server. */
import assert from "node:assert/strict";
import { type Browser, chromium, type Page } from "playwright-core";
import { startServer, type TestServer } from "../server.ts";
import { BROWSER_ARGS, browserName, browserPath } from "./browser.ts";
import { run, watched } from "./visit.ts";

/** A name that an attacker's DNS server first resolves to the attacker's machine and then to ours. */
const REBINDING_HOST = "rebinding.example.org";
/** An accepted name without TLS, for which the browser sends no Sec-Fetch headers. */
const KNOWN_HOST = "db.example.org";

async function withBrowser(
  use: (browser: Browser, server: TestServer, hostile: string) => Promise<void>,
  env: Record<string, string> = {},
): Promise<void> {
  await using server = await startServer({ env: { SVC_HTTP_HOST_NAMES: KNOWN_HOST, ...env } });
  await server.exec("create table victim (secret varchar)");
  await server.exec("insert into victim values ('s3cret')");
  const site = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => new Response("<!doctype html><title>hostile</title>", { headers: { "content-type": "text/html" } }),
  );
  const rules = [REBINDING_HOST, KNOWN_HOST, "hostile.example.org"].map((host) => `MAP ${host} 127.0.0.1`);
  const browser = await chromium.launch({
    executablePath: browserPath,
    args: [...BROWSER_ARGS, `--host-resolver-rules=${rules.join(",")}`],
  });
  try {
    await use(browser, server, `http://hostile.example.org:${site.addr.port}/`);
  } finally {
    await browser.close();
    await site.shutdown();
  }
}

/** Ways in which a page can use a URL. Each returns what the page could read. */
const WAYS = {
  fetch: `async (url) => { try { return await (await fetch(url)).text() } catch (error) { return "blocked" } }`,
  blind: `async (url) => { try { return (await fetch(url, { mode: "no-cors" })).type } catch { return "blocked" } }`,
  image: `(url) => new Promise((done) => {
    const image = new Image();
    image.onload = image.onerror = ({ type }) => done(type);
    image.referrerPolicy = "no-referrer";
    image.src = url;
  })`,
  script: `(url) => new Promise((done) => {
    const script = document.createElement("script");
    script.onload = script.onerror = ({ type }) => done(type);
    script.src = url;
    document.head.append(script);
  })`,
  frame: `(url) => new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.onload = () => { try { done(frame.contentDocument?.body.innerText ?? "blocked") } catch { done("blocked") } };
    frame.src = url;
    document.body.append(frame);
  })`,
  form: `(url) => new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.name = "target" + Math.random();
    document.body.append(frame);
    const form = document.createElement("form");
    Object.assign(form, { method: "POST", action: url, enctype: "text/plain", target: frame.name });
    const input = document.createElement("input");
    Object.assign(input, { name: "form v", value: "1i" });
    form.append(input);
    document.body.append(form);
    frame.onload = () => done("sent");
    form.submit();
  })`,
  post: `async (url) => {
    try {
      const headers = { "content-type": "text/plain" };
      return (await fetch(url, { method: "POST", mode: "no-cors", headers, body: "post v=1i" })).type;
    } catch { return "blocked" }
  }`,
};

const doIt = (page: Page, way: keyof typeof WAYS, url: string): Promise<string> =>
  page.evaluate(`(${WAYS[way]})(${JSON.stringify(url)})`);

const execUrl = (server: TestServer, sql: string, host = "127.0.0.1") =>
  `http://${host}:${server.httpPort}/exec?${new URLSearchParams({ query: sql })}`;

async function tables(server: TestServer): Promise<unknown[]> {
  const { dataset } = await server.exec("select table_name from tables() order by 1");
  return dataset!.map(([name]) => name);
}

// The browser's connections sometimes outlive a test case.
const test = { ignore: browserName === undefined, sanitizeOps: false, sanitizeResources: false };

Deno.test({
  name: "a page of another site reads nothing and changes nothing, in any way that pages have",
  ...test,
  fn: () =>
    withBrowser(async (browser, server, hostile) => {
      const sites = [hostile, hostile.replace("hostile.example.org", "localhost")];
      const hosts = ["127.0.0.1", "localhost", KNOWN_HOST];
      for (const site of sites) {
        const page = watched(await browser.newPage());
        await page.goto(site);
        for (const host of hosts) {
          for (const way of ["fetch", "blind", "image", "script", "frame"] as const) {
            const seen = await doIt(page, way, execUrl(server, `create table by_${way} (x int)`, host));
            assert.doesNotMatch(seen, /ddl/, `${way} from ${site} to ${host}`);
            const read = await doIt(page, way, execUrl(server, "select secret from victim", host));
            assert.doesNotMatch(read, /s3cret/, `${way} from ${site} to ${host}`);
          }
          await doIt(page, "form", `http://${host}:${server.httpPort}/write`);
          await doIt(page, "post", `http://${host}:${server.httpPort}/write`);
        }
        await page.close();
      }
      assert.deepEqual(await tables(server), ["victim"]);
    }),
});

Deno.test({
  name: "a name that DNS rebinding makes mean this machine is not served",
  ...test,
  fn: () =>
    withBrowser(async (browser, server) => {
      const page = watched(await browser.newPage());
      const reply = await page.goto(`http://${REBINDING_HOST}:${server.httpPort}/index.html`);
      assert.equal(reply!.status(), 403);
      const refused = await reply!.text();
      assert.match(refused, /http\.host\.names/);
      // For the browser, a page of such a name has the same origin as the server.
      const read = await doIt(page, "fetch", execUrl(server, "select secret from victim", REBINDING_HOST));
      assert.match(read, /blocked|http\.host\.names/);
      await doIt(page, "post", `http://${REBINDING_HOST}:${server.httpPort}/write`);
      assert.deepEqual(await tables(server), ["victim"]);
    }),
});

Deno.test({
  name: "our own page works by address, localhost and a known name, and so do scripts under any name",
  ...test,
  fn: () =>
    withBrowser(async (browser, server) => {
      for (const [at, host] of ["127.0.0.1", "localhost", KNOWN_HOST].entries()) {
        const page = watched(await browser.newPage());
        await page.goto(`http://${host}:${server.httpPort}/`);
        assert.match(await run(page, `create table own_${at} (x int)`), /^OK/, host);
        await page.close();
      }
      const script = await fetch(execUrl(server, "create table by_script (x int)"), { headers: { host: "any.name" } });
      assert.deepEqual(await script.json(), { ddl: "OK" });
      assert.deepEqual(await tables(server), ["by_script", "own_0", "own_1", "own_2", "victim"]);
    }),
});

Deno.test({
  name: "a page of an origin in http.cors.origins reads and changes, with a log-in in a header too",
  ...test,
  fn: async () => {
    const site = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      () => new Response("<!doctype html>", { headers: { "content-type": "text/html" } }),
    );
    const origin = `http://localhost:${site.addr.port}`;
    try {
      await withBrowser(async (browser, server) => {
        const page = watched(await browser.newPage());
        await page.goto(origin);
        assert.match(await doIt(page, "fetch", execUrl(server, "create table listed (x int)")), /"ddl":"OK"/);
        assert.match(await doIt(page, "fetch", execUrl(server, "select secret from victim")), /s3cret/);
        const status = await page.evaluate(
          `fetch(${
            JSON.stringify(execUrl(server, "select 1"))
          }, { headers: { authorization: "Basic eDp5" } }).then(({ status }) => status)`,
        );
        assert.equal(status, 200);
      }, { SVC_HTTP_CORS_ORIGINS: `https://app.example.org,${origin}` });
    } finally {
      await site.shutdown();
    }
  },
});
