"""Looks in which pages are opened in a browser, and what runs on the one that every run takes."""

from collections.abc import Callable, Iterable
from typing import Any

from tests.annotation.people.accounts.test_reach import OVERFLOW
from tests.plugin_browser import COLOURS
from tests.stages import first_quick

LOOKS = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 375, "height": 700}, "has_touch": True, "is_mobile": True},
}
EACH_LOOK = first_quick(LOOKS)
SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def check_looks(new_page: Callable[..., Any], violations: Any, user: Any, addresses: Iterable[str]) -> None:
    """In every look the pages have no violation, and nothing is wider than the screen."""
    addresses = list(addresses)
    for look in ("light", "phone"):
        page = new_page(user=user, reduced_motion="reduce", **LOOKS[look])
        for address in addresses:
            page.goto(address)
            assert violations(page) == [], (address, violations(page))
            assert page.evaluate(OVERFLOW) == [], f"{address} is wider than the screen"
            if look == "light":
                page.emulate_media(color_scheme="dark")
                assert violations(page, *COLOURS) == [], (address, "dark", violations(page, *COLOURS))
                page.emulate_media(color_scheme="light")
