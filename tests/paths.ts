import { fileURLToPath } from "node:url";

/** Absolute path of a path relative to this folder. */
export function fromFileUrl(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
