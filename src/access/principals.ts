/** Users, groups and service accounts as stored: one record each, keyed by name. */
import { nameKey, sameName } from "../types/names.ts";
import type { Grant } from "./grants.ts";
import type { Permission } from "./permissions.ts";

export type PrincipalKind = "user" | "group" | "service account";

/** The stored form of a password: a SCRAM-SHA-256 verifier, with bytes in base64. */
export interface StoredVerifier {
  readonly salt: string;
  readonly iterations: number;
  readonly storedKey: string;
  readonly serverKey: string;
}

/** The stored form of a REST token. */
export interface StoredToken {
  /** SHA-256 of the token, in base64. A token is random, so one round suffices. */
  readonly hash: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  readonly ttlMs: number;
  /** Each use extends the expiry. */
  readonly refreshes: boolean;
}

/** A link to a service account. */
export interface Assumption {
  readonly account: string;
  readonly grantOption: boolean;
}

export interface Principal {
  /** "pending": no principal has the name yet. Grants to it apply once it exists. */
  readonly kind: PrincipalKind | "pending";
  readonly name: string;
  /** Distinguishes it from earlier principals of the same name. */
  readonly id?: string;
  readonly isEnabled: boolean;
  readonly verifier?: StoredVerifier;
  readonly tokens: readonly StoredToken[];
  readonly grants: readonly Grant[];
  /** Groups of a user. */
  readonly groups: readonly string[];
  /** Service accounts that the user, or the members of the group, may assume. */
  readonly assumes: readonly Assumption[];
  /** The group's name at the identity provider. */
  readonly externalAlias?: string;
}

export function newPrincipal(kind: Principal["kind"], name: string): Principal {
  return { kind, name, isEnabled: true, tokens: [], grants: [], groups: [], assumes: [] };
}

const NO_GRANTS: readonly Grant[] = [];

/** Grants are short arrays, because a database has many of them. */
type GrantRecord = [Permission, 0 | 1, table?: string, column?: string];

type PrincipalRecord = Omit<Partial<Principal>, "grants"> & Pick<Principal, "kind" | "name"> & {
  grants?: GrantRecord[];
};

export function encodePrincipal(principal: Principal): string {
  const { grants, tokens, groups, assumes, isEnabled, ...rest } = principal;
  const record: PrincipalRecord = {
    ...rest,
    ...isEnabled ? {} : { isEnabled },
    ...tokens.length > 0 ? { tokens } : {},
    ...groups.length > 0 ? { groups } : {},
    ...assumes.length > 0 ? { assumes } : {},
    ...grants.length > 0 ? { grants: grants.map(encodeGrant) } : {},
  };
  return JSON.stringify(record);
}

function encodeGrant({ permission, grantOption, table, column }: Grant): GrantRecord {
  const head = [permission, grantOption ? 1 : 0] as const;
  return column !== undefined ? [...head, table, column] : table !== undefined ? [...head, table] : [...head];
}

export function decodePrincipal(text: string): Principal {
  const { grants, ...rest } = JSON.parse(text) as PrincipalRecord;
  return {
    ...newPrincipal(rest.kind, rest.name),
    ...rest,
    grants: grants?.map(([permission, option, table, column]) => ({
      permission,
      grantOption: option === 1,
      table,
      column,
    })) ??
      NO_GRANTS,
  };
}

/** Names of principals are compared like those of tables. */
export const principalKey = nameKey;
export const samePrincipal = sameName;
