/** The web console: starts the page. */
import { render } from "preact";
import { App } from "./app/app.tsx";
import "./styles/main.css";

render(<App />, document.getElementById("app")!);
