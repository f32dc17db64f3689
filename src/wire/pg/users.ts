/** The users of the configuration, if access control is off. */
import { createHmac, randomBytes } from "node:crypto";
import { deriveVerifier, mockVerifier, type Verifier } from "../../auth/mod.ts";
import { equalInConstantTime } from "../passwords.ts";
import type { Account, Accounts } from "./accounts.ts";
import { DEFAULT_LIMITS, type PgOptions } from "./contract.ts";

const SALT_SIZE_BYTES = 16;

interface User {
  name: string;
  password: string;
  canWrite: boolean;
}

/** The current users, because the configuration may be reloaded. The first one of a name applies. */
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

export class ConfiguredAccounts implements Accounts {
  /**
   * Salts are derived from the secret and the user's name, so that salts of unknown users look like real ones and do
   * not change.
   */
  private readonly secret = randomBytes(32);
  private derivedFrom = "";
  private derived = Promise.resolve(new Map<string, Verifier>());

  constructor(private readonly options: PgOptions) {}

  known(name: string): string {
    return this.find(name)?.name ?? "";
  }

  warmUp(): void {
    // The first log-in waits for the derivation, and repeats and reports a failure.
    if (this.options.authMethod !== "password") this.current().catch(() => {});
  }

  identify(name: string): Account | undefined {
    const user = this.find(name);
    return user && { identity: { name: user.name }, canWrite: user.canWrite };
  }

  proofOf(): "local" {
    return "local";
  }

  withToken(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  withPassword(name: string, password: string): Account | undefined {
    const wanted = (this.find(name) ?? this.options).password;
    return equalInConstantTime(password, wanted) ? this.identify(name) : undefined;
  }

  private find(name: string): User | undefined {
    return usersOf(this.options).find((user) => user.name === name);
  }

  /** Unknown users wait for a derivation as others do. */
  async verifierOf(name: string): Promise<Verifier> {
    const verifiers = await this.current();
    return verifiers.get(name) ?? mockVerifier(this.saltOf(name), this.iterations);
  }

  /** Verifiers by user name. Derived once, and again when a setting has changed. */
  private async current(): Promise<Map<string, Verifier>> {
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
