/** The page about the server: activity, tables, errors and settings. */
import type { ComponentType } from "preact";
import { addressOf } from "../store/pages.ts";
import { Errors } from "./errors.tsx";
import { Overview } from "./overview.tsx";
import { Settings } from "./settings.tsx";
import { Tables } from "./tables.tsx";

interface Section {
  /** Undefined for the first one. */
  id?: string;
  name: string;
  Content: ComponentType;
}

const OVERVIEW: Section = { name: "Overview", Content: Overview };
const SECTIONS: readonly Section[] = [
  OVERVIEW,
  { id: "tables", name: "Tables", Content: Tables },
  { id: "errors", name: "Errors", Content: Errors },
  { id: "settings", name: "Settings", Content: Settings },
];

export function ServerPage({ section }: { section?: string }) {
  const chosen = SECTIONS.find(({ id }) => id === section) ?? OVERVIEW;
  return (
    <main class="page" aria-label="Server">
      <nav class="sections" aria-label="About the server">
        {SECTIONS.map((one) => (
          <a
            key={one.name}
            href={addressOf({ name: "server", section: one.id })}
            aria-current={one === chosen ? "page" : undefined}
          >
            {one.name}
          </a>
        ))}
      </nav>
      <chosen.Content />
    </main>
  );
}
