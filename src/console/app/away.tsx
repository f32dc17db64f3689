/** Shows that the server cannot be reached, until it answers again. Nothing else on the page changes. */
import { isServerAway } from "../store/connection.ts";

export function Away() {
  return (
    <p class="away" role="status" hidden={!isServerAway.value}>
      {isServerAway.value && "The server does not answer. The page keeps your text and retries."}
    </p>
  );
}
