"""
Writes random Parquet files of every type, in every layout of pyarrow: write_random.py DIRECTORY SEED COUNT.
Prints JSON: for each file its name, layout and row count, and for each column SQL that prints it and the expected values.
"""
import base64
import datetime
import decimal
import json
import random
import struct
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

directory, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
r = random.Random(seed)

# Sizes around those of buffers, pages and words.
LENGTHS = sorted({max(0, 2**k + d) for k in range(0, 17) for d in (-1, 0, 1)})


def text():
    length = r.choice(LENGTHS[:18] if r.random() < 0.98 else LENGTHS)
    return "".join(r.choices("ab\"\\,é日😀 \n", k=length))


def integer(bits, signed=True):
    def value():
        wide = r.getrandbits(r.randint(1, bits))
        # The smallest INT and LONG is the null.
        return max(wide - 2**bits if signed and wide >= 2 ** (bits - 1) else wide, -(2 ** (bits - 1)) + 1 if signed else 0)

    return value


def real(form):
    def value():
        while True:
            bits = r.getrandbits(8 * struct.calcsize(form))
            found = struct.unpack(form, bits.to_bytes(struct.calcsize(form), "little"))[0]
            if abs(found) < float("inf"):
                return found

    return value


def regular(depth, element):
    """Nested lists; the inner lists of a list have equal lengths."""

    def value():
        lengths = [r.choice((0, 1, 2, 3, 7, 8)) if d == 0 else r.choice((1, 2, 3)) for d in range(depth)]

        def build(d):
            if d == depth:
                return None if r.random() < 0.2 else element()
            return [build(d + 1) for _ in range(lengths[d])]

        return build(0)

    return value


def decimal_of(precision, scale):
    def value():
        digits = r.randint(0, 10 ** r.randint(0, precision) - 1)
        return decimal.Decimal(r.choice((1, -1)) * digits).scaleb(-scale, decimal.Context(prec=100))

    return value


EPOCH = datetime.datetime(1970, 1, 1)
SAME = lambda value: value
EXACT = "cast({} as string)"


class Kind:
    """A type, a generator, SQL that prints a column, its output for a value, and its output for null."""

    def __init__(self, type, make, sql="{}", shown=SAME, none=None):
        self.type, self.make, self.sql, self.shown, self.none = type, make, sql, shown, none


def kinds():
    precision = r.randint(1, 38)
    wide = r.randint(39, 76)
    scale, wide_scale = r.randint(0, precision), r.randint(0, wide)
    size = r.choice((1, 3, 7, 8, 15, 17, 64))
    number = real("<d")
    plain = lambda value: format(value, "f")
    encoded = lambda value: base64.b64encode(value).decode()
    return {
        "bool": Kind(pa.bool_(), lambda: r.random() < 0.5, none=False),
        "i8": Kind(pa.int8(), integer(8), none=0),
        "i16": Kind(pa.int16(), integer(16), none=0),
        "i32": Kind(pa.int32(), integer(32)),
        "i64": Kind(pa.int64(), integer(64), EXACT, str),
        "u8": Kind(pa.uint8(), integer(8, False)),
        "u16": Kind(pa.uint16(), integer(16, False)),
        "u32": Kind(pa.uint32(), integer(32, False)),
        "u64": Kind(pa.uint64(), integer(64, False), shown=str),
        "f16": Kind(pa.float16(), real("<e")),
        "f32": Kind(pa.float32(), real("<f")),
        "f64": Kind(pa.float64(), number),
        "decimal": Kind(pa.decimal128(precision, scale), decimal_of(precision, scale), shown=plain),
        "wide": Kind(pa.decimal256(wide, wide_scale), decimal_of(wide, wide_scale), shown=plain),
        "text": Kind(pa.string(), text),
        "few": Kind(pa.string(), lambda: r.choice(("", "alpha", "größe", "x" * 100))),
        "dictionary": Kind(pa.dictionary(pa.int32(), pa.string()), lambda: r.choice(("", "alpha", "日本"))),
        "bytes": Kind(pa.binary(), lambda: r.randbytes(r.choice(LENGTHS[:20])), "base64({}, 10000000)", encoded),
        "fixed": Kind(pa.binary(size), lambda: r.randbytes(size), "base64({}, 1000)", encoded),
        "uuid": Kind(pa.binary(16), lambda: r.randbytes(16), shown=lambda value: str(uuid.UUID(bytes=value))),
        "date": Kind(pa.date32(), integer(16), "cast({} as long)", lambda value: value * 86_400_000),
        "time_ms": Kind(pa.time32("ms"), lambda: r.randrange(86_400_000)),
        "time_us": Kind(pa.time64("us"), lambda: r.randrange(86_400_000_000)),
        "time_ns": Kind(pa.time64("ns"), lambda: r.randrange(86_400_000_000_000)),
        "ts_ms": Kind(pa.timestamp("ms"), integer(40), "cast({} as long)"),
        "ts_us": Kind(pa.timestamp("us", "UTC"), integer(50), "cast({} as long)"),
        "ts_ns": Kind(pa.timestamp("ns"), integer(64), EXACT.format("cast({} as long)"), str),
        "list": Kind(pa.list_(pa.float64()), regular(1, number)),
        "list_i32": Kind(pa.list_(pa.int32()), regular(1, integer(32))),
        "list_u64": Kind(pa.large_list(pa.uint64()), regular(1, integer(53, False))),
        "list_f32": Kind(pa.list_(pa.float32()), regular(1, real("<f"))),
        "list_f16": Kind(pa.list_(pa.float16()), regular(1, real("<e"))),
        "list_decimal": Kind(
            pa.list_(pa.decimal128(precision, scale)),
            regular(1, decimal_of(precision, scale)),
            shown=lambda value: [None if element is None else float(element) for element in value],
        ),
        "matrix": Kind(pa.list_(pa.list_(pa.float64())), regular(2, number)),
        "cube": Kind(pa.list_(pa.list_(pa.list_(pa.int64()))), regular(3, integer(53))),
    }


