/**
 * Access control: principals, permissions and grants as data, and the checks. Storage keeps the records. All functions
 * are synchronous.
 */
export { type AccessCommand, described, type Granted, type GrantOn, type Named, permissionsFor } from "./commands.ts";
export { type Grant, type Target, withGrant, withoutGrant } from "./grants.ts";
export { allOf, ENDPOINTS, hasLevel, type Level, type Permission, permissionOf, PERMISSIONS } from "./permissions.ts";
export {
  decodePrincipal,
  encodePrincipal,
  newPrincipal,
  type Principal,
  type PrincipalKind,
  samePrincipal,
  type StoredVerifier,
} from "./principals.ts";
export { type RecordChange, RecordMap } from "./record-map.ts";
export { changesOf, principalRecordKey, type TableEvent } from "./records.ts";
export { ALL_RIGHTS, type CheckedTable, type Columns, NO_RIGHTS, Rights } from "./rights.ts";
export { AccessSnapshot, tokenHash } from "./snapshot.ts";
