/** The web console: starts the page. */
import { render } from "preact";
import { App } from "./app/app.tsx";
import { startSession } from "./sign-in/session.ts";
import { SignInGate } from "./sign-in/sign-in-page.tsx";
import "./styles/main.css";

render(
  <SignInGate>
    <App />
  </SignInGate>,
  document.getElementById("app")!,
);
startSession();
