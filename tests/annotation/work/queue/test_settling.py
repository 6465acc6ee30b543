"""When judgments settle an item, and what can be taken back."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.work.queue.aggregation import aggregate_judgments, why_not_undo

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("grades", "overlap", "expected"),
    [
        ([1], 1, ("settled", 1)),
        ([], 1, ("open", None)),
        ([1, 1], 3, ("open", None)),
        ([1, 1, 0], 3, ("settled", 1)),
        ([1, 0], 2, ("conflict", None)),
        ([0, 1, 2], 3, ("conflict", None)),
        ([2, 2, 1, 0], 4, ("conflict", None)),
        ([2, 2, 2, 0], 4, ("settled", 2)),
    ],
)
def test_more_than_half_of_the_overlap_settles_and_a_tie_is_a_conflict(grades, overlap, expected):
    assert aggregate_judgments(grades, overlap=overlap) == expected


def test_any_flag_is_a_conflict_whatever_the_grades_say():
    assert aggregate_judgments([1, 1, 1], overlap=3, flagged=True) == ("conflict", None)


@given(st.lists(st.integers(0, 3), max_size=7), st.integers(1, 7))
def test_a_settled_grade_has_more_votes_than_all_others_together(grades, overlap):
    came_to = aggregate_judgments(grades, overlap=overlap)
    if came_to[0] == "settled":
        assert grades.count(came_to[1]) > len(grades) - grades.count(came_to[1])
    else:
        assert came_to[1] is None


def test_undo_ends_with_adjudication_a_later_decision_an_export_and_the_day():
    recent = NOON - timedelta(hours=23)
    assert why_not_undo(now=NOON, ended_at=recent) is None
    assert "adjudicator" in why_not_undo(now=NOON, ended_at=recent, adjudicated=True)
    assert "later judgment" in why_not_undo(now=NOON, ended_at=recent, settled_by_another=True)
    assert "export" in why_not_undo(now=NOON, ended_at=recent, exported=True)
    assert "24 hours" in why_not_undo(now=NOON, ended_at=NOON - timedelta(hours=25))
