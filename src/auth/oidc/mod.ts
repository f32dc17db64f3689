/** Sign-on by OpenID Connect: the interface of the identity provider for the database. */
export type { ProviderUser } from "./claims.ts";
export type { ProviderServer } from "./endpoints.ts";
export { authoritiesFault } from "./http.ts";
export { IdentityProvider, type Tokens } from "./provider.ts";
