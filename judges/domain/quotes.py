"""Quotes: where a quoted sentence stands in the document, checked verbatim."""

import re

from judges.records import Quote

# Quotation marks and apostrophes: models change one for another, so any of them stands for any.
MARKS = "\"'`´“”„‟«»‹›‘’‚‛「」『』〝〞＂＇"
_MARK = f"[{re.escape(MARKS)}]"


def locate_quote(text: str, document: str) -> Quote:
    """Return the quote with its first position in `document` (end exclusive), if any."""
    # The exact text is looked for first, then the same characters with white space of any kind and
    # length between words and any quotation mark for another, because models unwrap lines and
    # straighten quotes. Nothing else is forgiven: another word, case or punctuation is not a quote.
    words = text.split()
    if not words:
        return Quote(text)
    start = document.find(text)
    if start >= 0:
        return Quote(text, start, start + len(text))
    patterns = ("".join(_MARK if letter in MARKS else re.escape(letter) for letter in word) for word in words)
    found = re.search(r"\s+".join(patterns), document)
    return Quote(text, found.start(), found.end()) if found else Quote(text)
