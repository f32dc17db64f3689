/** The identity provider cannot be asked, or does not answer as it should: nobody knows whether the client is who it says. */
export class ProviderUnavailable extends Error {
  override readonly name = "ProviderUnavailable";
}
