import type { Named, PrincipalKind } from "../../../access/mod.ts";
import { notSupported, SqlError, SQLSTATE } from "../../../errors.ts";
import { at, given, type Node, token, word } from "../../tree-nodes.ts";
import { accessKind, type AccessStatement } from "./access-kind.ts";

const TOKEN_COLUMNS = [
  { name: "name", type: "STRING" },
  { name: "token", type: "STRING" },
  { name: "expires_at", type: "TIMESTAMP" },
  { name: "refresh", type: "BOOLEAN" },
];

const UNIT_MS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

type Change = (principal: { of: PrincipalKind; name: Named }) => AccessStatement["command"];

export const alterPrincipal = accessKind({
  kind: "alterPrincipal",
  form: {
    words: ["ALTER"],
    grammar: String.raw`
  alterPrincipal = "ALTER" signingIn principal principalChange
  signingIn = "USER"                                     -- user
            | "SERVICE" "ACCOUNT"                        -- account
  principalChange = ("ENABLE" | "DISABLE")               -- enable
                  | "WITH" "PASSWORD" password           -- password
                  | "WITH" "NO" "PASSWORD"               -- noPassword
                  | "CREATE" "TOKEN" "TYPE" "JWK"        -- createJwk
                  | "DROP" "TOKEN" "TYPE" "JWK"          -- dropJwk
                  | "CREATE" "TOKEN" "TYPE" "REST" "WITH" "TTL" "<string>" "REFRESH"?  -- createToken
                  | "DROP" "TOKEN" "TYPE" "REST" "<string>"?  -- dropToken`,
    actions: {
      alterPrincipal(alter, of, principal, change): AccessStatement {
        const command = (change.tree() as Change)({ of: of.tree(), name: principal.tree() });
        return { kind: "alterPrincipal", at: at(alter), command };
      },
      signingIn_user: (_user): PrincipalKind => "user",
      signingIn_account: (_service, _account): PrincipalKind => "service account",
      principalChange_enable: (which): Change => (principal) => ({
        kind: word(which) as "enable" | "disable",
        ...principal,
      }),
      principalChange_password: (_with, _password, password): Change => (principal) => ({
        kind: "password",
        ...principal,
        password: password.tree(),
      }),
      principalChange_noPassword: (_with, _no, _password): Change => (principal) => ({
        kind: "dropPassword",
        ...principal,
      }),
      principalChange_createJwk(create, _token, _type, _jwk): Change {
        throw notSupported("a token of type JWK (which authenticates line protocol over TCP)", at(create));
      },
      principalChange_dropJwk(drop, _token, _type, _jwk): Change {
        throw notSupported("a token of type JWK (which authenticates line protocol over TCP)", at(drop));
      },
      principalChange_createToken:
        (_create, _token, _type, _rest, _with, _ttl, ttl, refresh): Change => (principal) => ({
          kind: "createToken",
          ...principal,
          ttlMs: ttlMsOf(ttl),
          refreshes: given(refresh),
        }),
      principalChange_dropToken: (_drop, _token, _type, _rest, dropped): Change => (principal) => ({
        kind: "dropToken",
        ...principal,
        token: given(dropped) ? namedToken(dropped.child(0)) : undefined,
      }),
    },
  },
  reference: {
    syntax: `ALTER USER | SERVICE ACCOUNT name ENABLE | DISABLE
ALTER USER | SERVICE ACCOUNT name WITH PASSWORD password | WITH NO PASSWORD
ALTER USER | SERVICE ACCOUNT name CREATE TOKEN TYPE REST WITH TTL '30d' [REFRESH]
ALTER USER | SERVICE ACCOUNT name DROP TOKEN TYPE REST ['token']`,
    summary: "Changes how a user or a service account signs in. A new token is returned once, as a row.",
  },
  requires: [
    "ENABLE USER",
    "DISABLE USER",
    "ADD PASSWORD",
    "REMOVE PASSWORD",
    "CREATE REST TOKEN",
    "DROP REST TOKEN",
  ],
  tag: "ALTER of users, groups and service accounts",
  tagOf: (command) => "of" in command ? `ALTER ${command.of.toUpperCase()}` : "ALTER",
  columns: ({ kind }) => kind === "createToken" ? TOKEN_COLUMNS : undefined,
});

const namedToken = (node: Node): Named => {
  const { text, at } = token(node);
  return { text, at };
};

function ttlMsOf(node: Node): number {
  const { text, at } = token(node);
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count === undefined) {
    throw new SqlError(`invalid TTL ${text}: expected a number and one of s, m, h, d`, at, SQLSTATE.invalidParameter);
  }
  return Number(count) * UNIT_MS[unit!]!;
}
