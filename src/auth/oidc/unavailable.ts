/** The identity provider is unavailable or its answers are unusable, so the client's identity is unknown. */
export class ProviderUnavailable extends Error {
  override readonly name = "ProviderUnavailable";
}
