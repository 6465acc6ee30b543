"""Django's PostgreSQL backend, whose connections are known to live without asking the server each time."""

import select
from typing import Any

from django.db.backends.postgresql import base
from psycopg import Connection, OperationalError
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool

FIRST_PLANS = 16
"""Requests of a connection after which its plans are made anew for the first time."""


class DatabaseWrapper(base.DatabaseWrapper):
    """As Django's, with the health of a connection read from its socket: pooled (workers) or kept by a thread (web)."""

    requests = 0

    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection[Any]:
        """A connection that was alive a moment ago; dead ones of the pool are replaced."""
        connection: Connection[Any] = super().get_new_connection(conn_params)
        self.requests = 0
        while self.pool and not alive(connection):
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection

    def is_usable(self) -> bool:
        """The connection that a thread kept lives, in no transaction; once in a request (CONN_HEALTH_CHECKS)."""
        usable = alive(self.connection) and self.connection.info.transaction_status == TransactionStatus.IDLE
        if usable:
            self._plan_anew()
        return usable

    def _plan_anew(self) -> None:
        """Forget the plans of prepared statements at the 16th request, the 32nd, the 64th and so on.

        A plan that was made while a table was small reads all of it, and is kept however large the table grows until
        the server's own statistics are renewed, up to a minute later.
        """
        self.requests += 1
        if self.requests >= FIRST_PLANS and self.requests.bit_count() == 1:
            self.connection.execute("DISCARD PLANS")

    def ensure_connection(self) -> None:
        """As Django's cursors do: what this thread kept is looked at before it is used again."""
        self.close_if_health_check_failed()
        super().ensure_connection()


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
