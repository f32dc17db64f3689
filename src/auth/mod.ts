/** Passwords as the server keeps and checks them. Imports nothing of the other rooms. */
export { deriveVerifier, mockVerifier, serverSignature, type Verifier } from "./scram.ts";
