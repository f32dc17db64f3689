/** The files of the web console: its page, and what the page loads. They are read once, at the start. */
import { join } from "node:path";

export interface Asset {
  contentType: string;
  bytes: Uint8Array;
  /** The same, compressed. */
  gzip: Uint8Array;
}

export interface ConsoleFiles {
  /** HTML. Each `{NONCE}` in it is to be replaced by a nonce of the reply. */
  page: string;
  /** By name. A name changes with the content, so browsers may keep a file for ever. */
  assets: ReadonlyMap<string, Asset>;
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
};

/** Reads the directory that `scripts/console/build.ts` has written. Throws when a file is missing. */
export function loadConsole(directory: string): ConsoleFiles {
  const assets = new Map<string, Asset>();
  for (const { name } of Deno.readDirSync(directory)) {
    const contentType = CONTENT_TYPES[name.slice(name.lastIndexOf(".") + 1)];
    if (contentType === undefined) continue;
    const path = join(directory, name);
    assets.set(name, { contentType, bytes: Deno.readFileSync(path), gzip: Deno.readFileSync(`${path}.gz`) });
  }
  return { page: Deno.readTextFileSync(join(directory, "index.html")), assets };
}
