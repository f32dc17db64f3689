/** Dashboards as files. */
import { saveFile } from "../store/files.ts";
import { notify } from "../store/notices.ts";
import { fileTextOf, readFileText } from "./model.ts";
import { type Opened, openNew } from "./open.ts";

export function exportDashboard({ name, definition }: Opened): void {
  const fileName = `${name.replace(/[^\p{L}\p{N} _-]/gu, "_")}.json`;
  saveFile(fileName, [fileTextOf(name, definition)], "application/json");
}

export function importDashboard(): void {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = ".json,application/json";
  input.onchange = async () => {
    const file = input.files?.[0];
    if (file === undefined) return;
    const read = readFileText(await file.text());
    if (typeof read === "string") return notify(`${file.name} is not a dashboard: ${read}`);
    openNew({ ...read, sharedWith: [], canEdit: true });
  };
  input.click();
}
