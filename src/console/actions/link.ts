/**
 * Links to a text: `?query=…`, and `&executeQuery=true` to run it immediately. Anybody can make a link, so it is only
 * run if the server confirms that it only reads.
 */

export function linkTo(text: string): string {
  const url = new URL(location.href);
  url.hash = "";
  url.search = String(new URLSearchParams({ query: text, executeQuery: "true" }));
  return url.href;
}

export interface Linked {
  text: string;
  /** True if the link asks to run the text. */
  runs: boolean;
}

/** The text in the page's own address. */
export function linkedText(search: string): Linked | undefined {
  const parameters = new URLSearchParams(search);
  const text = parameters.get("query");
  if (text === null || text.trim() === "") return undefined;
  return { text, runs: parameters.get("executeQuery") === "true" };
}
