/** Names of servers: `stop -t TAG` and `status -t TAG` find the root of a server that the same user started. */
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { ConfigError } from "../errors.ts";
import { unlessMissing } from "../paths.ts";

/** The tag of servers without an explicit one. It is not recorded, because any number of servers has it. */
export const DEFAULT_TAG = "sundial";

/** Tags become names of files and services. @throws {ConfigError} */
export function checkTag(tag: string): void {
  if (/^[A-Za-z0-9][\w.-]{0,63}$/.test(tag)) return;
  throw new ConfigError("-t", `-t: found "${tag}", expected letters, digits, _, - and .`);
}

/** One file for each tag, with the path of the root. The root's lock determines whether a server runs there. */
export class Tags {
  constructor(readonly directory: string = defaultDirectory()) {}

  keep(tag: string, root: string): void {
    if (tag === DEFAULT_TAG) return;
    Deno.mkdirSync(this.directory, { recursive: true, mode: 0o700 });
    if (!isOurs(this.directory)) throw new Error(`${this.directory} belongs to another user`);
    Deno.writeTextFileSync(join(this.directory, tag), root);
  }

  root(tag: string): string | undefined {
    return unlessMissing(() => isOurs(this.directory) ? Deno.readTextFileSync(join(this.directory, tag)) : undefined);
  }
}

function defaultDirectory(): string {
  const runtime = Deno.env.get("XDG_RUNTIME_DIR");
  return runtime ? join(runtime, "sundial") : join(tmpdir(), `sundial-tags-${userInfo().username}`);
}

/** Any user can create a directory in /tmp, and its contents would determine which process `stop` ends. */
function isOurs(directory: string): boolean {
  return Deno.build.os === "windows" || Deno.lstatSync(directory).uid === Deno.uid();
}
