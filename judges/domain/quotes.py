"""Quotes: finding a quoted sentence in the document, verbatim. Pure."""

import re

from judges.records import Quote

# Quotation marks and apostrophes: models replace one by another, so each matches any other.
MARKS = "\"'`´“”„‟«»‹›‘’‚‛「」『』〝〞＂＇"
_MARK = f"[{re.escape(MARKS)}]"


def locate_quote(text: str, document: str) -> Quote:
    """Return the quote with its first position in `document` (end exclusive), if it occurs there."""
    # The exact text is tried first, then the same characters with any white space between words and any
    # quotation mark for another, because models unwrap lines and straighten quotes. Nothing else is
    # forgiven: a text with another word, case or punctuation is not a quote.
    words = text.split()
    if not words:
        return Quote(text)
    start = document.find(text)
    if start >= 0:
        return Quote(text, start, start + len(text))
    patterns = ("".join(_MARK if letter in MARKS else re.escape(letter) for letter in word) for word in words)
    match = re.search(r"\s+".join(patterns), document)
    return Quote(text, match.start(), match.end()) if match else Quote(text)
