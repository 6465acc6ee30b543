"""The networks of visitors, by which the audit log tells attackers apart."""

import ipaddress

from allauth.account.adapter import get_adapter
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

# The size of a network that a provider usually assigns to a household or an office, in bits of the address.
IPV4_PREFIX_LENGTH = 24
IPV6_PREFIX_LENGTH = 48


def client_network(request: HttpRequest) -> str:
    """Return the network from which a visitor comes, such as "203.0.113.0/24"; "" if their address is unknown.

    The audit log stores the network instead of the address: it tells attackers apart, but identifies nobody.
    """
    try:
        address = ipaddress.ip_address(get_adapter().get_client_ip(request))
    except (PermissionDenied, ValueError):
        return ""
    prefix_length = IPV4_PREFIX_LENGTH if address.version == 4 else IPV6_PREFIX_LENGTH
    return str(ipaddress.ip_network(f"{address}/{prefix_length}", strict=False))
