/** Shows a value completely. */
import { ask } from "../app/dialogs.tsx";
import type { Column } from "../server/client.ts";
import { copyText } from "../store/clipboard.ts";
import { textOf } from "./cells.ts";

export async function showValue({ name, type }: Column, value: unknown): Promise<void> {
  const text = textOf(value);
  const isCopied = await ask({
    title: `${name} (${type}, ${text.length.toLocaleString("en")} characters)`,
    text: shownPart(readable(text)),
    confirm: "Copy",
    cancel: "Close",
  });
  if (isCopied !== undefined) await copyText(text, "The value");
}

/** Longer texts would take the browser seconds to lay out. */
const VIEWED_CHARACTERS_MAX = 200_000;

function shownPart(text: string): string {
  if (text.length <= VIEWED_CHARACTERS_MAX) return text;
  const left = text.length - VIEWED_CHARACTERS_MAX;
  return `${text.slice(0, VIEWED_CHARACTERS_MAX)}\n… ${left.toLocaleString("en")} more characters: Copy includes all.`;
}

/** JSON is shown with a line for each member. */
function readable(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
