/**
 * Work that several clients ask for in the same turn of the event loop, and that costs little more for all of them together than for one: commits of
 * a few rows.
 */
interface Group<Item> {
  readonly items: Item[];
  /** False if each has to be done alone. */
  readonly isDone: Promise<boolean>;
}

export class TurnGroups<Item> {
  /** By key, the group of this turn. */
  private readonly open = new Map<string, Group<Item>>();

  constructor(private readonly together: (items: readonly Item[]) => Promise<void>) {}

  /** Does the work together with others of the same key, or `alone` if there are none, or if that fails: then another one may be at fault. */
  async run(key: string, item: Item, alone: (item: Item) => Promise<void>): Promise<void> {
    let group = this.open.get(key);
    if (group === undefined) this.open.set(key, group = this.begin(key));
    group.items.push(item);
    if (!await group.isDone) await alone(item);
  }

  private begin(key: string): Group<Item> {
    const items: Item[] = [];
    const all = async () => {
      // Clients whose messages have arrived together ask before this goes on.
      await undefined;
      this.open.delete(key);
      if (items.length === 1) return false;
      return await this.together(items).then(() => true, () => false);
    };
    return { items, isDone: all() };
  }
}
