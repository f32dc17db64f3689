/**
 * Data shared by the snapshots of a database: decoded principals, their rights, and indexes. Each is created on first
 * use and updated by each change, so that neither a start nor a change visits all principals.
 */
import { decodePrincipal, type Principal, principalKey } from "./principals.ts";
import type { RecordChange, RecordMap } from "./record-map.ts";
import { isPrincipalRecord } from "./records.ts";
import { Rights } from "./rights.ts";

export class Directory {
  /** By record key. */
  private readonly decoded = new Map<string, { text: string; principal: Principal }>();
  private readonly rights = new WeakMap<Principal, { groups: readonly Principal[]; rights: Rights }>();
  /** By the hash of a token. */
  readonly byToken = new Index('"tokens"', ({ tokens }) => tokens.map(({ hash }) => hash));
  /** Groups by their name at the identity provider. */
  readonly byAlias = new Index(
    '"externalAlias"',
    ({ kind, externalAlias }) => kind === "group" && externalAlias !== undefined ? [externalAlias] : [],
  );
  /**
   * Members of groups, and principals that may assume service accounts, by the key of the group's or account's name.
   */
  readonly byLink = new Index(
    /"(?:groups|assumes)"/,
    ({ groups, assumes }) => [...groups, ...assumes.map(({ account }) => account)].map(principalKey),
  );

  /** The principal of a record. */
  decode(records: RecordMap, key: string): Principal | undefined {
    const text = records.get(key);
    return text === undefined ? undefined : this.decodeText(key, text);
  }

  private decodeText(key: string, text: string): Principal {
    const known = this.decoded.get(key);
    if (known?.text === text) return known.principal;
    const principal = decodePrincipal(text);
    this.decoded.set(key, { text, principal });
    return principal;
  }

  /** Returns the principals with `key` in `index`. */
  find(index: Index, records: RecordMap, key: string): Principal[] {
    const keys = index.find(key, () => this.principalsLike(index, records));
    return keys.flatMap((recordKey) => this.decode(records, recordKey) ?? []);
  }

  private *principalsLike(index: Index, records: RecordMap): Iterable<[key: string, principal: Principal]> {
    for (const [key, text] of records) {
      if (isPrincipalRecord(key) && index.mayHave(text)) yield [key, this.decodeText(key, text)];
    }
  }

  /** Reuses earlier rights as long as the principal and its groups are the same. */
  rightsOf(principal: Principal, groups: readonly Principal[], make: () => Rights): Rights {
    const known = this.rights.get(principal);
    if (known?.groups.length === groups.length && known.groups.every((group, k) => group === groups[k])) {
      return known.rights;
    }
    const rights = make();
    this.rights.set(principal, { groups, rights });
    return rights;
  }

  /** Updates the caches after changes of `records`. */
  change(records: RecordMap, changes: readonly RecordChange[]): void {
    for (const [key, text] of changes) {
      if (!isPrincipalRecord(key)) continue;
      const before = records.get(key);
      for (const index of [this.byToken, this.byAlias, this.byLink]) {
        const inIndex = (text: string | null | undefined) =>
          typeof text === "string" && index.mayHave(text) ? this.decodeText(key, text) : undefined;
        if (index.isMade) index.change(key, inIndex(before), inIndex(text));
      }
      if (text === null) this.decoded.delete(key);
    }
  }
}

/** An index of record keys by a property of the principals. */
class Index {
  /** Undefined until first use. */
  private found: Map<string, Set<string>> | undefined;

  /** `marker`: a text that occurs in the record of each principal in the index. */
  constructor(
    private readonly marker: string | RegExp,
    private readonly keysOf: (principal: Principal) => readonly string[],
  ) {}

  get isMade(): boolean {
    return this.found !== undefined;
  }

  mayHave(text: string): boolean {
    return typeof this.marker === "string" ? text.includes(this.marker) : this.marker.test(text);
  }

  find(key: string, all: () => Iterable<[recordKey: string, principal: Principal]>): string[] {
    if (this.found === undefined) {
      this.found = new Map();
      for (const [recordKey, principal] of all()) this.change(recordKey, undefined, principal);
    }
    return [...this.found.get(key) ?? []];
  }

  change(recordKey: string, before: Principal | undefined, after: Principal | undefined): void {
    if (this.found === undefined) return; // made on first use
    for (const key of before === undefined ? [] : this.keysOf(before)) {
      const recordKeys = this.found.get(key);
      recordKeys?.delete(recordKey);
      if (recordKeys?.size === 0) this.found.delete(key);
    }
    for (const key of after === undefined ? [] : this.keysOf(after)) {
      const recordKeys = this.found.get(key);
      if (recordKeys === undefined) this.found.set(key, new Set([recordKey]));
      else recordKeys.add(recordKey);
    }
  }
}
