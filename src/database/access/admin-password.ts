/** The administrator's password that the offline command sets. It replaces acl.admin.password. */
import { randomBytes } from "node:crypto";
import type { StoredVerifier } from "../../access/mod.ts";
import { deriveVerifier } from "../../auth/mod.ts";
import { openStorage } from "../../storage/mod.ts";
import { ADMIN_VERIFIER } from "./control.ts";
import { encodeVerifier } from "./sign-in.ts";

const HEAP_BYTES = 256 << 20;
const SALT_SIZE_BYTES = 16;

export interface AdminVerifier extends StoredVerifier {
  /** Time in ISO 8601. */
  setAt: string;
}

/** Sets the password. Undefined restores acl.admin.password. @throws {ConfigError} while a server runs on the root. */
export async function setAdminPassword(root: string, password: string | undefined, iterations: number): Promise<void> {
  const verifier = password === undefined
    ? undefined
    : encodeVerifier(await deriveVerifier(password, randomBytes(SALT_SIZE_BYTES), iterations));
  const { catalogue, writer } = await openStorage({ root, heapSizeBytes: HEAP_BYTES, inProcess: true });
  try {
    const before = catalogue.access.records.get(ADMIN_VERIFIER) ?? null;
    const after = verifier === undefined
      ? null
      : JSON.stringify({ ...verifier, setAt: new Date().toISOString() } satisfies AdminVerifier);
    await writer.changeAccess([{ key: ADMIN_VERIFIER, before, after }]);
  } finally {
    await writer.close();
  }
}