def array_of(kind, values):
    """Makes temporal values from their stored integers."""
    if pa.types.is_temporal(kind.type):
        storage = pa.int32() if kind.type.bit_width == 32 else pa.int64()
        return pa.array(values, storage).cast(kind.type)
    return pa.array(values, kind.type)


ENCODINGS = {
    "i32": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "i64": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "ts_us": ["DELTA_BINARY_PACKED"],
    "f32": ["BYTE_STREAM_SPLIT"],
    "f64": ["BYTE_STREAM_SPLIT"],
    "uuid": ["BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"],
    "fixed": ["BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"],
    "text": ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"],
    "few": ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"],
    "bytes": ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"],
    "bool": ["RLE"],
}


def layout(names):
    has_dictionary = r.random() < 0.5
    options = {
        "compression": r.choice(("NONE", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4")),
        "data_page_version": r.choice(("1.0", "2.0")),
        "use_dictionary": has_dictionary,
        "data_page_size": r.choice((1, 100, 4_000, 1 << 20)),
        "write_batch_size": r.choice((1, 7, 64, 1024)),
        "dictionary_pagesize_limit": r.choice((10, 1_000, 1 << 20)),
        "row_group_size": r.choice((1, 10, 100, 1_000, 100_000)),
        "use_compliant_nested_type": r.random() < 0.5,
        "store_decimal_as_integer": r.random() < 0.5,
        "write_page_checksum": r.random() < 0.5,
        "write_statistics": r.random() < 0.5,
    }
    if not has_dictionary:
        options["column_encoding"] = {
            name: r.choice(ENCODINGS[name]) for name in names if name in ENCODINGS and r.random() < 0.7
        }
    return options


def write(number):
    rows = r.choice((0, 1, 2, 63, 64, 65, 500, 1_500))
    null_share = r.choice((0, 0.1, 0.9, 1))
    options = layout(kinds())
    if options["row_group_size"] < 10:
        rows = min(rows, 65)
    known = kinds()
    # Some columns are fields of a struct, and null in rows without the struct.
    inside = r.sample(sorted(set(known) - set(ENCODINGS) - {"dictionary"}), 4)
    there = [r.random() >= 0.2 for _ in range(rows)]
    arrays, fields, columns = {}, {}, []
    for name, kind in known.items():
        required = r.random() < 0.2
        values = [kind.make() if required or r.random() >= null_share else None for _ in range(rows)]
        is_field = name in inside
        if is_field:
            fields[name] = array_of(kind, values)
        else:
            arrays[name] = (array_of(kind, values), not required)
        shown = [
            kind.none if value is None or (is_field and not there[row]) else kind.shown(value)
            for row, value in enumerate(values)
        ]
        columns.append({"sql": kind.sql.format(f"s.{name}" if is_field else name), "values": shown, "name": name})
    mask = pa.array([not is_there for is_there in there], pa.bool_())
    arrays["s"] = (pa.StructArray.from_arrays(list(fields.values()), list(fields), mask=mask), True)
    schema = pa.schema([pa.field(name, array.type, nullable) for name, (array, nullable) in arrays.items()])
    table = pa.table([array for array, _ in arrays.values()], schema=schema)
    file = f"random{number}.parquet"
    pq.write_table(table, f"{directory}/{file}", **options)
    return {"file": file, "layout": options, "rows": rows, "columns": columns}


json.dump([write(number) for number in range(count)], sys.stdout)
