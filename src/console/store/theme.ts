/** Light or dark: the system's choice until the user makes one. */
import { effect } from "@preact/signals";
import { saved } from "./saved.ts";

type Theme = "light" | "dark" | "system";

const theme = saved<Theme>("theme", "system", (value) => ["light", "dark", "system"].includes(value as string));

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

export function toggleTheme(): void {
  theme.value = isDark() ? "light" : "dark";
}

function isDark(): boolean {
  return theme.value === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : theme.value === "dark";
}
