/** Basic authentication with the one user of the configuration. */
import type { Identity } from "../../door.ts";
import { equalInConstantTime } from "../passwords.ts";
import type { HttpConfig } from "./contract.ts";
import type { Sessions } from "./sessions.ts";

const SCHEME = "Basic ";

export const ANONYMOUS: Identity = { name: "admin", groups: [] };

/** Who asks, and by which session's token if by one; undefined when credentials are needed and wrong. */
export function authenticate(
  request: Request,
  config: HttpConfig,
  sessions: Sessions,
): { identity: Identity; token?: string } | undefined {
  if (config.user === "" || config.password === "") return { identity: ANONYMOUS };
  const header = request.headers.get("authorization");
  if (header === null) return sessions.identify(request.headers.get("cookie") ?? undefined);
  if (!header.startsWith(SCHEME)) return undefined;
  const given = decodeBase64(header.slice(SCHEME.length));
  const wanted = `${config.user}:${config.password}`;
  if (given === undefined || !equalInConstantTime(given, wanted)) return undefined;
  return { identity: { name: config.user, groups: [] } };
}

function decodeBase64(text: string): string | undefined {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
