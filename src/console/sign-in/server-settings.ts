/** What the server tells everybody about itself: GET /settings. */

export interface ServerSettings {
  /** Users sign in. */
  isProtected: boolean;
  /** Not in read-only mode. */
  acceptsWrites: boolean;
  /** The name that the server's operator has given it. */
  instanceName?: string;
}

/** Undefined if the server does not answer. */
export async function fetchServerSettings(): Promise<ServerSettings | undefined> {
  try {
    const { config } = await (await fetch("settings")).json();
    return {
      isProtected: config["acl.enabled"] === true,
      acceptsWrites: config["accepting.writes"]?.length > 0,
      instanceName: config["instance.name"],
    };
  } catch {
    return undefined;
  }
}
