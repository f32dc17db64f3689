import { fileURLToPath } from "node:url";

/** A path relative to this folder as an absolute one. */
export function fromFileUrl(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
