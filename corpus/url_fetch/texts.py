"""The text of a page without menus, advertisements and footers; or of a file as it is."""

import codecs
import re
from contextlib import suppress

from corpus.url_fetch.pages import FetchedPage
from corpus.url_fetch.problems import NoPage

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BLANK = re.compile(r"\n{3,}")
# Python's own, which no browser reads: halves of surrogate pairs, which nothing can store, or minutes for a page.
_NO_CHARSETS = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
_HTML = re.compile(rb"\s*(<!doctype html|<html|<\?xml|<!--)", re.IGNORECASE)


def extract_text(page: FetchedPage) -> tuple[str, str]:
    """Return (title, text) of a page. NoPage when there is no text in it."""
    title, text = _read_plain_text(page) if page.media == "text/plain" else _extract_html(page)
    text = clean_text(text)
    if not text:
        raise NoPage("no-text")
    return " ".join(clean_text(title).split())[:500], text


def media_of(body: bytes) -> str:
    """Return the type of a file by its content: text/html or text/plain."""
    return "text/html" if _HTML.match(body.removeprefix(b"\xef\xbb\xbf")) else "text/plain"


def clean_text(text: str) -> str:
    """Return text without control characters, with one kind of line end and single blank lines."""
    text = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _BLANK.sub("\n\n", text).strip()


def _charset_of(page: FetchedPage) -> str:
    """Return the charset that the page declares; "" without one, or for one of no page."""
    try:
        return "" if codecs.lookup(page.charset).name in _NO_CHARSETS else page.charset
    except (ValueError, LookupError):
        return ""


def _read_plain_text(page: FetchedPage) -> tuple[str, str]:
    try:
        return "", page.body.decode(_charset_of(page) or "utf-8-sig")
    except (ValueError, LookupError):
        raise NoPage("not-utf-8") from None


def _extract_html(page: FetchedPage) -> tuple[str, str]:
    import trafilatura
    from lxml.etree import LxmlError  # type: ignore[import-untyped]

    source: str | bytes = page.body
    # Without a charset the parser finds its own; "hex" is one that decodes no text.
    with suppress(LookupError, ValueError):
        source = page.body.decode(_charset_of(page), errors="replace")
    try:
        tree = trafilatura.load_html(source)
        if tree is None:
            return "", ""
        title = tree.findtext(".//title") or ""
        return title, trafilatura.extract(tree, include_comments=False, include_tables=True, with_metadata=False) or ""
    except (LxmlError, ValueError, RecursionError):
        raise NoPage("broken") from None
