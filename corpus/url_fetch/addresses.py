"""Addresses that pages may be fetched from: public ones.

`resolve_host` alone turns a name into addresses. The connection is opened to what was checked: a
name that answers otherwise a moment later changes nothing.
"""

import ipaddress
import re
import socket

from corpus.url_fetch.problems import NoPage

# This machine, private networks, carriers' networks, link-local, documentation, benchmarks, multicast, reserved.
_PRIVATE_4 = [
    ipaddress.IPv4Network(block)
    for block in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
        *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
]
# Of IPv6 only what is given out for the open network: no mapped, compatible or translated IPv4, nothing local.
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
# Teredo and other blocks, documentation, 6to4: each may carry another address.
_NOT_GLOBAL_6 = [ipaddress.IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]


# Names of this machine in the files of hosts; `localhost` and all below it are its by RFC 6761.
_LOOPBACK_NAMES = {"localhost.localdomain", "localhost6", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback"}
# A name that ends so is a number to whoever resolves it: 2130706433, 0x7f000001, 127.1 and 0177.0.0.1 are 127.0.0.1.
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")

# An address, and where a socket that means it is opened: the same, with the port.
FetchTarget = tuple[str, tuple[str, int]]


def resolve_host(host: str, port: int) -> list[FetchTarget]:
    """Return the addresses of a name (or of an address, however written). NoPage without one."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise NoPage("name", host=host) from None
    return [(str(address[0]), (str(address[0]), port)) for *_rest, address in found]


def place_of(host: str, port: int) -> FetchTarget:
    """Return where to open the connection. NoPage unless every address of the name is public."""
    places = resolve_host(host, port)
    # All of them: a name may hide one private address among public ones.
    if not places or not all(is_public(address) for address, _endpoint in places):
        raise NoPage("not-public", host=host)
    return places[0]


def literal_address(host: str) -> str:
    """Return the IP address that a host is without a resolver, this machine's own names included; "" for a name."""
    host = host.lower().removesuffix(".")
    if host == "localhost" or host.endswith(".localhost") or host in _LOOPBACK_NAMES:
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return ""


def is_number(host: str) -> bool:
    """Return whether a host is written as a number that is no address of four numbers: most often to hide one."""
    host = host.lower().removesuffix(".")
    return not literal_address(host) and _NUMBER.fullmatch(host) is not None


def is_public(address: str) -> bool:
    """Return whether an address belongs to the open network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv4Address):
        return not any(found in block for block in _PRIVATE_4)
    return found in _GLOBAL_6 and not any(found in block for block in _NOT_GLOBAL_6)
