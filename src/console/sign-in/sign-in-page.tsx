/** Shows the page to users who may use it, and the sign-in to others. */
import type { ComponentChildren } from "preact";
import { useModal } from "../app/modal.ts";
import { cancelSignIn, isReturning, isWaiting, phase, serverSettings } from "./session.ts";
import { SignInForm } from "./sign-in-form.tsx";

export function SignInGate({ children }: { children: ComponentChildren }) {
  if (phase.value === "starting") {
    const text = isWaiting.value ? "The server does not answer yet …" : isReturning.value ? "Signing in …" : undefined;
    // As in the page before its script has run.
    return text === undefined ? <p class="splash">Sundial</p> : (
      <Card>
        <p role="status">{text}</p>
      </Card>
    );
  }
  if (phase.value === "signed-out") return <SignInPage />;
  return (
    <>
      {children}
      {phase.value === "expired" && <SignInDialog />}
    </>
  );
}

function SignInPage() {
  const { instanceName = location.host } = serverSettings.value;
  return (
    <Card>
      <SignInForm title={`Sign in to ${instanceName}`} />
    </Card>
  );
}

function Card({ children }: { children: ComponentChildren }) {
  return (
    <main class="sign-in-page">
      <div class="card">
        <h1>Sundial</h1>
        {children}
      </div>
    </main>
  );
}

function SignInDialog() {
  const dialog = useModal();
  return (
    <dialog class="dialog" ref={dialog} aria-labelledby="sign-in-title" onClose={cancelSignIn}>
      <SignInForm title="Your session has ended. Sign in to continue." />
    </dialog>
  );
}
