/** Who may log in: the users of the configuration, or the principals of access control. */
import type { Access, Identity } from "../../api.ts";
import type { Verifier } from "../../auth/mod.ts";

/** Who has logged in. */
export interface Account {
  identity: Identity;
  canWrite: boolean;
}

export interface Accounts {
  /** Of such a user, or "": log-ins of users that do not exist are delayed together. */
  known(name: string): string;
  /** Begins with what the first log-in would have to wait for. */
  warmUp(): void;
  /** For an unknown user one that no password fits, which takes as long to get. */
  verifierOf(name: string): Promise<Verifier>;
  /** Of a password in clear text; undefined if it is wrong. An unknown user takes as long as a wrong password. */
  withPassword(name: string, password: string): Account | undefined | Promise<Account | undefined>;
  /** Who has proved to know the password; undefined if there is no such user by now. */
  identify(name: string): Account | undefined;
}

export class AccessAccounts implements Accounts {
  constructor(private readonly access: Access, private readonly canWrite: boolean) {}

  known(name: string): string {
    return this.access.identify(name)?.name ?? "";
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
