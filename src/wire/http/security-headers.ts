/** Headers of every answer that tell browsers what they may do with it. */
import type { HeaderList } from "../http1/mod.ts";

const COMMON: HeaderList = [
  ["x-content-type-options", "nosniff"],
  ["x-frame-options", "DENY"],
];

/** An answer is data: it is no script, runs none, and is shown in no frame. */
export function securityHeaders(): HeaderList {
  return [...COMMON, ["content-security-policy", "default-src 'none'; frame-ancestors 'none'"]];
}

/** The page of the console runs its own scripts, and styles that it makes itself with the reply's `nonce`. */
export function pageSecurityHeaders(nonce: string): HeaderList {
  const policy = [
    "default-src 'none'",
    `script-src 'self' 'nonce-${nonce}'`,
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return [...COMMON, ["content-security-policy", policy.join("; ")]];
}
