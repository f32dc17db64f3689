/**
 * Protects the server from pages of other sites in the browser of a user who can reach the server.
 *
 * A request that looks like a browser's must name a known host, because DNS rebinding can point a foreign name at this
 * machine. It may change data only if our own page or an origin in `http.cors.origins` sent it. Scripts and drivers are
 * not affected: an attacker who can run one does not need a browser.
 * @see https://fetch.spec.whatwg.org/#cors-protocol
 * @see https://www.w3.org/TR/fetch-metadata/
 */

/** Only our page sends this header. A page of another origin could send it only after a successful preflight. */
const PAGE_HEADER = "x-sundial-page";

const PREFLIGHT_SECONDS = "600";
const METHODS = "GET, POST, OPTIONS";

export interface OriginRules {
  /** Accepted names in the Host header, in lower case and without port. Addresses and localhost are always accepted. */
  hostNames: readonly string[];
  /** Other origins whose pages may read answers and change data. */
  corsOrigins: readonly string[];
}

export interface Asker {
  method: string;
  /** Returns the value of a header, by its name in lower case. */
  header(name: string): string | null;
}

export interface Verdict {
  /** If set, the reason to answer 403. */
  refusal?: string;
  /** True for a preflight, which is answered 204 and not processed further. */
  isPreflight?: true;
  /** Headers for the answer. */
  headers: [name: string, value: string][];
}

const ALLOWED: Verdict = { headers: [] };

/** `changes`: the request does more than read data. */
export function judge({ method, header }: Asker, rulesOf: () => OriginRules, changes: boolean): Verdict {
  const origin = header("origin"), site = header("sec-fetch-site");
  if (origin === null && site === null && !looksLikeBrowser(header)) return ALLOWED;
  const host = (header("host") ?? "").toLowerCase(), rules = rulesOf();
  if (!isKnownHost(host, rules.hostNames)) {
    return refused(
      `unknown host ${JSON.stringify(host)}: browsers must use an address, localhost, ` +
        "or a name in http.host.names",
    );
  }
  const isListed = origin !== null && rules.corsOrigins.includes(origin);
  const headers = rules.corsOrigins.length === 0 ? [] : corsHeaders(isListed ? origin : undefined);
  if (isListed && method === "OPTIONS" && header("access-control-request-method") !== null) {
    headers.push(["access-control-allow-methods", METHODS], ["access-control-max-age", PREFLIGHT_SECONDS]);
    const requested = header("access-control-request-headers");
    if (requested !== null) headers.push(["access-control-allow-headers", requested]);
    return { isPreflight: true, headers };
  }
  if (!changes || isListed || isOwn(header, origin, site, host)) return { headers };
  return refused(
    `a page of ${origin === null || origin === "null" ? "unknown origin" : origin} may not change data: ` +
      "http.cors.origins lists the origins that may",
  );
}

const refused = (refusal: string): Verdict => ({ refusal, headers: [] });

/**
 * Sec-Fetch-Mode alone does not identify a browser, because Node's fetch() sends it. PowerShell's user agent begins
 * with Mozilla.
 */
function looksLikeBrowser(header: Asker["header"]): boolean {
  if (header("sec-fetch-dest") !== null || header("referer") !== null) return true;
  const agent = header("user-agent") ?? "";
  return agent.startsWith("Mozilla/") && !agent.includes("PowerShell/");
}

/**
 * Browsers send Sec-Fetch-Site to localhost and over TLS, and Origin with every POST. All other requests need our
 * page's header.
 */
function isOwn(header: Asker["header"], origin: string | null, site: string | null, host: string): boolean {
  if (site === "same-origin" || site === "none" || header(PAGE_HEADER) !== null) return true;
  return site === null && (origin === `http://${host}` || origin === `https://${host}`);
}

function isKnownHost(host: string, names: readonly string[]): boolean {
  if (/^\[[0-9a-f:.]+\](?::\d+)?$/.test(host)) return true;
  const name = host.replace(/:\d+$/, "").replace(/\.$/, "");
  return name === "localhost" || /^\d+\.\d+\.\d+\.\d+$/.test(name) || names.includes(name);
}

/** Once origins are listed, answers depend on the request's origin, and caches must know that. */
function corsHeaders(origin: string | undefined): Verdict["headers"] {
  if (origin === undefined) return [["vary", "Origin"]];
  return [["vary", "Origin"], ["access-control-allow-origin", origin], ["access-control-allow-credentials", "true"]];
}
