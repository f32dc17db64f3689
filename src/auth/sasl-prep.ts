/** SASLprep: forms of the same text that keyboards and systems write differently become one. */

/**
 * The bytes of a password to be hashed. Text that SASLprep prohibits is taken as it is, as PostgreSQL and its clients do.
 * @see https://www.rfc-editor.org/rfc/rfc4013
 */
export async function preparedPassword(password: string): Promise<Uint8Array> {
  return new TextEncoder().encode(await prepare(password));
}

async function prepare(password: string): Promise<string> {
  // SASLprep changes no ASCII, so that most servers never load its tables.
  if (/^[\0-\x7f]*$/.test(password)) return password;
  const { saslprep } = await import("@mongodb-js/saslprep");
  try {
    return saslprep(password) || password;
  } catch {
    return password;
  }
}
