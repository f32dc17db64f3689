/**
 * SCRAM-SHA-256: the data that a server stores for a password, and the check that a client knows the password without
 * revealing it.
 *
 *     SaltedPassword  = PBKDF2(HMAC-SHA-256, SASLprep(password), salt, iterations)
 *     ClientKey       = HMAC(SaltedPassword, "Client Key")
 *     StoredKey       = SHA-256(ClientKey)
 *     ServerKey       = HMAC(SaltedPassword, "Server Key")
 *     ClientProof     = ClientKey XOR HMAC(StoredKey, AuthMessage)
 *     ServerSignature = HMAC(ServerKey, AuthMessage)
 *
 * @see https://www.rfc-editor.org/rfc/rfc5802#section-3 and https://www.rfc-editor.org/rfc/rfc7677
 */
import { createHash, createHmac, pbkdf2, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { preparedPassword } from "./sasl-prep.ts";

const HASH = "sha256";
const HASH_SIZE_BYTES = 32;

/** Data to check a client's proof. It does not suffice to sign in. */
export interface Verifier {
  readonly salt: Uint8Array;
  readonly iterations: number;
  readonly storedKey: Uint8Array;
  readonly serverKey: Uint8Array;
}

/** Runs in a thread of the runtime's pool, because it takes milliseconds. */
export async function deriveVerifier(password: string, salt: Uint8Array, iterations: number): Promise<Verifier> {
  const prepared = await preparedPassword(password);
  const saltedPassword = await promisify(pbkdf2)(prepared, salt, iterations, HASH_SIZE_BYTES, HASH);
  return {
    salt,
    iterations,
    storedKey: createHash(HASH).update(hmac(saltedPassword, "Client Key")).digest(),
    serverKey: hmac(saltedPassword, "Server Key"),
  };
}

/** Checks a password that was sent in clear text. */
export async function isPasswordOf(password: string, { salt, iterations, storedKey }: Verifier): Promise<boolean> {
  const given = await deriveVerifier(password, salt, iterations);
  return timingSafeEqual(given.storedKey, storedKey);
}

/** A verifier for an unknown user. It looks like a real one and takes as long to check, but no proof matches it. */
export function mockVerifier(salt: Uint8Array, iterations: number): Verifier {
  // No ClientKey is known whose hash is all zeros.
  const none = new Uint8Array(HASH_SIZE_BYTES);
  return { salt, iterations, storedKey: none, serverKey: none };
}

/** The server's proof for the client; undefined if the client's proof is wrong. */
export function serverSignature(verifier: Verifier, authMessage: Uint8Array, clientProof: Uint8Array) {
  if (clientProof.length !== HASH_SIZE_BYTES) return undefined;
  const clientSignature = hmac(verifier.storedKey, authMessage);
  const clientKey = clientSignature.map((byte, index) => byte ^ clientProof[index]!);
  const isRight = timingSafeEqual(createHash(HASH).update(clientKey).digest(), verifier.storedKey);
  const signature = hmac(verifier.serverKey, authMessage);
  return isRight ? signature : undefined;
}

function hmac(key: Uint8Array, message: Uint8Array | string): Uint8Array {
  return createHmac(HASH, key).update(message).digest();
}
