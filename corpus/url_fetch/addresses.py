"""Network addresses to which requests may go: public ones, and those of hosts that the site's owner allowed.

Only `resolve_host` turns a name into addresses. The connection is opened to the address that was
checked, so that a name that resolves differently a moment later changes nothing.
"""

import ipaddress
import re
import socket
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from corpus.url_fetch.problems import NoPage

PORTS = {"http": 80, "https": 443}
LONGEST_URL = 2_000
_SAFE = "%/:=&?~+!$,;'@()*[]"

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


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A checked URL. `host`: ASCII, an IPv6 address without brackets; `target`: quoted path with query.

    `is_allowed`: the site's owner allowed this host and port, so it may be private and take secrets by http.
    """

    scheme: str
    host: str
    port: int
    target: str
    is_allowed: bool = False

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def host_header(self) -> str:
        return bracket_host(self.host) + ("" if self.port == PORTS[self.scheme] else f":{self.port}")


def bracket_host(host: str) -> str:
    """Return a host as URLs have it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def check_url(
    url: str, *, allowed: frozenset[str] = frozenset(), any_port: bool = False, longest: int = LONGEST_URL
) -> WebAddress:
    """Return the parts of an http(s) URL. Raises NoPage for one without a host, with a password, or never allowed.

    allowed: "host:port" of servers that may be on any network. any_port: whether public hosts may have other
    ports than 80 and 443.
    """
    if len(url) > longest or any(character.isspace() or not character.isprintable() for character in url):
        raise NoPage("address-odd")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise NoPage("address-none") from None
    if parts.scheme not in PORTS or not host:
        raise NoPage("scheme")
    if parts.username is not None or parts.password is not None:
        raise NoPage("password")
    try:
        host = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        raise NoPage("name", host=host) from None
    port = PORTS[parts.scheme] if port is None else port
    is_allowed = f"{bracket_host(host)}:{port}" in allowed
    if port != PORTS[parts.scheme] and not (any_port or is_allowed):
        raise NoPage("port")
    # Refused here, so that the form can say so: such addresses are never public.
    literal = literal_address(host)
    if is_number(host) or (literal and not is_allowed and not is_public(literal)):
        raise NoPage("not-public", host=host)
    target = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE)}" if parts.query else "")
    return WebAddress(parts.scheme, host, port, target, is_allowed)


def resolve_host(host: str, port: int) -> list[FetchTarget]:
    """Return the addresses of a name, or of an address in any notation. Raises NoPage where there are none."""
    try:
        records = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise NoPage("name", host=host) from None
    return [(str(address[0]), (str(address[0]), port)) for *_rest, address in records]


def find_targets(address: WebAddress) -> list[FetchTarget]:
    """Return where a connection may be opened. Raises NoPage unless all addresses of the name are public."""
    targets = resolve_host(address.host, address.port)
    # All of them, since a name may hide one private address among public ones.
    if not targets or not (address.is_allowed or all(is_public(number) for number, _endpoint in targets)):
        raise NoPage("not-public", host=address.host)
    return targets


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
