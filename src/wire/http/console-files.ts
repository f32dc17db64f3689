/** The files of the web console: the page and what it loads. They are read once, at the start. */
import { join } from "node:path";

export interface Asset {
  contentType: string;
  bytes: Uint8Array;
  /** The same, compressed. */
  gzip: Uint8Array;
}

export interface ConsoleFiles {
  /** HTML. Each `{NONCE}` must be replaced by a nonce of the reply. */
  page: string;
  /** By name. The name changes with the content, so browsers may cache a file indefinitely. */
  assets: ReadonlyMap<string, Asset>;
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
};

/** Reads the directory that `scripts/console/build.ts` has written. Throws if a file is missing. */
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
