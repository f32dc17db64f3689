/** Makes certificates for tests, by openssl. */
import { join } from "node:path";

/** Undefined without openssl; prints that the suite is skipped. */
export function authority(suite: string): Authority | undefined {
  try {
    return new Authority();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    console.log(`${suite}: skipped, as openssl is missing`);
  }
}

export class Authority {
  readonly directory = Deno.makeTempDirSync({ prefix: "sundial-certificates-" });
  readonly path = join(this.directory, "ca.pem");
  readonly #key = join(this.directory, "ca.key");

  constructor() {
    this.#openssl(
      "req",
      "-x509",
      ...newKey(this.#key),
      "-days",
      "30",
      "-subj",
      "/CN=test authority",
      "-out",
      this.path,
    );
  }

  /** Writes a certificate for localhost and its key, replacing existing ones. */
  issue(name: string, certPath: string, keyPath: string, days = 30): void {
    const request = join(this.directory, "request"), extensions = join(this.directory, "extensions");
    Deno.writeTextFileSync(extensions, "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
    this.#openssl("req", ...newKey(keyPath), "-subj", `/CN=${name}`, "-out", request);
    this.#openssl(
      ...["x509", "-req", "-in", request, "-CA", this.path, "-CAkey", this.#key, "-CAcreateserial"],
      ...["-days", String(days), "-extfile", extensions, "-out", certPath],
    );
  }

  #openssl(...args: string[]): void {
    const { success, stderr } = new Deno.Command("openssl", { args, stderr: "piped", stdout: "null" }).outputSync();
    if (!success) throw new Error(`openssl ${args[0]}: ${new TextDecoder().decode(stderr)}`);
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.directory, { recursive: true });
  }
}

function newKey(path: string): string[] {
  return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path];
}
