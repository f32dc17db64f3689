/** The links to the pages of the console. */
import { addressOf, type Page, page } from "../store/pages.ts";

const PAGES: readonly { page: Page; text: string }[] = [
  { page: { name: "query" }, text: "Query" },
  { page: { name: "dashboards" }, text: "Dashboards" },
  { page: { name: "server" }, text: "Server" },
];

export function PageLinks() {
  return (
    <nav class="pages" aria-label="Pages">
      {PAGES.map(({ page: one, text }) => (
        <a key={text} href={addressOf(one)} aria-current={page.value.name === one.name ? "page" : undefined}>{text}</a>
      ))}
    </nav>
  );
}
