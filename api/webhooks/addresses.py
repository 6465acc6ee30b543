"""Allowed addresses of receivers: public ones by https; those of QUORUM_WEBHOOK_NETWORKS also by http."""

from ipaddress import ip_address

import httpx2
from django.conf import settings
from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.url_fetch.addresses import (
    PORTS,
    FetchTarget,
    WebAddress,
    is_number,
    is_public,
    literal_address,
    resolve_host,
)
from corpus.url_fetch.client import WebClient
from corpus.url_fetch.problems import NoPage

LONGEST = 2_000


def check_url(url: str) -> httpx2.URL:
    """Return the parts of a receiver's address. Raises BadInput for one that is never allowed."""
    if len(url) > LONGEST or any(character.isspace() or not character.isprintable() for character in url):
        raise BadInput(_("The address contains spaces or is too long. Copy it from the receiver's documentation."))
    try:
        parts = httpx2.URL(url)
        port = PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
    except (httpx2.InvalidURL, ValueError):
        parts, port = httpx2.URL(), 0
    if parts.scheme not in PORTS or not parts.host or not 0 < port < 1 << 16:
        raise BadInput(_("This is not a valid address. It begins with https:// and names a host."))
    # http only for networks that the operator has named: elsewhere anybody on the route could read bodies.
    if parts.scheme == "http" and not settings.WEBHOOK_NETWORKS:
        raise BadInput(_("Webhooks are sent over https only. Use an address that begins with https://."))
    # A password would be visible on the webhook's page, and a fragment is never sent.
    if parts.userinfo or parts.fragment:
        raise BadInput(_("The address contains a user name, a password or a fragment (#). Remove it."))
    if is_number(parts.host):
        words = _("%(host)s is a number and no host. Write the receiver's name, or its address as 203.0.113.7.")
        raise BadInput(words % {"host": parts.host})
    # IP addresses are refused at once; names are resolved and checked before each request.
    if (literal := literal_address(parts.host)) and not _is_allowed(literal, parts.scheme):
        words = _(
            "%(host)s is not on the public network. Use a public address, or ask an administrator of this site to "
            "allow it (QUORUM_WEBHOOK_NETWORKS)."
        )
        raise BadInput(words % {"host": parts.host})
    return parts


class ReceiverClient(WebClient):
    """The client of receivers: any port, also on the networks of QUORUM_WEBHOOK_NETWORKS, and no redirects."""

    def check(self, url: str) -> WebAddress:
        """Return the parts of a URL, which `check_url` checked when it was entered."""
        try:
            parts = httpx2.URL(url)
        except (httpx2.InvalidURL, ValueError):
            raise NoPage("address-none") from None
        if parts.scheme not in PORTS:
            raise NoPage("scheme")
        # Only URLs have IPv6 addresses in brackets.
        host, target = parts.raw_host.decode().strip("[]"), parts.raw_path.decode()
        # What goes by http goes to a network that the operator has named, else `locate` refuses it.
        is_allowed = parts.scheme == "http"
        return WebAddress(parts.scheme, host, parts.port or PORTS[parts.scheme], target, is_allowed)

    def locate(self, address: WebAddress) -> list[FetchTarget]:
        """Return the addresses of a receiver, resolving the name once. Raises NoPage."""
        targets = resolve_host(address.host, address.port)
        # All of them, since a name may hide one private address among public ones.
        if not targets or not all(_is_allowed(number, address.scheme) for number, _endpoint in targets):
            raise NoPage("not-public", host=address.host)
        return targets


def _is_allowed(address: str, scheme: str) -> bool:
    if scheme == "https" and is_public(address):
        return True
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in settings.WEBHOOK_NETWORKS)
