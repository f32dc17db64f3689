/** Asks a client for its password or the proof that it knows it. */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { SQLSTATE } from "../../errors.ts";
import { type LogInDelays, TooManyWait } from "../log-in-delays.ts";
import type { PgOptions } from "./contract.ts";
import { FatalError, PG_SQLSTATE } from "./failure.ts";
import type { Input } from "./input.ts";
import { decodePassword, decodeSaslInitialResponse } from "./messages.ts";
import type { Output } from "./output.ts";
import { MECHANISM, ScramExchange } from "./scram.ts";
import { findUser, type User, type Verifiers } from "./users.ts";

const PASSWORD_TYPE = 0x70, TERMINATE_TYPE = 0x58;
const NONCE_SIZE_BYTES = 18;

/** What all log-ins of a server share. */
export interface Gate {
  delays: LogInDelays;
  verifiers: Verifiers;
  options: PgOptions;
}

/** A client that claims to be `user`. */
export interface Claim {
  user: string;
  input: Input;
  output: Output;
  address: Deno.NetAddr;
}

/** What the client has said, before it is looked at: a wait may come first. */
interface Answer {
  /** Differs from one wrong password to the next. */
  guess: string;
  isRight(user: User | undefined): boolean;
}

/**
 * Ends with AuthenticationOk, which is not sent on yet. Undefined when the client went away.
 * @throws {FatalError} for the client to read.
 */
export async function authenticate(claim: Claim, gate: Gate): Promise<User | undefined> {
  const { user, output, address } = claim;
  const { delays, options } = gate;
  const answer =
    await (options.authMethod === "password" ? askForPassword(claim, options) : askForProof(claim, gate.verifiers));
  if (answer === undefined) return undefined;
  const metrics = options.metrics?.wires.pg;
  const delayedUser = findUser(user, options)?.name ?? "";
  const before = delays.before(delayedUser, address.hostname);
  if (before !== undefined) metrics?.authenticationsDelayed.inc();
  if (before instanceof TooManyWait) {
    metrics?.authenticationsFailed.inc();
    throw new FatalError(
      `too many log-ins of user "${user}" from this address wait, as passwords were wrong: try again later`,
      PG_SQLSTATE.tooManyConnections,
    );
  }
  await before;
  const known = findUser(user, options);
  if (!answer.isRight(known) || known === undefined) {
    delays.wrong(delayedUser, address.hostname, answer.guess);
    metrics?.authenticationsFailed.inc();
    throw new FatalError(`password authentication failed for user "${user}"`, SQLSTATE.invalidPassword);
  }
  delays.right(delayedUser, address.hostname);
  metrics?.authenticationsSucceeded.inc();
  output.authenticationOk();
  return known;
}

async function askForPassword({ input, output }: Claim, options: PgOptions): Promise<Answer | undefined> {
  output.authenticationCleartextPassword();
  await output.flush();
  const body = await nextPassword(input);
  if (body === undefined) return undefined;
  const { password } = decodePassword(body);
  // An unknown user takes as long as a wrong password.
  return { guess: password, isRight: (user) => isEqual(password, (user ?? options).password) && user !== undefined };
}

async function askForProof({ user, input, output }: Claim, verifiers: Verifiers): Promise<Answer | undefined> {
  output.authenticationSasl([MECHANISM]);
  await output.flush();
  const first = await nextPassword(input);
  if (first === undefined) return undefined;
  const { mechanism, data } = decodeSaslInitialResponse(first);
  if (mechanism !== MECHANISM) throw new FatalError(`${MECHANISM} is the one mechanism: found ${mechanism}`);
  if (data === null) throw new FatalError(`${MECHANISM} begins with a message of the client: found none`);
  const nonce = randomBytes(NONCE_SIZE_BYTES).toString("base64");
  const exchange = new ScramExchange(data, await verifiers.of(user), nonce);
  output.authenticationSaslContinue(exchange.serverFirst);
  await output.flush();
  const last = await nextPassword(input);
  if (last === undefined) return undefined;
  const proof = exchange.readFinal(last);
  return {
    // A proof does not tell whether its password is the same wrong one as before: each one counts.
    guess: proof.text,
    isRight() {
      const serverFinal = proof.check();
      if (serverFinal !== undefined) output.authenticationSaslFinal(serverFinal);
      return serverFinal !== undefined;
    },
  };
}

/** The body of the next answer to an authentication request; undefined when the client goes away. All have the same type. */
async function nextPassword(input: Input): Promise<Uint8Array | undefined> {
  if (!await input.fill()) return undefined;
  const { type, body } = input.next()!;
  if (type === TERMINATE_TYPE) return undefined;
  if (type !== PASSWORD_TYPE) throw new FatalError("a password is expected");
  return body;
}

/** The time it takes tells nothing of where the texts differ. */
function isEqual(given: string, wanted: string): boolean {
  const encoder = new TextEncoder();
  const expected = encoder.encode(wanted);
  const found = new Uint8Array(expected.length);
  const bytes = encoder.encode(given);
  found.set(bytes.subarray(0, expected.length));
  return timingSafeEqual(found, expected) && bytes.length === expected.length;
}
