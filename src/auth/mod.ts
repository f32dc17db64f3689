/** Passwords as the server keeps and checks them. Imports nothing of the other rooms. */
export { Derivations, TooManyDerivations } from "./derivations.ts";
export { deriveVerifier, isPasswordOf, mockVerifier, serverSignature, type Verifier } from "./scram.ts";
