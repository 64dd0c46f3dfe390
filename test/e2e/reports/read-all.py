"""Reads relations with a client in several time zones. Prints each row as JSON: zone, relation, then its cells as text.

Arguments: client, URL, zones with commas, then per relation its name and the kinds of its columns: name|kind,kind
"""

import datetime
import decimal
import json
import sys


def rows_of_psycopg2(url, zone):
    import psycopg2

    connection = psycopg2.connect(url, options=f"-c timezone={zone}")

    def read(relation):
        cursor = connection.cursor()
        cursor.execute(f"SELECT * FROM {relation}")
        return cursor.fetchall()

    return read


def rows_of_psycopg(url, zone, binary=False):
    import psycopg

    connection = psycopg.connect(url, options=f"-c timezone={zone}")
    return lambda relation: connection.cursor(binary=binary).execute(f"SELECT * FROM {relation}").fetchall()


def rows_of_pandas(url, zone):
    import pandas
    from sqlalchemy import create_engine

    address = url.replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(address, connect_args={"options": f"-c timezone={zone}"})

    def is_null(value):
        return not isinstance(value, (list, dict)) and pandas.isna(value)

    def read(relation):
        frame = pandas.read_sql(f"SELECT * FROM {relation}", engine, coerce_float=False).astype(object)
        return [[None if is_null(value) else value for value in row] for row in frame.values.tolist()]

    return read


READERS = {
    "psycopg2": rows_of_psycopg2,
    "psycopg": rows_of_psycopg,
    "psycopg, binary": lambda url, zone: rows_of_psycopg(url, zone, binary=True),
    "pandas": rows_of_pandas,
}


def written(value, kind):
    if value is None:
        return None
    if kind in ("json", "list"):
        return json.dumps(value)
    if kind == "time":
        return value.astimezone(datetime.timezone.utc).isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    return str(value)


client, url, zones, *relations = sys.argv[1:]
for zone in zones.split(","):
    read = READERS[client](url, zone)
    for relation in relations:
        name, kinds = relation.split("|")
        for row in read(name):
            print(json.dumps([zone, name, *(written(*cell) for cell in zip(row, kinds.split(","), strict=True))]))
