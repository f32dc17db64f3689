/** A certificate and its key, read from PEM files and replaceable while connections are open. */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import { ConfigError } from "../../errors.ts";
import { shownText } from "../../log/mod.ts";
import type { ByteConnection } from "../byte-connection.ts";
import { secure, type SecureConnection, type SecureOptions } from "./connection.ts";

export interface CertificateFiles {
  certPath: string;
  keyPath: string;
  /** Names of the settings, for messages. */
  certSetting: string;
  keySetting: string;
}

export interface CertificateLog {
  advisory(message: string): void;
  error(message: string): void;
}

/** The log warns when the certificate expires within this time. */
const WARNING_MS = 14 * 86_400_000;

export interface Pem {
  cert: string;
  key: string;
}

export function contextOf({ cert, key }: Pem): SecureContext {
  return createSecureContext({ cert, key, minVersion: "TLSv1.2" });
}

interface Loaded {
  context: SecureContext;
  pem: Pem;
  endsAtMs: number;
}

export class Certificate {
  #loaded: Loaded;
  /** State of both files when they were last checked. */
  #seen: string;
  /** True if the files have changed and the change may be incomplete. */
  #isSettling = false;
  readonly #onChange: (() => void)[] = [];

  /** @throws {ConfigError} */
  constructor(readonly files: CertificateFiles, private readonly log: CertificateLog) {
    this.#seen = this.#state();
    this.#loaded = load(files);
    const { endsAtMs } = this.#loaded;
    // An expired certificate does not prevent the start, as not every client checks it.
    if (endsAtMs < Date.now()) log.error(`${files.certSetting}: ${files.certPath} ${expired(endsAtMs)}`);
    else this.#log();
  }

  /** Starts TLS on an accepted connection. */
  secure(connection: ByteConnection, options?: SecureOptions): SecureConnection {
    return secure(connection, this.#loaded.context, options);
  }

  /** PEM of certificate and key, for a thread that serves TLS itself. */
  get pem(): Pem {
    return this.#loaded.pem;
  }

  /** Calls `listener` whenever there is a new certificate. */
  onChange(listener: () => void): void {
    this.#onChange.push(listener);
  }

  /**
   * Reads the files again. An error is logged, and the old certificate stays in use. Returns true if there is a new
   * one.
   */
  reload(): boolean {
    const { files } = this;
    try {
      const loaded = load(files);
      const { cert, key } = this.#loaded.pem;
      if (loaded.pem.cert === cert && loaded.pem.key === key) return false;
      if (loaded.endsAtMs < Date.now()) {
        throw new ConfigError(files.certSetting, `${files.certSetting}: ${files.certPath} ${expired(loaded.endsAtMs)}`);
      }
      this.#loaded = loaded;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.log.error(`the previous certificate stays in use: ${error.message}`);
      return false;
    }
    for (const listener of this.#onChange) listener();
    this.#log();
    return true;
  }

  /** Reloads changed files once they are the same in two consecutive calls. */
  check(): void {
    const state = this.#state();
    if (state !== this.#seen) {
      this.#seen = state;
      this.#isSettling = true;
    } else if (this.#isSettling) {
      this.#isSettling = false;
      this.reload();
    }
  }

  #state(): string {
    return [this.files.certPath, this.files.keyPath].map(stateOf).join();
  }

  #log(): void {
    const { endsAtMs } = this.#loaded;
    const soon = endsAtMs - Date.now() < WARNING_MS ? ", which is soon" : "";
    this.log.advisory(`certificate ${shownText(this.files.certPath)} is valid until ${dayOf(endsAtMs)}${soon}`);
  }
}

const dayOf = (timeMs: number) => new Date(timeMs).toISOString().replace(".000Z", "Z");
const expired = (endsAtMs: number) => `expired at ${dayOf(endsAtMs)}`;

function stateOf(path: string): string {
  try {
    const { ino, mtime, size } = Deno.statSync(path);
    return `${ino} ${mtime?.getTime()} ${size}`;
  } catch {
    return "none";
  }
}

/** @throws {ConfigError} that names the bad file */
function load({ certPath, keyPath, certSetting, keySetting }: CertificateFiles): Loaded {
  const cert = readText(certSetting, certPath), key = readText(keySetting, keyPath);
  const certificates = certificatesOf(cert, certSetting, certPath);
  const privateKey = privateKeyOf(key, keySetting, keyPath);
  const [leaf] = certificates;
  if (!leaf!.checkPrivateKey(privateKey)) {
    throw new ConfigError(
      keySetting,
      `${keySetting}: the key in ${keyPath} does not belong to the certificate in ${certPath}`,
    );
  }
  const startsAtMs = Math.max(...certificates.map(({ validFrom }) => Date.parse(validFrom)));
  if (startsAtMs > Date.now()) {
    throw new ConfigError(certSetting, `${certSetting}: ${certPath} is not valid before ${dayOf(startsAtMs)}`);
  }
  return {
    context: contextOf({ cert, key }),
    pem: { cert, key },
    endsAtMs: Math.min(...certificates.map(({ validTo }) => Date.parse(validTo))),
  };
}

function readText(setting: string, path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    const reason = error instanceof Deno.errors.NotFound ? "the file does not exist" : (error as Error).message;
    throw new ConfigError(setting, `${setting}: ${path} cannot be read: ${reason}`);
  }
}

/** The server's certificate first, then the intermediate ones. */
function certificatesOf(pem: string, setting: string, path: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [];
  try {
    if (blocks.length > 0) return blocks.map((block) => new X509Certificate(block));
  } catch {
    // reported below
  }
  throw new ConfigError(setting, `${setting}: ${path} has no certificate in PEM (-----BEGIN CERTIFICATE-----)`);
}

function privateKeyOf(pem: string, setting: string, path: string): KeyObject {
  if (/^-----BEGIN ENCRYPTED|^Proc-Type: 4,ENCRYPTED/m.test(pem)) {
    throw new ConfigError(setting, `${setting}: the key in ${path} is encrypted: expected one without a password`);
  }
  try {
    return createPrivateKey(pem);
  } catch {
    throw new ConfigError(setting, `${setting}: ${path} has no private key in PEM (PKCS#8, PKCS#1 or SEC1)`);
  }
}
