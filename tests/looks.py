"""Looks in which pages are opened in a browser, and what runs on the one that every run takes."""

from tests.stages import first_quick

LOOKS = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 375, "height": 700}, "has_touch": True, "is_mobile": True},
}
EACH_LOOK = first_quick(LOOKS)
SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
