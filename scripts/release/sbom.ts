/**
 * The bill of materials of an executable in CycloneDX 1.6. It is the same for all systems, as they have the same packages.
 * @see https://cyclonedx.org/docs/1.6/json/
 */
import { createHash } from "node:crypto";
import { licenseOf, runtimeParts } from "./licenses.ts";
import { type Package, type PackageCache } from "./packages.ts";

export function billOfMaterials(
  version: string,
  packages: readonly Package[],
  cache: PackageCache,
  time: Date,
): string {
  const runtime = runtimeParts();
  const root = `pkg:generic/sundial@${version}`;
  const body = {
    metadata: {
      timestamp: time.toISOString().replace(".000Z", "Z"),
      component: {
        type: "application",
        "bom-ref": root,
        name: "sundial",
        version,
        licenses: [{ expression: "Apache-2.0" }],
        purl: root,
      },
    },
    components: [
      ...packages.map((one) => componentOf(one, cache)),
      ...runtime.map(({ name, version, license, purl }) => ({
        type: "platform",
        "bom-ref": purl,
        name,
        version,
        licenses: [{ expression: license }],
        purl,
      })),
    ],
    dependencies: [
      {
        ref: root,
        dependsOn: [...packages.filter(({ isDirect }) => isDirect).map(purlOf), ...runtime.map(({ purl }) => purl)],
      },
      ...packages.map((one) => ({
        ref: purlOf(one),
        dependsOn: one.dependencies.map((id) => purlOf(packages.find((other) => other.id === id)!)),
      })),
      ...runtime.map(({ purl }) => ({ ref: purl, dependsOn: [] })),
    ],
  };
  return JSON.stringify(
    {
      $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
      bomFormat: "CycloneDX",
      specVersion: "1.6",
      serialNumber: `urn:uuid:${uuidOf(JSON.stringify(body))}`,
      version: 1,
      ...body,
    },
    null,
    2,
  ) + "\n";
}

function componentOf(one: Package, cache: PackageCache) {
  const [scope, name] = one.name.startsWith("@") ? one.name.split("/") : [undefined, one.name];
  const [algorithm, digest] = one.integrity.split("-");
  if (algorithm !== "sha512") throw new Error(`${one.id} has a checksum of another sort: ${algorithm}`);
  return {
    type: "library",
    "bom-ref": purlOf(one),
    ...(scope === undefined ? {} : { group: scope }),
    name,
    version: one.version,
    hashes: [{ alg: "SHA-512", content: Uint8Array.fromBase64(digest).toHex() }],
    licenses: [{ expression: licenseOf(one, cache) }],
    purl: purlOf(one),
  };
}

export function purlOf({ name, version }: { name: string; version: string }): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

/** A UUID of version 8, derived from the content. */
function uuidOf(text: string): string {
  const bytes = createHash("sha256").update(text).digest().subarray(0, 16);
  bytes[6] = (bytes[6] & 0x0f) | 0x80;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
