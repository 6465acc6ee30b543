"""Which accounts are servers of one's own: they work off calls one after another, and take their time. Pure."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from judges.presets import PRESETS

KINDS = {"ollama", "llama-cpp", "vllm", "lm-studio", "sglang", "tgi"}
OWN_NAMES = (".local", ".internal", ".lan", ".home.arpa", ".localhost", ".svc")
# The time limit of a call: hosted models take a minute; one's own computer is slower.
HOSTED_S, OWN_S = 60.0, 300.0


def is_own_server(provider: str, base_url: str) -> bool:
    """Return whether the account is a server of one's own: by its kind, or by an address that nobody else reaches."""
    if provider in KINDS:
        return True
    preset = PRESETS.get(provider)
    host = (urlsplit(base_url or (preset.base_url if preset else "")).hostname or "").rstrip(".")
    try:
        return ip_address(host).is_private
    except ValueError:
        # Names without a dot are those of one's own network, such as the services of Docker.
        return bool(host) and ("." not in host or host.endswith(OWN_NAMES))


def default_timeout(provider: str, base_url: str) -> float:
    """Return the seconds that a call of the account has, where its judge says nothing."""
    return OWN_S if is_own_server(provider, base_url) else HOSTED_S
