"""Which accounts are the user's own servers: they answer one call after another, and slowly. Pure."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from judges.presets import PRESETS

KINDS = {"ollama", "llama-cpp", "vllm", "lm-studio", "sglang", "tgi"}
OWN_NAMES = (".local", ".internal", ".lan", ".home.arpa", ".localhost", ".svc")
# Time limits of a call: hosted models take up to a minute; the user's own computer is slower.
HOSTED_S, OWN_S = 60.0, 300.0
LONGEST_S = 3600  # The longest time limit that a judges file takes.


def is_own_server(provider: str, base_url: str) -> bool:
    """Return whether the account is the user's own server, by its kind or by its private address."""
    if provider in KINDS:
        return True
    preset = PRESETS.get(provider)
    host = (urlsplit(base_url or (preset.base_url if preset else "")).hostname or "").rstrip(".")
    try:
        return ip_address(host).is_private
    except ValueError:
        # Names without a dot belong to a private network, such as the services of Docker.
        return bool(host) and ("." not in host or host.endswith(OWN_NAMES))


def advised_timeout(seconds: float) -> int:
    """Return a time limit of at least `seconds` to advise: whole half minutes that a judges file takes."""
    return min(LONGEST_S, max(30, 30 * -(-int(seconds) // 30)))
