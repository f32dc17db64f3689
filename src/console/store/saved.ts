/** Signals whose values survive a reload of the page. Tokens and passwords must not be stored here. */
import { effect, type Signal, signal } from "@preact/signals";

/**
 * `key` is the key in local storage. A value that cannot be read or does not pass `isValid` is replaced by `initial`.
 */
export function saved<T>(key: string, initial: T, isValid: (value: unknown) => boolean): Signal<T> {
  const one = signal<T>(read(key, isValid) as T ?? initial);
  let isFirst = true;
  effect(() => {
    const text = JSON.stringify(one.value);
    if (!isFirst) write(key, text);
    isFirst = false;
  });
  return one;
}

function read(key: string, isValid: (value: unknown) => boolean): unknown {
  try {
    const value = JSON.parse(localStorage.getItem(`sundial.${key}`) ?? "null");
    return value !== null && isValid(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function write(key: string, text: string): void {
  try {
    localStorage.setItem(`sundial.${key}`, text);
  } catch (error) {
    console.warn(`${key} is not kept for the next visit: ${error}`);
  }
}
