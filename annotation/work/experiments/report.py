"""Report on a collection's experiment arms, as JSON and as CSV."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from annotation.models import Membership, ReservedFor, Study
from annotation.work.experiments import votes as measures
from annotation.work.experiments.paired import PairedTable, judged_pairs, paired_table
from annotation.work.experiments.votes import (
    Vote,
    both_votes,
    count_flips,
    debate_gain,
    flip_table,
    seconds_saved,
    side_by_side,
)
from charts.cells import csv_line
from corpus.models import Collection
from store.sql import fetch_rows, read_sql

# Newest votes that are looked at: the intervals are narrow by then, and a page does not wait.
MOST = 20_000

DRAWN = read_sql(__file__, "read_drawn_votes")
STUDIED = read_sql(__file__, "read_studied_votes")


@dataclass(frozen=True, slots=True)
class StudyFound:
    """A paired study and its table."""

    study: Study
    pairs: int  # Pairs of the study; `table.pairs` of them are finished.
    shown: tuple[str, ...]
    hidden: tuple[str, ...]
    table: PairedTable


def drawn_votes(collection: Collection, since: date | None = None) -> list[Vote]:
    """Standing votes on items whose arm was drawn, newest first, `MOST` at most; one statement."""
    rows = fetch_rows(DRAWN, collection=collection.pk, relevant=collection.relevant_from, since=since, most=MOST)
    return [Vote(*row) for row in rows]


def measure_debate_effect(collection: Collection, since: date | None = None) -> dict[str, Any]:
    """All figures of votes on items whose arm was drawn by lot, as JSON has them. Two statements.

    Every statistic is {value, low, high, n, reason}. `newest_only`: there are more votes than were
    looked at. `first_votes_not_blind`: given anew after the reveal. Gains are with the debate shown
    minus hidden, `seconds_saved` hidden minus shown.
    """
    found = drawn_votes(collection, since)
    both = both_votes(found)
    by_side, by_person = flip_table(both)
    names = dict(Membership.objects.filter(assessor__in=by_person).values_list("assessor", "user__username"))
    return {
        "collection": collection.name,
        "arms": collection.arms,
        "seed": collection.seed,
        "votes": len(found),
        # As many as were asked for: there are probably more.
        "newest_only": len(found) == MOST,
        "first_votes_not_blind": sum(not vote.blind for vote in found if vote.step == "first"),
        "moments": [asdict(side) | asdict(side.moment) | {"moment": side.moment.key} for side in side_by_side(found)],
        "shown_minus_hidden": {
            "accuracy": asdict(debate_gain(measures.accuracy, found)),
            "balanced_accuracy": asdict(debate_gain(measures.balanced_accuracy, found)),
        },
        "seconds_saved": asdict(seconds_saved(found)),
        "flips": {
            "all": asdict(count_flips(both)),
            "by_side": {side: asdict(some) for side, some in by_side.items()},
            "by_person": [{"name": names.get(person, "")} | asdict(some) for person, some in by_person.items()],
        },
    }


def list_studies(collection: Collection, most: int = 5) -> list[StudyFound]:
    """The newest studies with their tables. Three statements for each."""
    studies = []
    for study in Study.objects.filter(collection=collection).select_related("collection").order_by("-pk")[:most]:
        reserved = ReservedFor.objects.filter(item__study_item__study=study)
        arms = dict(reserved.values_list("membership", "item__arm").distinct())
        people = Membership.objects.filter(pk__in=arms).order_by("user__username")
        names = list(people.values_list("pk", "user__username"))
        pairs = judged_pairs(fetch_rows(STUDIED, study=study.pk, relevant=study.collection.relevant_from))
        shown, hidden = (tuple(name for pk, name in names if arms[pk] == arm) for arm in ("shown", "hidden"))
        # Each pair of a study has two items, one for each group.
        studies.append(StudyFound(study, study.items.count() // 2, shown, hidden, paired_table(pairs, study.overlap)))
    return studies


def build_json_document(found: Mapping[str, Any], studied: Sequence[StudyFound]) -> dict[str, Any]:
    """Build the JSON document of the drawn arms and the studies."""
    studies = [
        {
            "study": one.study.number,
            "seed": one.study.seed,
            "overlap": one.study.overlap,
            "ended": one.study.ended_at is not None,
            "pairs": one.pairs,
            "finished": one.table.pairs,
            "with_reference": one.table.known,
            "ties": one.table.ties,
            "with_debate": {"people": list(one.shown)} | asdict(one.table.shown),
            "without_debate": {"people": list(one.hidden)} | asdict(one.table.hidden),
            "difference": asdict(one.table.difference),
        }
        for one in studied
    ]
    return {**found, "studies": studies}


HEADER = ("part", "row", "measure", "value", "low", "high", "n", "reason")


def csv_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The statistics of a document, a line each."""
    yield csv_line(HEADER)
    for side in found["moments"]:
        yield from _statistic_lines("arms", side["moment"], side)
    yield from _statistic_lines("difference", "shown minus hidden", found["shown_minus_hidden"])
    yield from _statistic_lines("difference", "hidden minus shown", {"seconds_saved": found["seconds_saved"]})
    flips = found["flips"]
    yield from _statistic_lines("flips", "all", flips["all"])
    for side, some in flips["by_side"].items():
        yield from _statistic_lines("flips by side", side, some)
    for some in flips["by_person"]:
        yield from _statistic_lines("flips by person", some["name"], some)
    for study in found["studies"]:
        for row in ("with_debate", "without_debate", "difference"):
            yield from _statistic_lines(f"study {study['study']}", row.replace("_", " "), study[row])


def _statistic_lines(part: str, row: str, values: Mapping[str, Any]) -> Iterator[str]:
    for measure, one in values.items():
        # A statistic is known by its reason; counts and names beside it are no lines of the table.
        if isinstance(one, dict) and "reason" in one:
            cells = ("" if one[key] is None else one[key] for key in ("value", "low", "high", "n", "reason"))
            yield csv_line((part, row, measure, *cells))
