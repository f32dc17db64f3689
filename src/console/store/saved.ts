/** Signals whose values survive a reload of the page. Tokens and passwords must not be stored here. */
import { effect, type Signal, signal } from "@preact/signals";

type Test = (value: unknown) => boolean;

/**
 * Shared by all users of this browser. `key` is the key in local storage. A value that cannot be read or does not pass `isValid` is
 * replaced by `initial`.
 */
export function saved<T>(key: string, initial: T, isValid: Test): Signal<T> {
  const one = signal<T>(read(key, isValid) as T ?? initial);
  writeChanges(one, key);
  return one;
}

let owner: string | undefined;
const waiting: ((user: string) => void)[] = [];

/** Each user of this browser has their own, which is `initial` until `openStorageOf`. */
export function savedOfUser<T>(key: string, initial: T, isValid: Test): Signal<T> {
  const one = signal<T>(initial);
  const open = (user: string) => {
    const ownKey = `${key} of ${user}`;
    one.value = read(ownKey, isValid) as T ?? initial;
    writeChanges(one, ownKey);
  };
  if (owner === undefined) waiting.push(open);
  else open(owner);
  return one;
}

/** Called once, before anything of the user is shown. For another user the page is loaded anew. */
export function openStorageOf(user: string): void {
  if (owner !== undefined) return;
  owner = user;
  for (const open of waiting.splice(0)) open(user);
}

function writeChanges<T>(one: Signal<T>, key: string): void {
  let isFirst = true;
  effect(() => {
    const text = JSON.stringify(one.value);
    if (!isFirst) write(key, text);
    isFirst = false;
  });
}

function read(key: string, isValid: Test): unknown {
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
    console.warn(`${key} could not be stored for the next visit: ${error}`);
  }
}
