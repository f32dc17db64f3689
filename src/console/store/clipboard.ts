/** Copies texts to the clipboard for the user. */
import { ask } from "../app/dialogs.tsx";
import { notify } from "./notices.ts";

/** A dialog with a longer text would make the page hang. */
const SHOWN_MAX = 200_000;

/** `what` names the text in the notice: "The name is in the clipboard." */
export async function copyText(text: string, what: string, verb = "is"): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify(`${what} ${verb} in the clipboard.`);
  } catch {
    // Browsers provide a clipboard only to pages over TLS or on loopback.
    if (text.length > SHOWN_MAX) {
      return notify("The browser does not allow this page to copy. Use Download for the rows.");
    }
    await ask({ title: `${what}: copy it from here`, text, confirm: "Close", cancel: "" });
  }
}
