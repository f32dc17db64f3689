"""questdb-connect, QuestDB's dialect of SQLAlchemy 1.4, which Superset uses: tables of the ORM, rows, reflection."""

import sys
from datetime import datetime

import questdb_connect as qdb
import sqlalchemy
from questdb_connect.dialect import create_engine, create_superset_engine
from sqlalchemy.orm import Session, declarative_base

ROWS = [("a", 1.5, 2, True, datetime(2026, 1, 1, 1)), ("b", -2.0, None, False, datetime(2026, 1, 2))]


def use(engine):
    base = declarative_base(metadata=sqlalchemy.MetaData())

    class Signal(base):
        __tablename__ = "signals"
        __table_args__ = (qdb.QDBTableEngine("signals", "ts", qdb.PartitionBy.HOUR, is_wal=True),)
        source = sqlalchemy.Column(qdb.Symbol)
        value = sqlalchemy.Column(qdb.Double)
        count = sqlalchemy.Column(qdb.Long)
        hot = sqlalchemy.Column(qdb.Boolean)
        ts = sqlalchemy.Column(qdb.Timestamp, primary_key=True)

    base.metadata.drop_all(engine)
    base.metadata.create_all(engine)
    names = ["source", "value", "count", "hot", "ts"]
    with Session(engine) as session:
        session.add_all([Signal(**dict(zip(names, row))) for row in ROWS])
        session.commit()
        columns = [getattr(Signal, name) for name in names]
        print([tuple(row) for row in session.query(*columns).order_by(Signal.ts).all()] == ROWS)
        sums = session.query(Signal.source, sqlalchemy.func.sum(Signal.value)).group_by(Signal.source)
        print(sums.order_by(Signal.source).all(), session.query(Signal).filter(Signal.source.in_(["a", "c"])).count())
    inspector = sqlalchemy.inspect(engine)
    print(inspector.get_table_names(), inspector.has_table("signals"), inspector.has_table("nobody"))
    reflected = sqlalchemy.Table("signals", sqlalchemy.MetaData(), autoload_with=engine)
    print([(column.name, str(column.type), column.primary_key) for column in reflected.columns])


for create in [create_engine, create_superset_engine]:
    use(create("127.0.0.1", sys.argv[1], "admin", "quest"))
