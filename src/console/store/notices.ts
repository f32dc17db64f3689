/** Short messages of the page itself, which disappear after a while. */
import { signal } from "@preact/signals";

export const notice = signal("");
const SHOWN_MS = 4000;
let timer: number | undefined;

export function notify(text: string): void {
  notice.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => notice.value = "", SHOWN_MS) as unknown as number;
}
