"""The picture of a campaign and the texts of people: plain arithmetic and plain text."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from annotation.flow import SLOT, layout
from annotation.prose import to_html

COUNTS = st.integers(min_value=0, max_value=10_000_000)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_the_picture_shows_every_count_above_zero_and_nothing_overlaps(
    labelled: int, settled: int, open_: int, failed: int
) -> None:
    picture = layout(
        pairs=labelled + settled + open_ + failed,
        outcomes=[("labelled", "", labelled), ("escalated", "", settled + open_), ("failed", "", failed)],
        people=[("settled", "", settled), ("open", "", open_)],
        through="escalated",
    )
    shown = {node.key for node in picture.nodes}
    wanted = {"labelled": labelled, "escalated": settled + open_, "failed": failed, "settled": settled, "open": open_}
    assert shown - {"pairs"} == {key for key, count in wanted.items() if count}
    assert len(picture.bands) == len(picture.nodes) - 1
    for x in {node.x for node in picture.nodes}:
        column = sorted((node for node in picture.nodes if node.x == x), key=lambda node: node.y)
        for above, below in pairwise(column):
            assert below.y >= above.y + max(above.height, SLOT)
        assert column[-1].y + max(column[-1].height, SLOT) <= picture.height


def test_heights_are_in_proportion_to_counts() -> None:
    picture = layout(pairs=100, outcomes=[("a", "", 75), ("b", "", 25)], people=[], through="b")
    heights = {node.key: node.height for node in picture.nodes}
    assert heights["a"] == 3 * heights["b"] == 0.75 * heights["pairs"]


@given(st.text())
def test_no_tag_but_our_own_comes_out_of_a_text(text: str) -> None:
    html = to_html(text)
    assert set(re.findall(r"</?([a-z0-9]+)", html)) <= {"p", "br", "h3", "ul", "ol", "li"}
    assert "<" not in re.sub(r"</?(p|br|h3|ul|ol|li)>", "", html)


def test_paragraphs_lists_and_headings_are_made_from_plain_text() -> None:
    text = "First line\nsecond line\n\nHow to judge\n- closely\n  and twice\n- <b>calmly</b>\n\n1. one\n2. two"
    assert to_html(text) == (
        "<p>First line<br>second line</p>"
        "<h3>How to judge</h3><ul><li>closely and twice</li><li>&lt;b&gt;calmly&lt;/b&gt;</li></ul>"
        "<ol><li>one</li><li>two</li></ol>"
    )
    assert to_html(" \n\n ") == ""
