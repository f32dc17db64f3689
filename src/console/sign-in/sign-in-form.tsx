/** The ways to sign in: with the identity provider, or by user name and password. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Denied } from "./denied.tsx";
import {
  cancelSignIn,
  phase,
  refusal,
  serverSettings,
  signInAtProvider,
  signInWithPassword,
  signOut,
  user,
} from "./session.ts";
import { heldTokens } from "./tokens.ts";

export function SignInForm({ title }: { title: string }) {
  const hasProvider = serverSettings.value.provider !== undefined;
  return (
    <div class="sign-in">
      <h2 id="sign-in-title">{title}</h2>
      <div role="alert">
        {refusal.value !== "" && <p class="error">{refusal.value}</p>}
        <Denied message={refusal.value} />
      </div>
      {hasProvider && <ProviderButtons />}
      {hasProvider
        ? (
          <details>
            <summary>With a password of this database</summary>
            <PasswordForm />
          </details>
        )
        : <PasswordForm />}
      {hasProvider && (
        <p class="buttons">
          <NotNow />
        </p>
      )}
    </div>
  );
}

function NotNow() {
  return phase.value === "expired" ? <button type="button" onClick={cancelSignIn}>Not now</button> : null;
}

function ProviderButtons() {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => button.current!.focus(), []);
  return (
    <p class="provider">
      <button type="button" class="main" ref={button} onClick={signInAtProvider}>Single sign-on</button>
      {/* The provider's user has no use here. The provider asks for another user only after a sign-out there. */}
      {heldTokens() !== undefined && phase.value === "signed-out" && (
        <button type="button" onClick={signOut}>Sign out at the provider</button>
      )}
    </p>
  );
}

function PasswordForm() {
  const isBusy = useSignal(false);
  const name = useRef<HTMLInputElement>(null), password = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (serverSettings.value.provider === undefined) (user.value === undefined ? name : password).current!.focus();
  }, []);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (isBusy.value) return;
    isBusy.value = true;
    const isSignedIn = await signInWithPassword(name.current!.value, password.current!.value);
    isBusy.value = false;
    if (!isSignedIn) password.current?.select();
  };
  return (
    <form onSubmit={submit} aria-busy={isBusy.value}>
      <label>
        User
        <input
          ref={name}
          required
          autocomplete="username"
          autocapitalize="none"
          spellcheck={false}
          defaultValue={user.value?.isExternal ? "" : user.value?.name}
        />
      </label>
      <label>
        Password
        <input ref={password} type="password" required autocomplete="current-password" />
      </label>
      <p class="buttons">
        {serverSettings.value.provider === undefined && <NotNow />}
        <button type="submit" class="main">{isBusy.value ? "Signing in …" : "Sign in"}</button>
      </p>
    </form>
  );
}
