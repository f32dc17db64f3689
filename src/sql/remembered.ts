/** Computes what follows from a plan or an expression once. Both are immutable. The value is never undefined. */
export function remembered<Key extends WeakKey, Value>(compute: (key: Key) => Value): (key: Key) => Value {
  const known = new WeakMap<Key, Value>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) known.set(key, value = compute(key));
    return value;
  };
}
