/** The current page. It is in the address after `#`, so that Back, reloads and links keep it. */
import { computed, signal } from "@preact/signals";

export type Page =
  | { name: "query" }
  | { name: "server"; section?: string }
  /** Without `id`: the list of dashboards. */
  | { name: "dashboards"; id?: string };

const address = signal(location.hash);
addEventListener("hashchange", () => address.value = location.hash);

export const page = computed<Page>(() => pageOf(address.value));

function pageOf(hash: string): Page {
  const [name, id] = hash.replace(/^#\/?/, "").split("/");
  if (name === "server") return id ? { name, section: id } : { name };
  if (name === "dashboards") return id ? { name, id: decodeURIComponent(id) } : { name };
  return { name: "query" };
}

export function addressOf(page: Page): string {
  if (page.name === "query") return "#/";
  const part = page.name === "server" ? page.section : page.id;
  return part === undefined ? `#/${page.name}` : `#/${page.name}/${encodeURIComponent(part)}`;
}

export function openPage(page: Page): void {
  location.hash = addressOf(page);
  // Update immediately, because the event arrives after the caller's next steps.
  address.value = location.hash;
}
