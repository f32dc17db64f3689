/** The name of a server, by which `stop` and `status` find it. */
import { DEFAULT_TAG, runningServer, Tags } from "../config/mod.ts";
import { ConfigError } from "../errors.ts";
import { logger } from "../log/mod.ts";
import type { CommandLine } from "./command-line.ts";

export const tagText = (tag: string) => tag === DEFAULT_TAG ? "" : `, tag ${tag}`;

/** Records the root of this tag. @throws {ConfigError} if a running server of another root has the tag. */
export function takeTag({ tag, root }: CommandLine): void {
  if (tag === DEFAULT_TAG) return;
  const tags = new Tags();
  const other = tags.root(tag);
  const server = other === undefined || other === root ? undefined : runningServer(other);
  if (server?.tag === tag) {
    throw new ConfigError("-t", `-t: process ${server.pid} already has the tag ${tag}, on ${other}`);
  }
  try {
    tags.keep(tag, root);
  } catch (error) {
    logger("server-main").advisory(
      `stop and status will need -d, because the tag could not be saved: ${(error as Error).message}`,
    );
  }
}
