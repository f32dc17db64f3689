/** How the server stores and checks passwords. Imports no other room. */
export { Derivations, TooManyDerivations } from "./derivations.ts";
export { deriveVerifier, isPasswordOf, mockVerifier, serverSignature, type Verifier } from "./scram.ts";
