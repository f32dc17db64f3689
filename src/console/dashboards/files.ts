/** Dashboards as files. */
import { notify } from "../store/notices.ts";
import { fileTextOf, readFileText } from "./model.ts";
import { type Opened, openNew } from "./open.ts";

export function exportDashboard({ name, definition }: Opened): void {
  const link = document.createElement("a");
  const url = URL.createObjectURL(new Blob([fileTextOf(name, definition)], { type: "application/json" }));
  link.href = url;
  link.download = `${name.replace(/[^\p{L}\p{N} _-]/gu, "_")}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function importDashboard(): void {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = ".json,application/json";
  input.onchange = async () => {
    const file = input.files?.[0];
    if (file === undefined) return;
    const read = readFileText(await file.text());
    if (typeof read === "string") return notify(`${file.name} is no dashboard: ${read}`);
    openNew({ ...read, sharedWith: [], canEdit: true });
  };
  input.click();
}
