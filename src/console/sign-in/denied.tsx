/** Explains which permission is missing, and who can grant it. */
import { copyText } from "../store/clipboard.ts";
import { user } from "./session.ts";
import { heldTokens } from "./tokens.ts";
import { denialOf, giversOf, grantFor } from "./denial.ts";

/** Shows nothing if the message is not a refusal because of a missing permission. */
export function Denied({ message }: { message: string }) {
  const denial = denialOf(message);
  if (denial === undefined) return null;
  const statement = grantFor(denial, user.value?.isExternal ?? heldTokens() !== undefined);
  return (
    <p class="denied">
      {giversOf(denial)} The statement is <code>{statement}</code>{" "}
      <button type="button" class="small" onClick={() => copyText(statement, "The statement")}>Copy</button>
    </p>
  );
}
