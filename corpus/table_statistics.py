"""PostgreSQL's statistics of tables that have just grown.

A plan that a persistent connection made while a table was small reads the whole table, until the
server renews its statistics by itself, which may take a minute.
"""

from django.db import connection, models, transaction

LARGE = 1000  # Rows. With fewer, any plan is fast enough.


def renew_statistics(added: int, *tables: type[models.Model]) -> None:
    """Renew the statistics of these tables on commit, if a large number of rows was added to them."""

    def analyze() -> None:
        names = ", ".join(connection.ops.quote_name(table._meta.db_table) for table in tables)
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {names}")

    if added >= LARGE:
        transaction.on_commit(analyze)
