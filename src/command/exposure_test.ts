import assert from "node:assert/strict";
import { exposure } from "./exposure.ts";
import { configOf } from "./testing.ts";

const LOOPBACK = {
  "http.net.bind.to": "127.0.0.1:9000",
  "pg.net.bind.to": "[::1]:8812",
  "line.tcp.net.bind.to": "localhost:9009",
};
const PASSWORDS = { "http.user": "u", "http.password": "p", "pg.password": "p", "line.tcp.enabled": "false" };

const cases: { title: string; settings: Record<string, string>; said?: string[] }[] = [
  {
    title: "a fresh server",
    settings: {},
    said: [
      "open to every machine that can reach it: 0.0.0.0:9000 (HTTP, no password), " +
      "0.0.0.0:8812 (PostgreSQL wire, the default password), 0.0.0.0:9009 (line protocol, no password). " +
      "To close it: set http.user and http.password, set pg.password, set line.tcp.enabled=false, or bind to 127.0.0.1",
    ],
  },
  { title: "loopback addresses", settings: LOOPBACK },
  { title: "passwords everywhere", settings: { ...PASSWORDS, "tls.enabled": "true" } },
  {
    title: "a second user with the default password",
    settings: { ...PASSWORDS, "http.tls.enabled": "true", "pg.readonly.user.enabled": "true" },
    said: [
      "open to every machine that can reach it: 0.0.0.0:8812 (PostgreSQL wire, the default password). " +
      "To close it: set pg.readonly.password, or bind to 127.0.0.1",
    ],
  },
  {
    title: "listeners that are off, and one with an empty password",
    settings: {
      "http.enabled": "false",
      "line.tcp.enabled": "false",
      "pg.net.bind.to": "10.0.0.1:1",
      "pg.password": "",
    },
    said: [
      "open to every machine that can reach it: 10.0.0.1:1 (PostgreSQL wire, an empty password). " +
      "To close it: set pg.password, or bind to 127.0.0.1",
    ],
  },
  {
    title: "passwords in clear text",
    settings: { ...PASSWORDS, "pg.auth.method": "password", "http.health.check.authentication.required": "true" },
    said: [
      "passwords can cross the network in clear text, because TLS is not required: 0.0.0.0:9000 (HTTP). " +
      "To protect them: set http.tls.enabled=true, or bind to 127.0.0.1 behind a proxy with TLS",
      "passwords can cross the network in clear text, because TLS is not required: 0.0.0.0:8812 (PostgreSQL wire). " +
      "To protect them: set pg.auth.method=scram-sha-256, or pg.tls.enabled=true and pg.tls.required=true, or bind to 127.0.0.1",
      "passwords can cross the network in clear text, because TLS is not required: 0.0.0.0:9003 (health). " +
      "To protect them: set http.min.tls.enabled=true, or bind to 127.0.0.1",
    ],
  },
  {
    title: "passwords in clear text under TLS",
    settings: { ...PASSWORDS, "pg.auth.method": "password", "tls.enabled": "true", "pg.tls.required": "true" },
  },
  {
    title: "passwords in clear text where TLS is not required",
    settings: { ...PASSWORDS, "pg.auth.method": "password", "tls.enabled": "true" },
    said: [
      "passwords can cross the network in clear text, because TLS is not required: 0.0.0.0:8812 (PostgreSQL wire). " +
      "To protect them: set pg.auth.method=scram-sha-256, or pg.tls.enabled=true and pg.tls.required=true, or bind to 127.0.0.1",
    ],
  },
  {
    title: "passwords in clear text on loopback addresses",
    settings: { ...PASSWORDS, ...LOOPBACK, "pg.auth.method": "password" },
  },
  {
    title: "a health server that requires a password when no user has one",
    settings: { ...LOOPBACK, "http.health.check.authentication.required": "true" },
  },
];
for (const { title, settings, said } of cases) {
  Deno.test(`exposure() of ${title}`, () => assert.deepEqual(exposure(configOf(settings)), said ?? []));
}
