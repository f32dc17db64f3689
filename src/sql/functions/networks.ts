/** IPv4 networks: 10.0.0.0/8, 192.168/16, 1.2.3.4. */

export interface Network {
  address: number;
  mask: number;
  bits: number;
}

/** Returns undefined if the text is invalid. Missing octets are 0. */
export function readNetwork(text: string): Network | undefined {
  const match = /^(\d{1,3}(?:\.\d{1,3}){0,3})(?:\/(\d{1,2}))?$/.exec(text);
  if (match === null) return undefined;
  const octets = match[1].split(".").map(Number);
  const bits = match[2] === undefined ? 32 : Number(match[2]);
  if (octets.some((octet) => octet > 255) || bits > 32 || (match[2] === undefined && octets.length < 4)) {
    return undefined;
  }
  const address = octets.reduce((sum, octet, i) => sum | (octet << (24 - 8 * i)), 0);
  const mask = bits === 0 ? 0 : -1 << (32 - bits);
  return { address, mask, bits };
}
