/** The panel that is open over the page. */
import { signal } from "@preact/signals";

export type Panel = "palette" | "history";

export const panel = signal<Panel | undefined>(undefined);

export function openPanel(name: Panel): void {
  panel.value = name;
}

export function closePanel(): void {
  panel.value = undefined;
}
