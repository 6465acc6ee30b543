"""Network addresses from which pages may be fetched: public ones only.

Only `resolve_host` turns a name into addresses. The connection is opened to the address that was
checked, so that a name that resolves differently a moment later changes nothing.
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
# Of IPv6 only global unicast addresses: no mapped, compatible or translated IPv4, nothing local.
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
# Teredo and other blocks, documentation, 6to4: each may carry another address.
_NOT_GLOBAL_6 = [ipaddress.IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]


# Names of this machine in hosts files; `localhost` and its subdomains are reserved for it by RFC 6761.
_LOOPBACK_NAMES = {"localhost.localdomain", "localhost6", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback"}
# Resolvers read such a name as a number: 2130706433, 0x7f000001, 127.1 and 0177.0.0.1 are all 127.0.0.1.
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")

# An address, and the (address, port) to which a socket is opened.
FetchTarget = tuple[str, tuple[str, int]]


def resolve_host(host: str, port: int) -> list[FetchTarget]:
    """Return the addresses of a name, or of an address in any notation. Raises NoPage where there are none."""
    try:
        records = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise NoPage("name", host=host) from None
    return [(str(address[0]), (str(address[0]), port)) for *_rest, address in records]


def resolve_public(host: str, port: int) -> FetchTarget:
    """Return where to open the connection. Raises NoPage unless all addresses of the name are public."""
    targets = resolve_host(host, port)
    # All of them, since a name may hide one private address among public ones.
    if not targets or not all(is_public(address) for address, _endpoint in targets):
        raise NoPage("not-public", host=host)
    return targets[0]


def literal_address(host: str) -> str:
    """Return the IP address that a host is without a resolver, 127.0.0.1 for this machine's names; "" for others."""
    host = host.lower().removesuffix(".")
    if host == "localhost" or host.endswith(".localhost") or host in _LOOPBACK_NAMES:
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return ""


def is_number(host: str) -> bool:
    """Return whether a host is an address in an unusual notation, such as one number, mostly used to hide it."""
    host = host.lower().removesuffix(".")
    return not literal_address(host) and _NUMBER.fullmatch(host) is not None


def is_public(address: str) -> bool:
    """Return whether an address is on the public internet."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv4Address):
        return not any(parsed in block for block in _PRIVATE_4)
    return parsed in _GLOBAL_6 and not any(parsed in block for block in _NOT_GLOBAL_6)
