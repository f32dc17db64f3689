/** The server's refusals for want of a permission, and how the user can get it. */

export interface Denial {
  user: string;
  permission: string;
  /** A table, or a table and a column as `t(c)`. */
  on?: string;
}

/** Undefined if the message is about something else. */
export function denialOf(message: string): Denial | undefined {
  const found = /^Access denied for (.+) \[([A-Z ]+?)(?: on (.+))?\]$/.exec(message);
  return found === null ? undefined : { user: found[1], permission: found[2], on: found[3] };
}

/** Who can give the permission. */
export function giversOf({ permission, on }: Denial): string {
  const where = on === undefined ? "" : ` on ${on}`;
  return `An administrator can give it to you, or a user who holds ${permission}${where} with the grant option.`;
}

/** The statement that gives the permission. External users have those of groups only. */
export function grantFor({ user, permission, on }: Denial, isExternal: boolean): string {
  const place = on === undefined ? "" : ` ON ${on.replace(/^[^(]+|[^()]+(?=\)$)/g, quotedName)}`;
  return `GRANT ${permission}${place} TO ${isExternal ? "<one of your groups>" : quotedName(user)};`;
}

const quotedName = (name: string) => /^[A-Za-z_]\w*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
