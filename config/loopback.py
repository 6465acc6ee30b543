"""QUORUM_LOOPBACK_ONLY=1: this process and its children only reach this machine, so that tests cannot cost money.

An audit hook sees every connection that Python opens, whichever library opens it, and cannot be removed again.
"""

import ipaddress
import socket
import sys
from typing import Any

EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"})
_enforced = False


class LeavesTheMachine(ConnectionError):
    """A connection to another machine although only loopback is allowed."""


def enforce() -> None:
    """Refuse connections to other machines from now on, until this process ends."""
    global _enforced
    if not _enforced:
        sys.addaudithook(_audit_hook)
        _enforced = True


def _audit_hook(event: str, args: tuple[Any, ...]) -> None:
    if event not in EVENTS:
        return
    if event == "socket.getaddrinfo":
        host = args[0]
    else:
        connection, address = args[0], args[1]
        # Unix sockets never leave this machine.
        if connection.family not in (socket.AF_INET, socket.AF_INET6) or not address:
            return
        host = address[0]
    if not is_local(host):
        raise LeavesTheMachine(f"{event} to {host!r} refused: QUORUM_LOOPBACK_ONLY is set")


def is_local(host: str | bytes | None) -> bool:
    """Return whether a host is this machine, which is also the meaning of None and "" in socket functions."""
    name = host.decode() if isinstance(host, bytes) else host
    if not name or name == "localhost" or name == socket.gethostname():
        return True
    try:
        address = ipaddress.ip_address(name.split("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
