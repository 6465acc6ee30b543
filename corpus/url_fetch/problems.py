"""Reasons why a page could not be fetched: a stored code with values, and a message in the reader's language."""

import json
from typing import Any

from django.utils.translation import gettext as _

from charts.translation import gettext_noop
from corpus.errors import BadInput

# By code. Codes are stored, so they never change their meaning.
WORDS = {
    "address-odd": gettext_noop("The address contains spaces or is too long. Copy it from the browser."),
    "address-none": gettext_noop("This is not a valid address. Copy it from the browser."),
    "scheme": gettext_noop("Only addresses that begin with http:// or https:// can be fetched."),
    "password": gettext_noop("The address contains a user name or password. Remove them."),
    "port": gettext_noop("Only the standard ports of http and https are allowed. Remove the port."),
    "name": gettext_noop("%(host)s could not be found. Check the address."),
    "not-public": gettext_noop("%(host)s is not on the public network. Only public pages can be fetched."),
    "nowhere": gettext_noop("The page redirects without giving an address."),
    "redirects": gettext_noop("The page redirects more than %(most)d times."),
    "slow": gettext_noop("The page did not load within %(seconds)d seconds."),
    "unread": gettext_noop("%(host)s could not be read: %(error)s"),
    "tls": gettext_noop(
        "%(host)s could not be read over https: %(error)s. Check that its certificate is valid for this name and that "
        "this machine trusts its authority."
    ),
    "moved": gettext_noop("The server redirects to %(url)s. Use that address."),
    "plain-http": gettext_noop("Keys are not sent to %(host)s over http. Use an address that begins with https://."),
    "header": gettext_noop("The header %(name)s contains a line break or another character that cannot be sent."),
    "status": gettext_noop("The server responded with status %(status)d and sent no page."),
    "media": gettext_noop("This is %(media)s, not a text page. Save its text as a file and upload it."),
    "packed": gettext_noop("The page is compressed as %(coding)s, which is not supported."),
    "cut-off": gettext_noop("The connection was interrupted. Try again."),
    "large": gettext_noop("The page is larger than %(most)d MB. Save the part that you need and upload it."),
    "robots": gettext_noop("%(host)s does not allow programs to fetch this page (robots.txt)."),
    "no-text": gettext_noop("No text found on the page. Copy the text that you need and paste it."),
    "not-utf-8": gettext_noop("The text is not UTF-8. Convert the file, or copy the text that you need and paste it."),
    "broken": gettext_noop("The page could not be read. Copy the text that you need and paste it."),
    "reader": gettext_noop("The page could not be parsed. Copy the text that you need and paste it."),
}


class NoPage(BadInput):
    """A page could not be fetched. The message is in the current language; `stored` goes into the database."""

    def __init__(self, code: str, **values: str | int) -> None:
        super().__init__(_(WORDS[code]) % values)
        self.code, self.values = code, values
        self.stored = json.dumps([code, values])


def read_problem(stored: str) -> tuple[str, dict[str, Any]]:
    """Return a stored problem's code and values; an unreadable one is itself the code."""
    try:
        code, values = json.loads(stored)
        return str(code), dict(values)
    except (ValueError, TypeError):
        return stored, {}


def describe_problem(stored: str) -> str:
    """Return the message of a stored problem; "" for none, and the stored text for an unknown code."""
    code, values = read_problem(stored)
    try:
        return str(_(WORDS[code]) % values)
    except (KeyError, TypeError):
        return stored
