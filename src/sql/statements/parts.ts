/** Parts that several statements share. */
import { SqlError } from "../../errors.ts";
import type { Name } from "../ast.ts";
import type { Path } from "../tree-nodes.ts";

/** A statement takes no schema but the one there is. */
export function onlyName(path: Path): Name {
  if (path.schema !== undefined && path.schema.text.toLowerCase() !== "public") {
    throw new SqlError(`Unknown schema ${path.schema.text}: tables are in public`, path.schema.at);
  }
  return path.name;
}
