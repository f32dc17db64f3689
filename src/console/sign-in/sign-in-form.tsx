/** User name and password. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Denied } from "./denied.tsx";
import { cancelSignIn, phase, refusal, signInWithPassword, userName } from "./session.ts";

export function SignInForm({ title }: { title: string }) {
  const isBusy = useSignal(false);
  const name = useRef<HTMLInputElement>(null), password = useRef<HTMLInputElement>(null);
  useEffect(() => (userName.value === undefined ? name : password).current!.focus(), []);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (isBusy.value) return;
    isBusy.value = true;
    const isSignedIn = await signInWithPassword(name.current!.value, password.current!.value);
    isBusy.value = false;
    if (!isSignedIn) password.current?.select();
  };
  return (
    <form class="sign-in" onSubmit={submit} aria-busy={isBusy.value}>
      <h2 id="sign-in-title">{title}</h2>
      <label>
        User
        <input
          ref={name}
          required
          autocomplete="username"
          autocapitalize="none"
          spellcheck={false}
          defaultValue={userName.value}
        />
      </label>
      <label>
        Password
        <input ref={password} type="password" required autocomplete="current-password" />
      </label>
      <div role="alert">
        {refusal.value !== "" && <p class="error">{refusal.value}</p>}
        <Denied message={refusal.value} />
      </div>
      <p class="buttons">
        {phase.value === "expired" && <button type="button" onClick={cancelSignIn}>Not now</button>}
        <button type="submit" class="main" disabled={isBusy.value}>{isBusy.value ? "Signing in …" : "Sign in"}</button>
      </p>
    </form>
  );
}
