/** The users of the configuration: who they are, and what is kept of their passwords. */
import { createHmac, randomBytes } from "node:crypto";
import { deriveVerifier, mockVerifier, type Verifier } from "../../auth/mod.ts";
import { DEFAULT_LIMITS, type PgOptions } from "./contract.ts";

const SALT_SIZE_BYTES = 16;

export interface User {
  name: string;
  password: string;
  canWrite: boolean;
}

/** As the configuration has them now: it may be reloaded. The first of a name counts. */
function usersOf(options: PgOptions): User[] {
  const users = [{
    name: options.user,
    password: options.password,
    canWrite: !(options.readOnly || options.isServerReadOnly),
  }];
  const { readonlyEnabled, readonlyUser, readonlyPassword } = options;
  if (readonlyEnabled && readonlyUser !== undefined && readonlyPassword !== undefined) {
    users.push({ name: readonlyUser, password: readonlyPassword, canWrite: false });
  }
  return users;
}

export function findUser(name: string, options: PgOptions): User | undefined {
  return usersOf(options).find((user) => user.name === name);
}

/** Verifiers of all users, derived once and again when a setting has changed. */
export class Verifiers {
  /** Salts depend on it and the user's name, so that those of unknown users look alike and stay the same as well. */
  private readonly secret = randomBytes(32);
  private derivedFrom = "";
  private derived = Promise.resolve(new Map<string, Verifier>());

  constructor(private readonly options: PgOptions) {}

  /** For an unknown user one that no password fits. Unknown users wait for a derivation as others do. */
  async of(name: string): Promise<Verifier> {
    const verifiers = await this.current();
    return verifiers.get(name) ?? mockVerifier(this.saltOf(name), this.iterations);
  }

  /** By the users' names. */
  async current(): Promise<Map<string, Verifier>> {
    const users = usersOf(this.options), { iterations } = this;
    const from = JSON.stringify([iterations, users.map(({ name, password }) => [name, password])]);
    if (from !== this.derivedFrom) {
      this.derivedFrom = from;
      this.derived = Promise.all(
        users.toReversed().map(async ({ name, password }) =>
          [name, await deriveVerifier(password, this.saltOf(name), iterations)] as const
        ),
      ).then((entries) => new Map(entries));
    }
    try {
      return await this.derived;
    } catch (error) {
      this.derivedFrom = ""; // the next log-in tries again
      throw error;
    }
  }

  private get iterations(): number {
    return this.options.scramIterations ?? DEFAULT_LIMITS.scramIterations;
  }

  private saltOf(name: string): Uint8Array {
    return createHmac("sha256", this.secret).update(name).digest().subarray(0, SALT_SIZE_BYTES);
  }
}
