"""gunicorn's threaded worker, where connections and work are shared out evenly (docs/adr/0042).

- *Between processes.* They share one socket, and whoever wakes first takes what has come: of 32 browsers that arrived
  together one process was seen to take 29, whose people waited five times as long as the other three. Here a process
  that holds more than another leaves a new connection to it.
- *Within a process.* Few requests are worked on at once, because more only take each other's processor cache, and
  PostgreSQL's. A long one, a download say, does not count among them, nor one that only waits (corpus.turns).
- A browser that connects and asks for nothing yet holds no thread.
"""

import os
import time
from collections import deque
from concurrent.futures import Future
from ctypes import c_int
from functools import partial
from multiprocessing.sharedctypes import RawArray
from selectors import EVENT_READ
from socket import socket
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

from config.threads import Threads
from corpus import turns

AT_ONCE = 2
"""Requests that a process works on at once: one computes, the other waits for PostgreSQL."""
LONG_S = 0.25
"""A request that has taken so long lets the next one begin."""
YIELDS_S = 0.01
"""How long a process that holds more leaves a new connection to the others, before it takes it all the same."""
LATE_S = 0.1
"""What comes so long after that is another connection."""
MOST_PROCESSES = 64
FREE = -1

_held = RawArray(c_int, [FREE] * MOST_PROCESSES)
"""Connections of each process, shared by all that are forked from here."""


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """As gunicorn's; all but `handle` runs in its main thread."""

    place = FREE
    """Where in `_held`; FREE where all were taken: then it leaves nothing to others."""
    _connections = 0
    _most_connections = 0
    _has_yielded = False
    _yields_until = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: deque[TConn] = deque()
        self._begun: dict[TConn, float] = {}

    def get_thread_pool(self) -> Threads:
        """Threads for as many requests as `_go_on` lets begin."""
        return Threads()

    def keep_to_a_processor(self) -> None:
        """Where the site has as many processes as processors, each has its own.

        Left to itself Linux lets two of them share one for moments in which the other idles: a tenth of the time.
        """
        if self.place == FREE or not hasattr(os, "sched_getaffinity"):
            return
        processors = sorted(os.sched_getaffinity(0))
        if len(processors) == self.cfg.workers > self.place:
            os.sched_setaffinity(0, {processors[self.place]})

    @property
    def nr_conns(self) -> int:
        """Its connections."""
        return self._connections

    @nr_conns.setter
    def nr_conns(self, number: int) -> None:
        self._connections = number
        if self.place != FREE:
            _held[self.place] = number

    @property
    def worker_connections(self) -> int:
        """The most it may hold: none more while it leaves new ones to the others."""
        return 0 if time.monotonic() < self._yields_until else self._most_connections

    @worker_connections.setter
    def worker_connections(self, number: int) -> None:
        self._most_connections = number

    def accept(self, listener: socket) -> None:
        """Take a connection; where others hold fewer, only if none of them took it meanwhile."""
        now = time.monotonic()
        nobody_did = self._has_yielded and now < self._yields_until + LATE_S
        self._has_yielded = self._is_ahead() and not nobody_did
        if self._has_yielded:
            self._yields_until = now + YIELDS_S
        else:
            super().accept(listener)

    def _is_ahead(self) -> bool:
        return self.place != FREE and self._connections > min(held for held in _held if held != FREE)

    def enqueue_req(self, conn: TConn) -> None:
        """Work on it when its turn comes; a new connection's begins when it has asked for something."""
        if conn.initialized or conn.data_ready:
            self._waiting.append(conn)
            self._go_on()
        else:
            conn.sock.setblocking(False)
            conn.timeout = time.monotonic() + self.cfg.keepalive
            self.pending_conns.append(conn)
            self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def _go_on(self) -> None:
        while self._waiting and self._at_work() < AT_ONCE and len(self._begun) < self.cfg.threads:
            conn = self._waiting.popleft()
            self._begun[conn] = time.monotonic()
            super().enqueue_req(conn)

    def handle(self, conn: TConn) -> Any:
        """As gunicorn's, in a thread: the request may give its turn up."""
        turns.begin(partial(self.method_queue.defer, self._gave_up, conn))
        return super().handle(conn)

    def _gave_up(self, conn: TConn) -> None:
        if conn in self._begun:
            self._begun[conn] -= LONG_S
            self._go_on()

    def _at_work(self) -> int:
        long_ago = time.monotonic() - LONG_S
        return sum(begun > long_ago for begun in self._begun.values())

    def finish_request(self, conn: TConn, fs: "Future[Any]") -> None:
        """As gunicorn's, and the next one begins."""
        del self._begun[conn]
        super().finish_request(conn, fs)
        self._go_on()

    def _cap_keepalive(self, deadline: float) -> None:
        """As gunicorn's, when it stops; connections that asked for nothing yet are no reason to go on either."""
        super()._cap_keepalive(deadline)
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, deadline)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """As gunicorn's, and no longer than it yields, or until another request has become a long one."""
        now = time.monotonic()
        ends = [self._yields_until - now] + [begun + LONG_S - now for begun in self._begun.values() if self._waiting]
        super().wait_for_and_dispatch_events(min([timeout, *(end for end in ends if end > 0)]))
        self._go_on()


def enter(worker: Worker) -> None:
    """In the parent before a fork: give the process a place."""
    worker.place = next((place for place, held in enumerate(_held) if held == FREE), FREE)
    if worker.place != FREE:
        _held[worker.place] = 0


def leave(worker: Worker) -> None:
    """In the parent after a process ended: what it held counts no longer."""
    if worker.place != FREE:
        _held[worker.place] = FREE
