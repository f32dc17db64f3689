/**
 * Links to a text: `?query=…`, and `&executeQuery=true` to run it at once. Anybody can make a link, so it only runs
 * if the server says that it reads.
 */

export function linkTo(text: string): string {
  const url = new URL(location.href);
  url.hash = "";
  url.search = String(new URLSearchParams({ query: text, executeQuery: "true" }));
  return url.href;
}

export interface Linked {
  text: string;
  /** The link asks to run it. */
  runs: boolean;
}

/** The text in the page's own address. */
export function linkedText(search: string): Linked | undefined {
  const parameters = new URLSearchParams(search);
  const text = parameters.get("query");
  if (text === null || text.trim() === "") return undefined;
  return { text, runs: parameters.get("executeQuery") === "true" };
}
