"""The columns of a Parquet file as pyarrow reads them: JSON of [type, [value as text or null, ...]] by name."""
import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq


def text(value):
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (bool, list)):
        return json.dumps(value, separators=(",", ":"))
    return str(value)


def values(column):
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [text(value) for value in column.to_pylist()]


table = pq.read_table(sys.argv[1])
json.dump({name: [str(table[name].type), values(table[name])] for name in table.column_names}, sys.stdout)
