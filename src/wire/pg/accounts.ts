/** The accounts that can log in: users of the configuration, or principals of access control. */
import type { Access, Identity } from "../../api.ts";
import type { Verifier } from "../../auth/mod.ts";

/** A logged-in user. */
export interface Account {
  identity: Identity;
  canWrite: boolean;
}

export interface Accounts {
  /** The name if there is such a user, otherwise "", so that log-ins of all unknown users are delayed together. */
  known(name: string): string;
  /** Starts the computation that the first log-in needs. */
  warmUp(): void;
  /** For an unknown user, a verifier that no password matches, which takes as long to compute. */
  verifierOf(name: string): Promise<Verifier>;
  /** How a client authenticates as this user. */
  proofOf(name: string): ReturnType<Access["proofOf"]>;
  /** Verifies a token in place of a password. @throws {ProviderUnavailable} */
  withToken(token: string): Promise<Account | undefined>;
  /** Verifies a password in clear text. Undefined if it is wrong. An unknown user takes as long as a wrong password. */
  withPassword(name: string, password: string): Account | undefined | Promise<Account | undefined>;
  /** The account after a successful proof. Undefined if the user no longer exists. */
  identify(name: string): Account | undefined;
}

export class AccessAccounts implements Accounts {
  constructor(private readonly access: Access, private readonly canWrite: boolean) {}

  known(name: string): string {
    return this.access.knownName(name);
  }

  proofOf(name: string): ReturnType<Access["proofOf"]> {
    return this.access.proofOf(name);
  }

  async withToken(token: string): Promise<Account | undefined> {
    const identity = await this.access.withToken(token);
    // REST tokens of this database are accepted only over HTTP.
    return identity?.external === undefined ? undefined : this.accountOf(identity);
  }

  warmUp(): void {}

  verifierOf(name: string): Promise<Verifier> {
    return this.access.verifierOf(name);
  }

  async withPassword(name: string, password: string): Promise<Account | undefined> {
    return this.accountOf(await this.access.withPassword(name, password));
  }

  identify(name: string): Account | undefined {
    return this.accountOf(this.access.identify(name));
  }

  private accountOf(identity: Identity | undefined): Account | undefined {
    return identity && { identity, canWrite: this.canWrite };
  }
}
