import assert from "node:assert/strict";
import { judge, type OriginRules } from "./origin.ts";

const RULES: OriginRules = { hostNames: ["db", "db.local"], corsOrigins: ["https://app.example.org"] };
const CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
const FOREIGN = "https://evil.example.org";

type Headers = Record<string, string>;
const ask = (headers: Headers, changes: boolean, method = "GET", rules = RULES) =>
  judge({ method, header: (name) => ({ host: "127.0.0.1:9000", ...headers })[name] ?? null }, () => rules, changes);

const mayChange: [title: string, headers: Headers][] = [
  ["curl", { "user-agent": "curl/8.5.0" }],
  ["a driver under a name that nobody knows", { host: "proxy.example.org", "user-agent": "Go-http-client/1.1" }],
  ["a script without a user agent", { host: "proxy.example.org" }],
  ["Node's fetch()", { "user-agent": "node", "sec-fetch-mode": "cors", "accept-language": "*" }],
  ["PowerShell", { "user-agent": "Mozilla/5.0 (Windows NT 10.0; Microsoft Windows 10.0; en-US) PowerShell/7.5.0" }],
  ["our page on localhost", { host: "localhost:9000", "sec-fetch-site": "same-origin", "user-agent": CHROME }],
  ["an address that was typed in", { "sec-fetch-site": "none", "user-agent": CHROME }],
  ["our page by another name of the machine", { host: "DB.local:9000", "user-agent": CHROME, "x-sundial-page": "1" }],
  ["our page in a browser without Sec-Fetch-Site", { origin: "http://127.0.0.1:9000", "user-agent": CHROME }],
  ["our page by IPv6", { host: "[::1]:9000", origin: "http://[::1]:9000" }],
  ["our page behind a proxy with TLS", { host: "db", origin: "https://db" }],
  ["our page behind a proxy that changes the host", { origin: "https://db", "sec-fetch-site": "same-origin" }],
  ["an origin that is listed", { origin: "https://app.example.org", "sec-fetch-site": "cross-site" }],
];
for (const [title, headers] of mayChange) {
  Deno.test(`judge() lets ${title} change data`, () => assert.equal(ask(headers, true).refusal, undefined));
}

const mayOnlyRead: [title: string, headers: Headers][] = [
  ["a fetch() of another site", { origin: FOREIGN, "sec-fetch-site": "cross-site", "user-agent": CHROME }],
  ["another port of this machine", { origin: "http://127.0.0.1:3000", "sec-fetch-site": "same-site" }],
  ["another port, without Sec-Fetch-Site", { origin: "http://127.0.0.1:3000" }],
  ["an image of another site", { "sec-fetch-site": "cross-site", "sec-fetch-dest": "image", "user-agent": CHROME }],
  ["an image in a browser without Sec-Fetch-Site", { referer: `${FOREIGN}/`, "user-agent": CHROME }],
  ["an image without a referrer", { "user-agent": CHROME }],
  ["a sandboxed page", { origin: "null", "user-agent": CHROME }],
  ["an origin that only begins like one that is listed", { origin: "https://app.example.org.evil.net" }],
];
for (const [title, headers] of mayOnlyRead) {
  Deno.test(`judge() lets ${title} read, and nothing else`, () => {
    assert.match(ask(headers, true).refusal!, /may not change data: http\.cors\.origins/);
    const read = ask(headers, false);
    assert.equal(read.refusal, undefined);
    // Without this header the browser does not let the page read the answer.
    assert.ok(!read.headers.some(([name]) => name === "access-control-allow-origin"));
  });
}

const foreignHosts = [
  "evil.example.org",
  "evil.example.org:9000",
  "localhost.evil.net",
  "127.0.0.1.evil.net",
  "db.net",
  "",
];
for (const host of foreignHosts) {
  Deno.test(`judge() refuses a browser with the Host ${host || "no host"}`, () => {
    const browsers: Headers[] = [
      { "user-agent": CHROME },
      { origin: `http://${host}`, "sec-fetch-site": "same-origin" },
    ];
    for (const headers of browsers) assert.match(ask({ ...headers, host }, false).refusal!, /http\.host\.names/);
  });
}

Deno.test("judge() answers preflights of listed origins only", () => {
  const preflight = (origin: string) =>
    ask(
      { origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization" },
      false,
      "OPTIONS",
    );
  assert.deepEqual(preflight("https://app.example.org"), {
    isPreflight: true,
    headers: [
      ["vary", "Origin"],
      ["access-control-allow-origin", "https://app.example.org"],
      ["access-control-allow-credentials", "true"],
      ["access-control-allow-methods", "GET, POST, OPTIONS"],
      ["access-control-max-age", "600"],
      ["access-control-allow-headers", "authorization"],
    ],
  });
  assert.deepEqual(preflight(FOREIGN), { headers: [["vary", "Origin"]] });
  assert.deepEqual(ask({ origin: FOREIGN }, false, "OPTIONS", { ...RULES, corsOrigins: [] }), { headers: [] });
});
