"""What is left of a page for its reader: no form that they may not send, no link to a page that they may not open.

Pages are written for admins. A viewer gets the same page, and a reader with a shared link gets a part of it; here each
loses what they cannot use, so that no template has to know them, and what is added to a page later is not forgotten.
"""

from collections.abc import Callable
from html import escape
from html.parser import HTMLParser
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, get_script_prefix, resolve
from django.utils.deprecation import MiddlewareMixin

from annotation.access.permissions import Scope
from annotation.models import Role
from corpus.access import Action, needed_action

VOID = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
# Parts that serve to go or to send somewhere, which a page without addresses loses.
CONTROLS = frozenset({"button", "input", "label", "nav", "select", "textarea"})
SENDING = ("hx-post", "hx-put", "hx-patch", "hx-delete")
May = Callable[[Action], bool]


def action_of(address: str, page: str, method: str) -> Action | None:
    """Return what a request to an address on a page needs; None for an address that is not of this site."""
    parts = urlsplit(address)
    path = parts.path or page
    if parts.scheme or parts.netloc or not path.startswith("/"):
        return None
    try:
        action: Action | None = getattr(resolve("/" + path.removeprefix(get_script_prefix())).func, "action", None)
    except Resolver404:
        return None
    return action and needed_action(action, method)


class ReadableHtml(HTMLParser):
    """Copies a page or fragment without the forms and links for which `may` says no. `page`: the page's own path.

    A link in a table is a value, whose text stays; elsewhere it offers something, and is removed as a whole.
    Links out of the site are those of a document and stay. `is_closed`: the reader may go nowhere at all. All links,
    forms and addresses go, and `may` says whose texts stay.
    """

    def __init__(self, may: May, page: str, *, is_closed: bool = False) -> None:
        super().__init__(convert_charrefs=False)
        self.may, self.page, self.is_closed = may, page, is_closed
        self.parts: list[str] = []
        self.tables = 0
        self.omitted, self.depth = "", 0  # The element that is left out now, and how many of its kind are open in it.
        self.names: dict[str, list[str]] = {"a": [], "form": []}  # What end tags of open elements are written as.

    def _allows(self, address: str, method: str = "GET") -> bool:
        action = action_of(address, self.page, method)
        return action is not None and self.may(action)

    def _name(self, tag: str, values: dict[str, str]) -> str:
        """Return the name under which an element is copied: "" for without its tags, "-" for not at all."""
        if tag == "a" and "href" in values:
            if values["href"].startswith("#"):
                return "a"
            action = action_of(values["href"], self.page, "GET")
            is_open = action is None or self.may(action)
            if is_open and not self.is_closed:
                return "a"
            is_control = "download" in values or "button" in values.get("class", "").split()
            return "-" if is_control or not (is_open or self.tables) else "span"
        if tag == "form":
            method = values.get("method", "get").upper()
            if self.is_closed:
                return "-" if method == "POST" else ""
            return "form" if self._allows(values.get("action", ""), method) else "-"
        if self.is_closed:
            return "-" if tag in CONTROLS or "menu-of" in values.get("class", "").split() else tag
        # A button that sends by itself does nothing without its address.
        return "-" if tag == "button" and any(self._drops(tag, key, value) for key, value in values.items()) else tag

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.omitted:
            self.depth += tag == self.omitted
            return
        self.tables += tag == "table"
        values = {name: value or "" for name, value in attrs}
        name = self._name(tag, values)
        if name == "-":
            if tag not in VOID:
                self.omitted, self.depth = tag, 1
            return
        if tag in self.names:
            self.names[tag].append(name)
        if not name:
            return
        dropped = {key for key in values if self._drops(name, key, values[key])}
        if not dropped and name == tag:
            self.parts.append(self.get_starttag_text() or "")
            return
        attributes = "".join(f' {key}="{escape(value)}"' for key, value in values.items() if key not in dropped)
        self.parts.append(f"<{name}{attributes}>")

    def _drops(self, name: str, key: str, value: str) -> bool:
        """Return whether an attribute goes: an address that the reader may not request, and what belongs to one."""
        if name == "span" and key in ("href", "download", "rel"):
            return True
        if self.is_closed:
            return key.startswith("hx-") or key == "data-poll"
        return (key == "hx-get" and not self._allows(value)) or (key in SENDING and not self._allows(value, "POST"))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Of the elements of a picture, which have no end tag then.
        if tag in self.names or tag in CONTROLS:
            super().handle_startendtag(tag, attrs)
        else:
            self._copy("%s", self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        if self.omitted:
            self.depth -= tag == self.omitted
            if not self.depth:
                self.omitted = ""
            return
        if tag in VOID:
            return
        self.tables -= tag == "table"
        name = self.names[tag].pop() if self.names.get(tag) else tag
        if name:
            self.parts.append(f"</{name}>")

    def _copy(self, form: str, text: str) -> None:
        if not self.omitted:
            self.parts.append(form % text)

    def handle_data(self, data: str) -> None:
        self._copy("%s", data)

    def handle_entityref(self, name: str) -> None:
        self._copy("&%s;", name)

    def handle_charref(self, name: str) -> None:
        self._copy("&#%s;", name)

    def handle_decl(self, decl: str) -> None:
        self._copy("<!%s>", decl)


def keep_readable(html: str, may: May, page: str, *, is_closed: bool = False) -> str:
    """Return a page or fragment without what its reader cannot use. `page`: its path, for relative addresses."""
    parser = ReadableHtml(may, page, is_closed=is_closed)
    parser.feed(html)
    parser.close()
    return "".join(parser.parts)


class ReadableMiddleware(MiddlewareMixin):
    """Takes out of a viewer's pages the forms and links that they cannot use."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        scope = getattr(request, "scope", None)
        if not isinstance(scope, Scope) or scope.role != Role.VIEWER or not isinstance(response, HttpResponse):
            return response
        if response.get("Content-Type", "").startswith("text/html"):
            response.content = keep_readable(response.text, scope.may_on_site, request.path).encode()
        return response
