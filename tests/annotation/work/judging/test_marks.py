"""Quoted sentences marked in a document."""

import re
import time
from collections.abc import Sequence
from html import unescape

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from annotation.work.judging.debates import Span, text_of
from annotation.work.judging.document import cut_pieces, document_html

TEXT = "One sentence. Another one."


def marked(text: str, spans: Sequence[Span]) -> str:
    """What the element of the document's text holds."""
    work = {"document": text_of(text), "html": document_html(text, spans)}
    html = render_to_string("judging/_text.html", {"work": work})
    inside = re.fullmatch(r"\s*<div [^>]*>(.*)</div>\n", html, re.DOTALL)
    return re.sub(r"<[^>]*>", lambda tag: " ".join(tag[0].split()), inside[1] if inside else "")


def plain(html: str) -> str:
    """The text that a reader sees, without the labels."""
    return unescape(re.sub(r"<[^>]*>", "", re.sub(r"<a [^>]*>[^<]*</a>", "", html)))


def test_overlapping_quotes_of_both_sides_share_a_stretch_and_keep_their_own():
    html = marked(TEXT, [Span(0, 20, "for", "F1"), Span(14, 26, "against", "A1")])
    assert '<mark class="for" data-quotes="F1">' in html
    assert '<mark class="both" data-quotes="F1 A1">' in html
    assert '<mark class="against" data-quotes="A1">' in html
    assert html.count('id="quote-F1"') == html.count('id="quote-A1"') == 1
    assert plain(html) == TEXT


def test_a_script_in_a_document_is_text():
    assert marked("a < b & c", []) == "a &lt; b &amp; c"
    html = marked("<script>alert(1)</script>", [Span(0, 8, "for", "F1")])
    assert "<script" not in html
    assert plain(html) == "<script>alert(1)</script>"


spans = st.builds(
    lambda start, length, side, n: Span(start, start + length, side, f"{side[0].upper()}{n}"),
    st.integers(0, 30), st.integers(0, 30), st.sampled_from(["for", "against"]), st.integers(1, 9),
)  # fmt: skip


@given(st.text(max_size=40), st.lists(spans, max_size=6, unique_by=lambda span: span.label))
def test_no_character_is_lost_or_doubled_whatever_is_quoted(text, quoted):
    assert plain(marked(text, quoted)) == (text or "(empty document)")


MARKS = st.lists(st.tuples(st.integers(-5, 40), st.integers(-5, 40), st.sampled_from(["F1", "F2", "A1"])), max_size=6)


@given(st.integers(0, 30), MARKS)
def test_pieces_cover_the_text_once(length, marks):
    found = cut_pieces(length, marks)
    assert "".join("x" * (end - start) for start, end, _names in found) == "x" * length
    for begin, until, names in found:
        assert begin < until
        for at in range(begin, until):
            assert sorted(names) == sorted(name for start, end, name in marks if start <= at < end)


@pytest.mark.parametrize(
    "hostile",
    ["a   b" + " " * 60_000, "```a\n" * 30_000, "```\n{\n;\n```\n\n" * 20_000],
    ids=["spaces", "open fences", "many fences"],
)
def test_a_hostile_document_is_written_in_a_moment(hostile):
    begin = time.perf_counter()
    html = document_html(hostile)
    assert time.perf_counter() - begin < 3
    assert plain(html) == hostile


def test_code_between_fences_and_columns_of_spaces_are_shown_as_code():
    text = "Before\n\n```python\nx = 1\n\ny = 2\n```\n\nName   Size   Kind\na      1      b\n\n~~~\nnever closed\n\nEnd"
    found = re.findall(r'<span class="code">(.*?)</span>', document_html(text), re.DOTALL)
    assert found == ["```python\nx = 1\n\ny = 2\n```\n", "Name   Size   Kind\na      1      b\n"]
