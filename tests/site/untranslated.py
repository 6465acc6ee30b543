"""What a page shows in Latin letters: in Chinese that is data, a proper name, or an untranslated string."""

import re
from html.parser import HTMLParser

WORD = re.compile(r"[A-Za-z][a-z]{2,}")
SPOKEN = ("aria-label", "title", "placeholder", "alt", "data-label", "data-said", "aria-description")
"""Attributes that are read out or shown."""
NOT_OURS = {"code", "pre", "kbd", "script", "style", "textarea", "samp"}
_VOID = "input br img meta link hr col source path circle rect line polyline wbr"
VOID = frozenset(_VOID.split())


class _Reader(HTMLParser):
    """Visible texts and spoken attributes, without what is marked up as code or as another language."""

    def __init__(self, language: str) -> None:
        super().__init__(convert_charrefs=True)
        self.language = language
        self.open: list[bool] = [False]
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        lang = values.get("lang")
        foreign = self.open[-1] if lang is None else not lang.lower().startswith(self.language)
        is_mono = "mono" in (values.get("class") or "").split()
        foreign = foreign or tag in NOT_OURS or is_mono or ("dir" in values and not lang)
        if tag not in VOID:
            self.open.append(foreign)
        if not foreign or tag == "textarea":
            self.texts += [value for name in SPOKEN if (value := values.get(name))]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and len(self.open) > 1:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open[-1] and data.strip():
            self.texts.append(" ".join(data.split()))


def texts_with(html: str, language: str, known: re.Pattern[str]) -> list[str]:
    """Texts of a page that hold Latin words once what is `known` (data, names) is taken out."""
    reader = _Reader(language)
    reader.feed(html)
    return [text for text in reader.texts if WORD.search(known.sub("", text))]
