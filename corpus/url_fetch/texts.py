"""Extracting the text of a page, without menus, advertisements and footers, or of a plain file."""

import codecs
import re
from contextlib import suppress

from corpus.url_fetch.pages import FetchedPage
from corpus.url_fetch.problems import NoPage

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BLANK = re.compile(r"\n{3,}")
# Python's own codecs, which no browser knows: they yield lone surrogates, or take minutes for a page.
_NO_CHARSETS = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
_HTML = re.compile(rb"\s*(<!doctype html|<html|<\?xml|<!--)", re.IGNORECASE)


def extract_text(page: FetchedPage) -> tuple[str, str]:
    """Return (title, text) of a page. Raises NoPage where it has no text."""
    if page.media == "text/plain":
        try:
            title, text = "", page.body.decode(_charset_of(page) or "utf-8-sig")
        except (ValueError, LookupError):
            raise NoPage("not-utf-8") from None
    else:
        import trafilatura
        from lxml.etree import LxmlError  # type: ignore[import-untyped]

        source: str | bytes = page.body
        # Without a charset the parser detects it; "hex", for example, is one that decodes no text.
        with suppress(LookupError, ValueError):
            source = page.body.decode(_charset_of(page), errors="replace")
        try:
            tree = trafilatura.load_html(source)
            if tree is None:
                raise NoPage("no-text")
            title = tree.findtext(".//title") or ""
            text = trafilatura.extract(tree, include_comments=False, include_tables=True, with_metadata=False) or ""
        except (LxmlError, ValueError, RecursionError):
            raise NoPage("broken") from None
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
    """Return the charset that the page declares; "" for none, an unknown one or one of _NO_CHARSETS."""
    try:
        return "" if codecs.lookup(page.charset).name in _NO_CHARSETS else page.charset
    except (ValueError, LookupError):
        return ""
