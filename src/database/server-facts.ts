/** What functions that the server evaluates may ask: facts about the process, and about what a user sees. */
import type { ServerFacts } from "../sql/mod.ts";
import type { Catalogue } from "../storage/contract.ts";
import { visibleTables } from "./access/visible.ts";
import { type Core, SERVER } from "./core.ts";
import type { Asker } from "./statements.ts";

/** `catalogue`: the tables as the session sees them. */
export function serverFacts(
  { server, access, activity }: Core,
  catalogue: Catalogue,
  { identity, client }: Asker,
): ServerFacts {
  const sees = access === undefined || identity === SERVER
    ? catalogue
    : visibleTables(catalogue, access.rightsOf(identity));
  return {
    ...server,
    hasTable: (name) => sees.table(name) !== undefined,
    cancelQuery: (id, at) => activity.cancel(id, { identity, canWrite: client?.canWrite ?? true }, at),
  };
}
