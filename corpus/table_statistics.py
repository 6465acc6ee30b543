"""PostgreSQL's statistics of tables that have just grown.

A plan that a kept connection made while a table was small reads all of it, until the server looks
at the table again by itself: up to a minute later.
"""

from functools import partial

from django.db import connection, models, transaction

LARGE = 1000  # Rows. With fewer, any plan will do.


def renew_statistics(added: int, *tables: type[models.Model]) -> None:
    """Renew the statistics of these tables when the transaction ends, if a large number of rows was added to them."""
    if added >= LARGE:
        transaction.on_commit(partial(_analyze_tables, tables))


def _analyze_tables(tables: tuple[type[models.Model], ...]) -> None:
    names = ", ".join(connection.ops.quote_name(table._meta.db_table) for table in tables)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {names}")
