"""Looks in which pages are opened in a browser, and what runs on the one that every run takes."""

from collections.abc import Callable, Iterable
from typing import Any

from tests.annotation.people.accounts.test_reach import OVERFLOW
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
    for options in LOOKS.values():
        page = new_page(user=user, **options)
        for address in addresses:
            page.goto(address)
            assert violations(page) == [], (address, violations(page))
            assert page.evaluate(OVERFLOW) == [], f"{address} is wider than the screen"
