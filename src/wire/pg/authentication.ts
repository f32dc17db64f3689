/** Authenticates a client, by SCRAM or a password in clear text. */
import { randomBytes } from "node:crypto";
import { ProviderUnavailable, TooManyDerivations } from "../../auth/mod.ts";
import { isLoopback } from "../../config/mod.ts";
import { SQLSTATE } from "../../errors.ts";
import { type LogInDelays, TooManyWait } from "../log-in-delays.ts";
import type { Account, Accounts } from "./accounts.ts";
import type { PgOptions } from "./contract.ts";
import { FatalError, PG_SQLSTATE } from "./failure.ts";
import type { Input } from "./input.ts";
import { decodePassword, decodeSaslInitialResponse } from "./messages.ts";
import type { Output } from "./output.ts";
import { MECHANISM, ScramExchange } from "./scram.ts";

const PASSWORD_TYPE = 0x70, TERMINATE_TYPE = 0x58;
const NONCE_SIZE_BYTES = 18;
/** Details of the provider's answer are only logged. */
export const PROVIDER_UNAVAILABLE = "the identity provider is not available: try again later";

/** State shared by all log-ins of a server. */
export interface Gate {
  delays: LogInDelays;
  accounts: Accounts;
  options: PgOptions;
}

/** A log-in as `user` that is not authenticated yet. */
export interface Claim {
  user: string;
  input: Input;
  output: Output;
  address: Deno.NetAddr;
  isEncrypted: boolean;
}

/** The client's answer, before it is verified: the log-in may be delayed first. */
interface Answer {
  /** Differs for different wrong passwords. */
  guess: string;
  /** Verifies the answer. Undefined if the password is wrong. */
  check(): Account | undefined | Promise<Account | undefined>;
}

/**
 * Ends with AuthenticationOk in the output, not flushed. Undefined if the client has disconnected. @throws {FatalError}
 * to be sent to the client.
 */
export async function authenticate(claim: Claim, gate: Gate): Promise<Account | undefined> {
  const { user, output, address } = claim;
  const { delays, options, accounts } = gate;
  const proof = accounts.proofOf(user);
  // The identity provider checks a password only in clear text.
  const isClearText = options.authMethod === "password" || proof !== "local";
  const answer = await (isClearText ? askForPassword(claim, gate, proof) : askForProof(claim, accounts));
  if (answer === undefined) return undefined;
  const metrics = options.metrics?.wires.pg;
  const delayedUser = accounts.known(user);
  const before = delays.before(delayedUser, address.hostname);
  if (before !== undefined) metrics?.authenticationsDelayed.inc();
  if (before instanceof TooManyWait) {
    metrics?.authenticationsFailed.inc();
    throw new FatalError(
      `too many log-ins of user "${user}" from this address are waiting because of wrong passwords: try again later`,
      PG_SQLSTATE.tooManyConnections,
    );
  }
  await before;
  const account = await checked(answer);
  if (account === undefined) {
    metrics?.authenticationsFailed.inc();
    if (proof === "token") throw new FatalError("the token is not valid: sign in again", SQLSTATE.invalidPassword);
    delays.wrong(delayedUser, address.hostname, answer.guess);
    throw new FatalError(`password authentication failed for user "${user}"`, SQLSTATE.invalidPassword);
  }
  delays.right(delayedUser, address.hostname);
  const refusal = options.database.access?.refusalOf(account.identity, "pg");
  if (refusal !== undefined) {
    metrics?.authenticationsFailed.inc();
    throw new FatalError(refusal, SQLSTATE.insufficientPrivilege);
  }
  metrics?.authenticationsSucceeded.inc();
  output.authenticationOk();
  return account;
}

async function checked(answer: Answer): Promise<Account | undefined> {
  try {
    return await answer.check();
  } catch (error) {
    if (error instanceof ProviderUnavailable) throw new FatalError(PROVIDER_UNAVAILABLE, PG_SQLSTATE.cannotConnectNow);
    if (!(error instanceof TooManyDerivations)) throw error;
    throw new FatalError(error.message, PG_SQLSTATE.tooManyConnections);
  }
}

/** @throws {FatalError} before the client sends its password over a connection that is not encrypted. */
async function askForPassword(
  { user, input, output, address, isEncrypted }: Claim,
  { accounts, options }: Gate,
  proof: ReturnType<Accounts["proofOf"]>,
): Promise<Answer | undefined> {
  const isHidden = isEncrypted || isLoopback(address.hostname) || (options.allowsClearText ?? true);
  if (options.database.access !== undefined && !isHidden) {
    throw new FatalError(
      "passwords in clear text need TLS (acl.clear.text.passwords): connect with sslmode=require" +
        (proof === "local" ? ", or use SCRAM-SHA-256" : ""),
      PG_SQLSTATE.invalidAuthorization,
    );
  }
  output.authenticationCleartextPassword();
  await output.flush();
  if (!await nextPassword(input)) return undefined;
  const { password } = decodePassword(input.body);
  const check = () => proof === "token" ? accounts.withToken(password) : accounts.withPassword(user, password);
  return { guess: password, check };
}

async function askForProof({ user, input, output }: Claim, accounts: Accounts): Promise<Answer | undefined> {
  output.authenticationSasl([MECHANISM]);
  await output.flush();
  if (!await nextPassword(input)) return undefined;
  const { mechanism, data } = decodeSaslInitialResponse(input.body);
  if (mechanism !== MECHANISM) throw new FatalError(`only the mechanism ${MECHANISM} is supported: found ${mechanism}`);
  if (data === null) throw new FatalError(`${MECHANISM} begins with a message of the client, which is missing`);
  const nonce = randomBytes(NONCE_SIZE_BYTES).toString("base64");
  const exchange = new ScramExchange(data, await accounts.verifierOf(user), nonce);
  output.authenticationSaslContinue(exchange.serverFirst);
  await output.flush();
  if (!await nextPassword(input)) return undefined;
  const proof = exchange.readFinal(input.body.rest());
  return {
    // Equal wrong passwords cannot be recognised by their proofs, so each proof counts.
    guess: proof.text,
    check() {
      const serverFinal = proof.check();
      if (serverFinal === undefined) return undefined;
      output.authenticationSaslFinal(serverFinal);
      return accounts.identify(user);
    },
  };
}

/** Goes to the client's next answer; false if it disconnects. All answers have the same message type. */
async function nextPassword(input: Input): Promise<boolean> {
  if (!await input.fill()) return false;
  const type = input.next();
  if (type === TERMINATE_TYPE) return false;
  if (type !== PASSWORD_TYPE) throw new FatalError("a password is expected");
  return true;
}
