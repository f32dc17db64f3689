/** Requests to the identity provider: bounded in time and size, without redirects, counted. */
import { ConfigError } from "../../errors.ts";
import { type OidcSettings, oidcSettings } from "./settings.ts";
import { ProviderUnavailable } from "./unavailable.ts";

/** Maximum size of an answer. Documents of providers have some KiB. */
const ANSWER_SIZE_MAX = 256 * 1024;
/** Maximum number of concurrent requests. */
const REQUESTS_MAX = 64;

/** Kinds of requests, which metrics count separately. */
export type Request = "discovery" | "keys" | "userinfo" | "token";

export interface ProviderWatch {
  /**
   * Called after each request. `failure` is set if the provider is down, too slow, or answers with an error of its own.
   */
  onRequest(kind: Request, seconds: number, failure: string | undefined): void;
}

/** The error in the file of authorities, if any. */
export function authoritiesFault({ authorities }: Pick<OidcSettings, "authorities">): ConfigError | undefined {
  const { key } = oidcSettings.authorities;
  try {
    readAuthorities(authorities);
  } catch (error) {
    return new ConfigError(key, `${key}: ${(error as Error).message}`);
  }
}

function readAuthorities(path: string): string[] {
  if (path === "") return [];
  const text = Deno.readTextFileSync(path);
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g);
  if (certificates === null) throw new Error(`no certificate in ${path}: expected a PEM file of certificates`);
  return certificates;
}

export class ProviderHttp {
  private readonly client: Deno.HttpClient | undefined;
  private runningCount = 0;
  private readonly closed = new AbortController();

  constructor(
    private readonly settings: Pick<OidcSettings, "authorities" | "timeoutMs">,
    private readonly watch: ProviderWatch,
  ) {
    const caCerts = readAuthorities(settings.authorities);
    this.client = caCerts.length === 0 ? undefined : Deno.createHttpClient({ caCerts });
  }

  close(): void {
    this.closed.abort();
    this.client?.close();
  }

  /**
   * A fetch() for requests of one kind. It resolves when the whole answer was received. @throws {ProviderUnavailable}
   */
  fetcher(kind: Request): (url: string, init?: RequestInit) => Promise<Response> {
    return (url, init = {}) => this.fetch(kind, url, init);
  }

  private async fetch(kind: Request, url: string, init: RequestInit): Promise<Response> {
    if (this.runningCount >= REQUESTS_MAX) {
      throw new ProviderUnavailable(`too many concurrent requests to the identity provider: ${REQUESTS_MAX}`);
    }
    this.runningCount++;
    const startMs = performance.now();
    let failure: string | undefined;
    try {
      const reply = await this.answer(url, init);
      if (reply.status >= 500 || isRedirect(reply)) failure = `${new URL(url).origin}: status ${reply.status}`;
      return reply;
    } catch (error) {
      failure = (error as Error).message;
      throw error;
    } finally {
      this.runningCount--;
      if (!this.closed.signal.aborted) this.watch.onRequest(kind, (performance.now() - startMs) / 1000, failure);
    }
  }

  private async answer(url: string, init: RequestInit): Promise<Response> {
    const { timeoutMs } = this.settings;
    const where = new URL(url).origin;
    try {
      const signal = AbortSignal.any([this.closed.signal, AbortSignal.timeout(timeoutMs)]);
      const reply = await fetch(url, { ...init, redirect: "manual", signal, client: this.client });
      const { status, headers } = reply;
      // A Response with these status codes must not have a body.
      const hasBody = ![101, 204, 205, 304].includes(status);
      const body = await bytesOf(reply, where);
      return new Response(hasBody ? body : null, { status, headers });
    } catch (error) {
      if (error instanceof ProviderUnavailable) throw error;
      throw new ProviderUnavailable(`${where}: ${reasonOf(error as Error, timeoutMs)}`);
    }
  }
}

/** The reason of a failure. fetch() itself only reports that it failed. */
function reasonOf({ name, message, cause }: Error, timeoutMs: number): string {
  if (name === "TimeoutError") return `no answer within ${timeoutMs} ms`;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

const isRedirect = ({ status }: Response): boolean => status >= 300 && status < 400;

async function bytesOf(reply: Response, where: string): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let sizeBytes = 0;
  for await (const piece of reply.body ?? []) {
    sizeBytes += piece.length;
    if (sizeBytes > ANSWER_SIZE_MAX) {
      throw new ProviderUnavailable(`${where}: the answer is longer than ${ANSWER_SIZE_MAX} bytes`);
    }
    pieces.push(piece);
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}
