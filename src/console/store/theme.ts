/** Light or dark: the system's choice until the user makes one. */
import { computed, effect, signal } from "@preact/signals";
import { saved } from "./saved.ts";

type Theme = "light" | "dark" | "system";

const theme = saved<Theme>("theme", "system", (value) => ["light", "dark", "system"].includes(value as string));

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const systemTheme = signal(systemIsDark.matches);
systemIsDark.addEventListener("change", ({ matches }) => systemTheme.value = matches);

export const isDark = computed(() => theme.value === "system" ? systemTheme.value : theme.value === "dark");

export function toggleTheme(): void {
  theme.value = isDark.value ? "light" : "dark";
}
