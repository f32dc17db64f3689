/** Security headers of all answers. */
import type { HeaderList } from "./http1/mod.ts";

const COMMON: HeaderList = [
  ["x-content-type-options", "nosniff"],
  ["x-frame-options", "DENY"],
];

/** Answers are data, which browsers must not execute or show in a frame. */
export function securityHeaders(): HeaderList {
  return [...COMMON, ["content-security-policy", "default-src 'none'; frame-ancestors 'none'"]];
}

/**
 * The console's page may run its own scripts, and styles that it makes itself with the reply's `nonce`. `connectTo`: URLs
 * that it requests besides this server's.
 */
export function pageSecurityHeaders(nonce: string, connectTo: readonly string[] = []): HeaderList {
  const origins = new Set(connectTo.map((url) => new URL(url).origin));
  const policy = [
    "default-src 'none'",
    `script-src 'self' 'nonce-${nonce}'`,
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "font-src 'self'",
    ["connect-src 'self'", ...origins].join(" "),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  // URLs may contain statements, or the code of a sign-in.
  return [...COMMON, ["referrer-policy", "strict-origin"], ["content-security-policy", policy.join("; ")]];
}
