/** A server with access control and sign-on by a test's provider. */
import { type ProtectedServer, startProtected } from "../access/server.ts";
import { until } from "../programs.ts";
import { CLIENT_ID, type TestProvider } from "./provider.ts";

export const DISCOVERY = "/.well-known/openid-configuration";

export function startSignOn(
  { issuer }: Pick<TestProvider, "issuer">,
  env: Record<string, string> = {},
): Promise<ProtectedServer> {
  return startProtected({
    SVC_ACL_OIDC_ENABLED: "true",
    SVC_ACL_OIDC_CONFIGURATION_URL: issuer + DISCOVERY,
    SVC_ACL_OIDC_CLIENT_ID: CLIENT_ID,
    SVC_ACL_OIDC_SCOPE: "openid profile groups",
    ...env,
  });
}

export const bearer = (token: string) => `Bearer ${token}`;

/** Waits until the server has printed a line: its log is written a moment after the answer. */
export async function logged({ output }: Pick<ProtectedServer, "output">, line: RegExp): Promise<void> {
  await until(`the log has ${line}`, () => Promise.resolve(line.test(output())));
}
