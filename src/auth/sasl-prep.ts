/** SASLprep: normalizes text that keyboards and systems encode differently. */

/**
 * The bytes of a password to be hashed. Text that SASLprep prohibits is used unchanged, as in PostgreSQL and its
 * clients.
 * @see https://www.rfc-editor.org/rfc/rfc4013
 */
export async function preparedPassword(password: string): Promise<Uint8Array> {
  return new TextEncoder().encode(await prepare(password));
}

async function prepare(password: string): Promise<string> {
  // SASLprep does not change ASCII, so most servers never load its tables.
  if (/^[\0-\x7f]*$/.test(password)) return password;
  const { saslprep } = await import("@mongodb-js/saslprep");
  try {
    return saslprep(password) || password;
  } catch {
    return password;
  }
}
