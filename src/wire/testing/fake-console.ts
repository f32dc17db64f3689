/** A console of one script, for tests of the HTTP server. */
import { gzipSync } from "node:zlib";
import type { ConsoleFiles } from "../http/mod.ts";

const SCRIPT = new TextEncoder().encode("console.log(1);\n".repeat(100));

export const FAKE_CONSOLE: ConsoleFiles = {
  page: `<!doctype html><title>Sundial</title><script src="assets/main-1.js" nonce="{NONCE}"></script>`,
  assets: new Map([["main-1.js", {
    contentType: "text/javascript; charset=utf-8",
    bytes: SCRIPT,
    gzip: gzipSync(SCRIPT),
  }]]),
};
