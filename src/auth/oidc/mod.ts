/** Sign-on by OpenID Connect: the identity provider as the database sees it. */
export type { ProviderUser } from "./claims.ts";
export type { ProviderServer } from "./endpoints.ts";
export { authoritiesFault } from "./http.ts";
export { IdentityProvider, type Tokens } from "./provider.ts";
