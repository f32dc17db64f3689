/**
 * Algorithms of signed tokens (JWT) that the server and the console accept: those with a public key. A symmetric key would be known to
 * everybody, because the client id is not secret.
 */
export const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
