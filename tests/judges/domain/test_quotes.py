"""Quotes are looked up in the document, and marked without overlap."""

from hypothesis import given
from hypothesis import strategies as st

from judges.domain.quotes import locate_quote

DOCUMENT = "The map.\n\n  A mapping maps\n   hashable values.  The map. 映射是可变的。"


def test_a_verbatim_quote_is_found_at_its_first_place():
    quote = locate_quote("The map.", DOCUMENT)
    assert (quote.start, quote.end) == (0, 8)
    quote = locate_quote("映射是可变的。", DOCUMENT)
    assert DOCUMENT[quote.start : quote.end] == "映射是可变的。"


def test_any_quotation_mark_stands_for_any_other():
    document = "She said: “It's 'so'”, and 「映射」 means a map."
    quote = locate_quote('"It’s "so""', document)
    assert document[quote.start : quote.end] == "“It's 'so'”"
    quote = locate_quote('"映射"  means', document)
    assert document[quote.start : quote.end] == "「映射」 means"
    assert locate_quote("“Its so”", document).start is None


def test_only_white_space_and_quotation_marks_may_differ():
    quote = locate_quote(" A mapping maps hashable values. ", DOCUMENT)
    assert DOCUMENT[quote.start : quote.end] == "A mapping maps\n   hashable values."
    for other in (
        "a mapping maps hashable values.",
        "A mapping maps hashable values!",
        "A mapping ... values.",
        "",
        " ",
    ):
        assert locate_quote(other, DOCUMENT).start is None


def test_a_quote_is_never_read_as_a_pattern():
    assert locate_quote("T.e map.", DOCUMENT).start is None
    assert locate_quote(".* (a|b)+ $", "x .*  (a|b)+\n$ y").start == 2


@given(st.text(), st.data())
def test_every_part_of_a_document_is_found_in_it(document, data):
    start = data.draw(st.integers(0, len(document)))
    end = data.draw(st.integers(start, len(document)))
    quote = locate_quote(document[start:end], document)
    if document[start:end].strip():
        assert quote.start is not None
        assert quote.start <= start
        assert document[quote.start : quote.end] == document[start:end]
    else:
        assert quote.start is None


@given(st.text(), st.text())
def test_what_is_found_has_the_words_of_the_quote(text, document):
    quote = locate_quote(text, document)
    assert quote.text == text
    if quote.start is not None:
        assert document[quote.start : quote.end].split() == text.split()
