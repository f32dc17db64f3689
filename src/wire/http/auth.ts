/** Basic authentication with the one user of the configuration. */
import type { Identity } from "../../door.ts";
import { equalInConstantTime } from "../passwords.ts";
import type { HttpConfig } from "./contract.ts";
import type { HttpRequest } from "./server/mod.ts";

const SCHEME = "Basic ";

export const ANONYMOUS: Identity = { name: "admin", groups: [] };

/** Who asks; undefined when credentials are needed and wrong. */
export function authenticate(request: HttpRequest, config: HttpConfig): Identity | undefined {
  if (config.user === "" || config.password === "") return ANONYMOUS;
  const header = request.header("authorization");
  if (header === undefined || !header.startsWith(SCHEME)) return undefined;
  const given = decodeBase64(header.slice(SCHEME.length));
  const wanted = `${config.user}:${config.password}`;
  return given !== undefined && equalInConstantTime(given, wanted) ? { name: config.user, groups: [] } : undefined;
}

function decodeBase64(text: string): string | undefined {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
