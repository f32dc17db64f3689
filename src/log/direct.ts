/**
 * Sends HTTP directly to an address on a separate connection. `fetch` would use the proxy that the environment names.
 */
import { Buffer } from "node:buffer";
import { request } from "node:http";
import type { Address } from "../config/mod.ts";

export interface DirectRequest {
  method: "GET" | "POST";
  path: string;
  headers: Record<string, string>;
  body?: string;
  timeoutMs: number;
  /**
   * Uses TLS. The certificate is not verified, because it names the host as others know it, not the address used here.
   */
  isSecure?: boolean;
}

/** Returns the status of the answer. @throws if there is none in time. */
export async function askDirectly({ hostname, port }: Address, asked: DirectRequest): Promise<number> {
  const { method, path, headers, body, timeoutMs, isSecure } = asked;
  const begin: typeof request = isSecure ? (await import("node:https")).request : request;
  return await new Promise((resolve, reject) => {
    const bytes = body === undefined ? undefined : Buffer.from(body);
    const size = bytes === undefined ? {} : { "content-length": String(bytes.length) };
    const to = { host: hostname, port, method, path, headers: { ...headers, ...size }, agent: false };
    const sent = begin(isSecure ? { ...to, rejectUnauthorized: false } as typeof to : to);
    const timer = setTimeout(() => sent.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    sent.once("response", (reply) => {
      // Only the status matters, so the rest of the reply is discarded.
      reply.on("error", () => {});
      reply.destroy();
      resolve(reply.statusCode ?? 0);
    });
    sent.once("error", reject);
    sent.once("close", () => {
      clearTimeout(timer);
      reject(new Error("the connection was closed without an answer"));
    });
    sent.end(bytes);
  });
}
