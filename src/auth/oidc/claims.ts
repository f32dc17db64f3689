/** The user that a token's claims describe. */
import { ProviderUnavailable } from "./unavailable.ts";
import type { OidcSettings } from "./settings.ts";

export type Claims = Readonly<Record<string, unknown>>;

/** A user as the provider knows it. */
export interface ProviderUser {
  /** The claim of `acl.oidc.sub.claim`: the user's name in this database. */
  subject: string;
  /** The claim `name`: the name for people. */
  fullName: string | undefined;
  /** Names of groups at the provider. */
  groups: readonly string[];
  /** Milliseconds since 1970 at which the token expires, including the clock tolerance. Undefined if unknown. */
  expiresAtMs: number | undefined;
}

const NAME_LENGTH_MAX = 255;
/** Names are written to logs with one line for each entry, so control characters are refused. */
// deno-lint-ignore no-control-regex
const CONTROL = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/;

/**
 * @throws {ProviderUnavailable} if the claim with the name is unusable.
 */
export function claimsUser(
  claims: Claims,
  settings: Pick<OidcSettings, "subjectClaim" | "groupsClaim" | "clockToleranceMs">,
): ProviderUser {
  const { subjectClaim, groupsClaim, clockToleranceMs } = settings;
  const subject = claims[subjectClaim], { name, exp } = claims;
  if (!isName(subject)) {
    throw new ProviderUnavailable(
      `claim ${subjectClaim} (acl.oidc.sub.claim): expected a text of 1 to ${NAME_LENGTH_MAX} characters without control characters`,
    );
  }
  return {
    subject,
    fullName: isName(name) ? name : undefined,
    groups: groupsOf(claims[groupsClaim]),
    expiresAtMs: typeof exp === "number" ? exp * 1000 + clockToleranceMs : undefined,
  };
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= NAME_LENGTH_MAX && !CONTROL.test(value);
}

/** Some providers send a text for a single group. */
function groupsOf(claim: unknown): string[] {
  if (typeof claim === "string") return claim === "" ? [] : [claim];
  return Array.isArray(claim) ? claim.filter((group) => typeof group === "string") : [];
}
