/** The certificates of all listeners, according to the settings. */
import type { Config } from "../../config/mod.ts";
import { ConfigError } from "../../errors.ts";
import { healthSettings } from "../health/settings.ts";
import { httpSettings } from "../http/settings.ts";
import { lineTcpSettings } from "../line-tcp/settings.ts";
import { pgSettings } from "../pg/settings.ts";
import { Certificate, type CertificateFiles, type CertificateLog } from "./certificate.ts";
import { tlsSettings } from "./settings.ts";

export type TlsListener = Exclude<keyof typeof tlsSettings, "shared">;

/** Listeners, and whether they are on. */
const LISTENERS = {
  http: httpSettings.enabled,
  health: healthSettings.enabled,
  pg: pgSettings.enabled,
  lineTcp: lineTcpSettings.enabled,
};

/** Interval of checking the files. A change is applied once the files have stayed the same for one interval. */
const CHECK_MS = 2000;

function servesTls(config: Config, listener: TlsListener): boolean {
  return config.get(tlsSettings[listener].enabled) ?? config.get(tlsSettings.shared.enabled);
}

/** Files of a listener's certificate. Undefined if TLS is off. @throws {ConfigError} if a file is not set */
function certificateFiles(config: Config, listener: TlsListener): CertificateFiles | undefined {
  if (!servesTls(config, listener)) return undefined;
  const [certPath, certSetting] = pathOf(config, listener, "cert");
  const [keyPath, keySetting] = pathOf(config, listener, "key");
  return { certPath, certSetting, keyPath, keySetting };
}

/** Reasons why listeners cannot serve TLS according to the settings. */
export function certificateFaults(config: Config): ConfigError[] {
  const faults = new Map<string, ConfigError>();
  if (config.get(pgSettings.enabled) && config.get(tlsSettings.pg.required) && !servesTls(config, "pg")) {
    const message = "pg.tls.required: no client could connect, because TLS is off: set pg.tls.enabled=true";
    faults.set(message, new ConfigError("pg.tls.required", message));
  }
  for (const [listener, isOn] of Object.entries(LISTENERS)) {
    if (!config.get(isOn)) continue;
    try {
      const files = certificateFiles(config, listener as TlsListener);
      if (files !== undefined) new Certificate(files, { advisory() {}, error() {} });
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      faults.set(error.message, error);
    }
  }
  return [...faults.values()];
}

function pathOf(config: Config, listener: TlsListener, name: "cert" | "key"): [path: string, setting: string] {
  const own = tlsSettings[listener][name], shared = tlsSettings.shared[name];
  const setting = config.get(own) === "" ? shared : own;
  const path = config.get(setting);
  if (path !== "") return [path, setting.key];
  const wire = LISTENERS[listener].key.replace(".enabled", "");
  throw new ConfigError(
    shared.key,
    `${shared.key}: found an empty value, expected a PEM file, because TLS is on for ${wire}`,
  );
}

/** Holds one certificate for each pair of files, shared by all listeners that use it. */
export class Certificates {
  readonly #byFiles = new Map<string, Certificate>();
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(private readonly config: Config, private readonly log: CertificateLog) {
    this.#timer = setInterval(() => {
      for (const certificate of this.#byFiles.values()) certificate.check();
    }, CHECK_MS);
    Deno.unrefTimer(this.#timer as unknown as number);
  }

  /** Undefined if the listener has no TLS. @throws {ConfigError} */
  of(listener: TlsListener): Certificate | undefined {
    const files = certificateFiles(this.config, listener);
    if (files === undefined) return undefined;
    const name = JSON.stringify([files.certPath, files.keyPath]);
    let certificate = this.#byFiles.get(name);
    if (certificate === undefined) this.#byFiles.set(name, certificate = new Certificate(files, this.log));
    return certificate;
  }

  /** Reads all files again. Returns true if one has changed. */
  reload(): boolean {
    let hasChanged = false;
    for (const certificate of this.#byFiles.values()) hasChanged = certificate.reload() || hasChanged;
    return hasChanged;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
