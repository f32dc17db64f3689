/** The user's name in the head of the page, with what concerns the user. */
import { action } from "../actions/actions.ts";
import { MenuButton } from "../app/menu.tsx";
import { serverSettings, userName } from "./session.ts";

export function AccountMenu() {
  if (!serverSettings.value.isProtected || userName.value === undefined) return null;
  const items = ["account", "sign-out"].map((id) => action(id));
  return <MenuButton text={userName.value} items={items} />;
}
