/** How the server stores and checks passwords. `oidc/` is the identity provider. */
export { Derivations, TooManyDerivations } from "./derivations.ts";
export { ProviderStatistics } from "./oidc/statistics.ts";
export { ProviderUnavailable } from "./oidc/unavailable.ts";
export { deriveVerifier, isPasswordOf, mockVerifier, serverSignature, type Verifier } from "./scram.ts";
