/** The start-up of a connection after encryption: protocol version and authentication. */
import type { Identity } from "../../api.ts";
import { SQLSTATE } from "../../errors.ts";
import { authenticate, type Gate } from "./authentication.ts";
import { FatalError, PG_SQLSTATE } from "./failure.ts";
import type { Input } from "./input.ts";
import { decodeStartUp, type StartUp } from "./messages.ts";
import type { Output } from "./output.ts";
import { SessionSettings } from "./session-settings.ts";

/** Limit of the messages before a password. */
export const START_UP_SIZE_MAX = 10_000;
/** Maximum size of passwords, as in PostgreSQL. Tokens with many groups have some KiB. */
const PASSWORD_SIZE_MAX = 65_535;
const VERSION_3_0 = 3 << 16;

export interface LogIn {
  identity: Identity;
  canWrite: boolean;
  settings: SessionSettings;
}

type Cancel = Extract<StartUp, { tag: "cancel" }>;

/**
 * Handles messages until the client is authenticated. The caller sends ParameterStatus and the rest. Undefined if the
 * client has disconnected.
 * @throws {FatalError} to be sent to the client.
 */
export async function startUp(
  input: Input,
  output: Output,
  address: Deno.NetAddr,
  gate: Gate,
  isEncrypted: boolean,
): Promise<LogIn | Cancel | undefined> {
  if (!await input.fill()) return undefined;
  input.next();
  const message = decodeStartUp(input.body);
  switch (message.tag) {
    case "sslRequest":
    case "gssRequest":
      throw new FatalError("the connection is already encrypted: expected a start-up message");
    case "cancel":
      // Allowed without TLS even if it is required, as in PostgreSQL: most clients cancel without it.
      return message;
    case "startUp":
      if (gate.options.requiresTls && !isEncrypted) {
        throw new FatalError(
          "this server requires TLS (pg.tls.required): connect with sslmode=require or stricter",
          PG_SQLSTATE.invalidAuthorization,
        );
      }
      return await logIn(message, input, output, address, gate, isEncrypted);
  }
}

async function logIn(
  { major, minor, parameters }: Extract<StartUp, { tag: "startUp" }>,
  input: Input,
  output: Output,
  address: Deno.NetAddr,
  gate: Gate,
  isEncrypted: boolean,
): Promise<LogIn | undefined> {
  if (major !== 3) {
    throw new FatalError(`protocol ${major}.${minor} is not supported: expected 3.0`, SQLSTATE.featureNotSupported);
  }
  input.endStartUp(PASSWORD_SIZE_MAX);
  const unknownOptions = [...parameters.keys()].filter((name) => name.startsWith("_pq_."));
  if (minor > 0 || unknownOptions.length > 0) output.negotiateProtocolVersion(VERSION_3_0, unknownOptions);
  const user = parameters.get("user") ?? "";
  if (user === "" && gate.accounts.proofOf(user) !== "token") {
    throw new FatalError("the start-up message names no user", PG_SQLSTATE.invalidAuthorization);
  }
  const known = await authenticate({ user, input, output, address, isEncrypted }, gate);
  if (known === undefined) return undefined;
  const settings = settingsOf(parameters);
  return {
    identity: known.identity,
    canWrite: known.canWrite,
    settings,
  };
}

function settingsOf(parameters: Map<string, string>): SessionSettings {
  try {
    return new SessionSettings(parameters);
  } catch (cause) {
    throw new FatalError((cause as Error).message, SQLSTATE.invalidParameter);
  }
}

/** Parameters sent to every client, in this order. Drivers read version, encoding and date style from them. */
export function parameterStatuses(applicationName = ""): [name: string, value: string][] {
  return [
    ["TimeZone", "GMT"],
    ["application_name", applicationName],
    ["server_version", "11.3"],
    ["integer_datetimes", "on"],
    ["client_encoding", "UTF8"],
    ["standard_conforming_strings", "on"],
    ["DateStyle", "ISO, YMD"],
    ["questdb_version", "9.3.4"],
  ];
}
