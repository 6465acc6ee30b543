"""No address is lost when code moves: those from before the rooms (addresses.txt) answer or redirect."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

KNOWN = Path(__file__).with_name("addresses.txt").read_text().splitlines()
BEFORE_DJANGO = {"healthz"}
"""Answered by a middleware, before anything asks for the database."""


def addresses(patterns: Sequence[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    """Every address of the site as its pattern."""
    for pattern in patterns:
        address = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, address)
        else:
            yield address


def test_every_address_that_was_known_is_known_still():
    assert len(KNOWN) > 170
    lost = set(KNOWN) - set(addresses(get_resolver().url_patterns)) - BEFORE_DJANGO
    assert lost == set(), "redirect from the old address to the new one"


def test_what_answers_before_django_answers_still():
    assert {address: Client().get(f"/{address}").status_code for address in BEFORE_DJANGO} == {"healthz": 200}
