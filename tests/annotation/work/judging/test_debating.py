"""A debate in words and its quotes marked in the document; nothing of a model or a document becomes a tag."""

import re
import time
from collections.abc import Sequence
from html import unescape

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from annotation.work.judging.debates import DebateTurn, Span, debate_of, text_of
from annotation.work.judging.document import cut_pieces, document_html

EVIL = "<script>alert(1)</script>"


def drawn(turn: DebateTurn) -> str:
    """The turn as pages show it."""
    return render_to_string("judging/_turn.html", {"turn": turn, "work": {"document": text_of("One.")}})


def turn(side: str, verdict: int | None, reason: str, *quotes: tuple[str, int | None]) -> dict[str, object]:
    places = [
        {"text": text, "start": start, "end": None if start is None else start + len(text)} for text, start in quotes
    ]
    return {"side": side, "round": 1, "verdict": verdict, "reason": reason, "quotes": places}


def test_a_turn_says_its_verdict_and_reason_in_the_reasons_language() -> None:
    (round_,) = debate_of([turn("for", 1, "يجيب النص عن السؤال.")]).rounds
    said, silent = round_.turns
    assert "says relevant" in drawn(said)
    assert '<p lang="ar" dir="rtl">' in drawn(said)
    assert "no readable answer" in drawn(silent)
    assert "<p" not in drawn(silent)


def test_who_gives_up_its_side_concedes() -> None:
    for side, verdict, concedes in (("for", 1, False), ("for", 0, True), ("against", 0, False), ("against", 1, True)):
        (round_,) = debate_of([turn(side, verdict, "So.")]).rounds
        shown = drawn(round_.turns[side == "against"])
        assert ("concedes: " in shown) == concedes and ("not relevant" in shown) == (verdict == 0)


def test_what_a_model_wrote_stays_text_and_a_quote_that_is_not_in_the_document_is_struck_out() -> None:
    (round_,) = debate_of([{**turn("against", 0, EVIL, (EVIL, 0), (EVIL, None)), "judge": EVIL}]).rounds
    html = drawn(round_.turns[1])
    assert "<script" not in html
    assert html.count("&lt;script") == 4, "name, reason and two quotes"
    assert html.count("<s>&lt;script") == html.count("href") == 1 and "not in the" in html


def test_a_side_that_comes_over_without_a_new_quote_is_marked() -> None:
    mark = "Changed sides without new evidence"
    (round_,) = debate_of([turn("for", 1, "Yes."), turn("against", 1, "Well then.", ("Nowhere.", None))]).rounds
    assert [mark in drawn(said) for said in round_.turns] == [False, True]
    (round_,) = debate_of([turn("for", 1, "Yes."), turn("against", 1, "It says so.", ("One.", 0))]).rounds
    assert not any(mark in drawn(said) for said in round_.turns)


def test_four_agents_are_two_couples_of_a_round_and_three_leave_no_silent_fourth():
    def said(side: str, couple: int, reason: str) -> dict[str, object]:
        return {"side": side, "round": 1, "couple": couple, "verdict": 1, "reason": reason, "quotes": []}

    turns = [said("for", 0, "A speaks."), said("against", 0, "B speaks."), said("for", 1, "C speaks.")]
    first, second = debate_of(turns).rounds
    assert [(first.number, first.couple), (second.number, second.couple)] == [(1, 0), (1, 1)]
    assert ["A speaks" in drawn(first.turns[0]), "B speaks" in drawn(first.turns[1])] == [True, True]
    assert len(second.turns) == 1 and "C speaks" in drawn(second.turns[0])
    four = debate_of([*turns, said("against", 1, "D speaks.")]).rounds[1]
    assert len(four.turns) == 2 and "D speaks" in drawn(four.turns[1])


def test_a_quote_links_to_its_place_and_the_first_one_is_linked_back() -> None:
    quoted = turn("for", 1, "So.", ("One < two.", 0), ("One < two.", 0))
    (round_,) = debate_of([quoted]).rounds
    html = drawn(round_.turns[0])
    assert html.count('href="#quote-F1"') == 2 and html.count('id="by-F1"') == 1
    assert html.count("<q>One &lt; two.</q>") == 2
    second = {**turn("for", 1, "Again.", ("One.", 0)), "round": 2}
    debate = debate_of([turn("for", 1, "First.", ("One.", 0)), second])
    assert [span.label for span in debate.spans] == ["F1"], "of both rounds"
    assert [drawn(round_.turns[0]).count('id="by-F1"') for round_ in debate.rounds] == [1, 0]


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
