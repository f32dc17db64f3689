/** The panel that is open above the page. */
import { signal } from "@preact/signals";
import { saved } from "./saved.ts";

export type Panel = "palette" | "history" | "account";

export const panel = signal<Panel | undefined>(undefined);

/** On narrow screens the tree covers the editor, so it is closed initially. */
export const isTreeOpen = saved<boolean>("tree", innerWidth > 900, (value) => typeof value === "boolean");

export function openPanel(name: Panel): void {
  panel.value = name;
}

export function closePanel(): void {
  panel.value = undefined;
}

/** Shows the editor and the results, if the tree covers them. */
export function uncover(): void {
  if (matchMedia("(max-width: 640px)").matches) isTreeOpen.value = false;
}
