"""Why there is no page: a code with its values, which is stored, and its words in the language of who reads them."""

import json

from django.utils.translation import gettext as _

from charts.translation import gettext_noop
from corpus.errors import BadInput

# By code. A code never changes its meaning: it is stored.
WORDS = {
    "address-odd": gettext_noop("The address holds white space, or is too long: copy it from the browser."),
    "address-none": gettext_noop("This is not an address: copy it from the browser."),
    "scheme": gettext_noop("Only addresses that begin with http:// or https:// can be fetched."),
    "password": gettext_noop("The address holds a name or password: leave them out."),
    "port": gettext_noop("Only the usual ports of http and https are fetched from: leave the port out."),
    "name": gettext_noop("%(host)s is not a name that can be found: look at the address."),
    "not-public": gettext_noop(
        "%(host)s is not on the public network: only pages that everybody can open are fetched."
    ),
    "nowhere": gettext_noop("The page points elsewhere and does not say where."),
    "redirects": gettext_noop("The page points elsewhere more than %(most)d times."),
    "slow": gettext_noop("The page did not come within %(seconds)d seconds."),
    "unread": gettext_noop("%(host)s could not be read: %(error)s"),
    "status": gettext_noop("The server answered %(status)d: there is no page."),
    "media": gettext_noop("This is %(media)s, not a page of text: save its text as a file and upload it."),
    "packed": gettext_noop("The page is packed as %(coding)s, which was not asked for."),
    "cut-off": gettext_noop("The connection ended in the middle of the page: try again."),
    "large": gettext_noop("The page is larger than %(most)d MB: save what you need of it and upload that."),
    "no-text": gettext_noop("No text was found on the page: copy what you need and paste it."),
    "not-utf-8": gettext_noop("The text is not UTF-8: convert the file, or copy what you need and paste it."),
    "broken": gettext_noop("The page could not be read: copy what you need and paste it."),
    "reader": gettext_noop("The page broke the reader: copy what you need and paste it."),
}


class NoPage(BadInput):
    """A page that cannot be had: why, in the language of now, and `stored` for the database."""

    def __init__(self, code: str, **values: str | int) -> None:
        super().__init__(_(WORDS[code]) % values)
        self.stored = json.dumps([code, values])


def describe_problem(stored: str) -> str:
    """Return a stored problem in words; "" for none. An unknown code is shown as it stands."""
    try:
        code, values = json.loads(stored)
        return str(_(WORDS[code]) % values)
    except (ValueError, KeyError, TypeError):
        return stored
