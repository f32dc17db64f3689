/** Links to a text: `?query=…`, and `&executeQuery=true` to run it at once if it only reads. */

export function linkTo(text: string): string {
  const url = new URL(location.href);
  url.hash = "";
  url.search = String(new URLSearchParams({ query: text, executeQuery: "true" }));
  return url.href;
}

export interface Linked {
  text: string;
  runs: boolean;
}

/** The text in the page's own address. */
export function linkedText(search: string): Linked | undefined {
  const parameters = new URLSearchParams(search);
  const text = parameters.get("query");
  if (text === null || text.trim() === "") return undefined;
  return { text, runs: parameters.get("executeQuery") === "true" && onlyReads(text) };
}

const STRINGS_AND_COMMENTS = /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|--[^\n]*|\/\*[^]*?(?:\*\/|$)/g;
const READS = /^\s*(?:select|with|show|explain|describe|declare|from)\b/i;
const CHANGES =
  /\b(?:insert|update|delete|create|alter|drop|truncate|rename|grant|revoke|backup|checkpoint|vacuum|copy|set|cancel|reload_config)\b/i;

/** Anybody can make a link, so a statement that may change something is only shown and not run. */
function onlyReads(text: string): boolean {
  const words = text.replace(STRINGS_AND_COMMENTS, " ");
  return READS.test(words) && !CHANGES.test(words);
}
