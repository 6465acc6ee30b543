"""No address is lost when code moves: those from before the rooms (addresses.txt) answer or redirect."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from django.test import Client
from django.urls import Resolver404, URLPattern, URLResolver, get_resolver, resolve

from config.former_addresses import current_address

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
    moved = set(KNOWN) - set(addresses(get_resolver().url_patterns)) - BEFORE_DJANGO
    lost = {address for address in moved if not answers(current_address(example_of(address)).partition("#")[0])}
    assert lost == set(), "redirect from the old address to the new one (config/former_addresses.py)"


def example_of(address: str) -> str:
    """A path that this pattern of an address matches."""
    return "/" + re.sub(r"<(\w+):\w+>", lambda found: "7" if found[1] == "int" else "word", address)


def answers(path: str) -> bool:
    """Whether any view takes this path."""
    try:
        return bool(resolve(path.partition("?")[0]))
    except Resolver404:
        return False


def test_a_former_address_leads_to_todays_with_what_was_asked_and_sent():
    moved = Client().get("/c/books/care/?page=2")
    assert (moved.status_code, moved["Location"]) == (308, "/c/books/quality-control/?page=2")
    assert (
        Client().post("/c/books/care/aside/3/back/")["Location"] == "/c/books/quality-control/exclusions/3/reinstate/"
    )
    assert Client().get("/c/books/caring/").status_code == 404


def test_what_answers_before_django_answers_still():
    assert {address: Client().get(f"/{address}").status_code for address in BEFORE_DJANGO} == {"healthz": 200}
