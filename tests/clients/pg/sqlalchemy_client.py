"""Prints the tables t and other as seen by SQLAlchemy's inspector and reflection."""

import sys
from datetime import datetime

import sqlalchemy
from sqlalchemy import MetaData, create_engine, inspect, select

engine = create_engine(f"postgresql+psycopg://admin:quest@127.0.0.1:{sys.argv[1]}/qdb")
inspector = inspect(engine)
print("schemas", inspector.get_schema_names())
print("tables", sorted(inspector.get_table_names()), inspector.has_table("t"), inspector.has_table("nobody"))
print("views", inspector.get_view_names(), inspector.get_materialized_view_names(), inspector.get_sequence_names())
for column in inspector.get_columns("t"):
    print("column", column["name"], repr(column["type"]), column["nullable"], column["default"])
print("primary key", inspector.get_pk_constraint("t")["constrained_columns"])
for ask in ("get_foreign_keys", "get_indexes", "get_unique_constraints", "get_check_constraints", "get_table_options"):
    print(ask, getattr(inspector, ask)("t"))
print("comment", inspector.get_table_comment("t"))
print("types", inspector.get_enums(), inspector.get_domains())
try:
    inspector.get_columns("nobody")
except sqlalchemy.exc.NoSuchTableError as error:
    print("no table", error)

metadata = MetaData()
metadata.reflect(bind=engine)
t = metadata.tables["t"]
print("reflected", sorted(metadata.tables), [column.name for column in t.columns])
with engine.connect() as connection:
    connection.execute(t.insert().values(x=7, v="seven", ts=datetime(2026, 1, 1)))
    connection.commit()
    print("rows", connection.execute(select(t.c.x, t.c.v).where(t.c.x == 7)).all())
