"""Django's PostgreSQL backend, whose pool hands out living connections without asking the server each time."""

import select
from typing import Any

from django.db.backends.postgresql import base
from psycopg import Connection, OperationalError
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    """As Django's, with CONN_HEALTH_CHECKS off and the health of a pooled connection read from its socket."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection[Any]:
        """A connection that was alive a moment ago; dead ones of the pool are replaced."""
        connection: Connection[Any] = super().get_new_connection(conn_params)
        while self.pool and not alive(connection):
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection


def alive(connection: Connection[Any]) -> bool:
    """False when the server has ended this idle connection.

    A server that ends says so, and the socket becomes readable; an idle one that lives says nothing. Only what has
    something to read is asked, so a request saves the empty statement of psycopg's own check, there and back.
    """
    try:
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        if poll.poll(0):
            ConnectionPool.check_connection(connection)
    except OperationalError:
        return False
    return True
