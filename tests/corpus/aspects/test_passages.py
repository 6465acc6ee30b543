"""Passages as texts: sources and chunks by their ids, overlaps, joining, and cutting by sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.aspects.passages import (
    OVERLAP,
    SEGMENTS,
    AspectPassage,
    find_gaps,
    group_portions,
    in_order,
    join_texts,
    joinable_groups,
    overlap_length,
    segment_text,
    source_of,
)
from corpus.search.text import Sentence

URL = "https://ice.example/why"


@pytest.mark.parametrize(
    ("id", "metadata", "source"),
    [
        ("Primate_3_14", {}, ("Primate_3", 14, 14)),
        ("biology-86/extraction_0", {}, ("biology-86/extraction", 0, 0)),
        ("doc-12#1", {}, ("doc-12", 1, 1)),
        ("d12", {}, ("d12", None, None)),
        ("x_2", {"url": URL}, (URL, 2, 2)),
        ("x_2", {"source": URL}, (URL, 2, 2)),
        ("passage-ab", {"source": {"kind": "url", "url": URL}, "chunks": [4, 6]}, (URL, 4, 6)),
        ("passage-ab", {"source": {"kind": "paste"}}, ("passage-ab", None, None)),
        ("passage-ab", {"source": {"kind": "upload", "file": "notes.txt"}}, ("notes.txt", None, None)),
    ],
)
def test_where_a_passage_comes_from(
    id: str, metadata: dict[str, object], source: tuple[str, int | None, int | None]
) -> None:
    assert source_of(id, metadata) == source


def passage(name: str, text: str) -> AspectPassage:
    return AspectPassage(name, "", text, *source_of(name, {}))


def test_only_neighbours_of_one_source_are_joinable_and_an_overlap_bridges_a_gap() -> None:
    shared = "which both of these passages hold."
    found = [passage("ice_1", "One."), passage("ice_2", f"Two, {shared}"), passage("ice_5", f"{shared} Five.")]
    found += [passage("ice_9", "Nine."), passage("fire_3", "Three."), passage("alone", "Four.")]
    assert [[one.id for one in group] for group in joinable_groups(found)] == [["ice_1", "ice_2", "ice_5"]]
    assert find_gaps(in_order([found[3], found[0]])) == [("ice_1", "ice_9")]


@given(st.text(min_size=0, max_size=60), st.text(min_size=OVERLAP, max_size=60), st.text(min_size=0, max_size=60))
def test_what_two_passages_share_stands_once(before: str, shared: str, after: str) -> None:
    one, other = before + shared, shared + after
    assert overlap_length(one, other) >= OVERLAP
    whole = join_texts([passage("x_1", one), passage("x_2", other)])
    assert whole.startswith(one) and whole.endswith(other)
    assert len(whole) <= len(before) + len(shared) + len(after)


def test_texts_that_share_little_are_joined_by_a_blank_line() -> None:
    assert overlap_length("an end.", "end. And more.") == 0
    assert join_texts([passage("x_1", "The end. \n"), passage("x_2", " A beginning.")]) == "The end.\n\nA beginning."


def test_a_text_is_cut_where_the_aspect_changes_and_trimmed_where_there_is_none() -> None:
    text = "Ice flows. It is plastic. Buy skis! It melts below.\n\nHeat does that."
    found = group_portions(text, ["a1", "a1", "", "a2", "a2"])
    assert found == [("a1", Sentence(0, 25), [0, 1]), ("a2", Sentence(36, 68), [3, 4])]
    assert text[:25].endswith(" plastic.") and text[36:68].startswith("It melts") and text[36:68].endswith(" that.")
    with pytest.raises(ValueError, match="shorter"):
        group_portions(text, ["a1"])


@given(st.text(max_size=400), st.data())
def test_portions_are_verbatim_in_order_and_never_overlap(text: str, data: st.DataObject) -> None:
    marks = data.draw(st.lists(st.sampled_from(["", "a1", "a2"]), min_size=(n := len(segment_text(text))), max_size=n))
    end = 0
    for _aspect, one, _chunks in group_portions(text, marks):
        assert end <= one.start < one.end <= len(text)
        assert not text[one.start].isspace() and not text[one.end - 1].isspace()
        end = one.end


def test_a_long_text_has_a_number_of_pieces_that_a_person_can_go_through() -> None:
    text = "A sentence of a book. " * 5_000
    cut = segment_text(text)
    assert len(cut) <= SEGMENTS
    assert (cut[0].start, cut[-1].end) == (0, len(text) - 1)
