/** Copies texts for the user. */
import { ask } from "../app/dialogs.tsx";
import { notify } from "./notices.ts";

/** `what` names the text in the notice: "The name is in the clipboard." */
export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify(`${what} is in the clipboard.`);
  } catch {
    // Browsers have a clipboard for pages only over TLS or on loopback.
    await ask({ title: `${what}: copy it from here`, text, confirm: "Close" });
  }
}
