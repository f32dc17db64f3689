/** Headers of every answer that tell browsers what they may do with it. */
import { createHash } from "node:crypto";
import type { HeaderList } from "../http1/mod.ts";

/** An answer is data: it is no script, runs none, and is shown in no frame. */
const COMMON: HeaderList = [
  ["x-content-type-options", "nosniff"],
  ["x-frame-options", "DENY"],
];
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'";

/** `page`: the page that people see, whose own scripts and styles may run. Other answers have none. */
export function securityHeaders(page?: string): HeaderList {
  return [...COMMON, ["content-security-policy", page === undefined ? DATA_POLICY : pagePolicy(page)]];
}

function pagePolicy(page: string): string {
  return [
    "default-src 'none'",
    `script-src ${hashesOf(page, "script")}`,
    `style-src ${hashesOf(page, "style")}`,
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function hashesOf(page: string, element: string): string {
  const texts = [...page.matchAll(new RegExp(`<${element}>(.*?)</${element}>`, "gs"))].map(([, text]) => text);
  const hashes = texts.map((text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`);
  return hashes.length === 0 ? "'none'" : hashes.join(" ");
}
