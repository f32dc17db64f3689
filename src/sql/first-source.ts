import type { Join, Source } from "./ast.ts";

/** The first of the sources that joins combine. */
export function firstSource(source: Source): Exclude<Source, Join> {
  let first = source;
  while (first.kind === "join") first = first.left;
  return first;
}
