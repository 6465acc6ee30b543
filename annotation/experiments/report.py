"""Everything that is measured of the arms of a collection, as records, as JSON and as CSV."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from annotation.agreement.measures import Statistic
from annotation.experiments import votes as measures
from annotation.experiments.flips import FlipTable, both_votes, flip_table
from annotation.experiments.paired import PairedTable, paired_table
from annotation.experiments.reading import MOST, drawn_votes, studied_pairs
from annotation.experiments.votes import ArmVotes, debate_gain, seconds_saved, side_by_side
from annotation.models import Membership, ReservedFor, Study
from charts.cells import csv_line
from corpus.models import Collection


@dataclass(frozen=True, slots=True)
class DebateEffect:
    """Votes on items whose arm was drawn by lot."""

    votes: int
    newest_only: bool  # There are more votes than were looked at.
    seen: int  # First votes that were given anew after the reveal, and count as no blind vote.
    sides: list[ArmVotes]
    accuracy_gain: Statistic  # With the debate shown minus hidden; share of right votes.
    balanced_gain: Statistic
    seconds_saved: Statistic  # Hidden minus shown.
    flips: FlipTable
    names: Mapping[int, str]  # Of the people in the flip table, by assessor.


@dataclass(frozen=True, slots=True)
class StudyFound:
    """A paired study and its table."""

    study: Study
    pairs: int  # Pairs of the study; `table.pairs` of them are finished.
    shown: tuple[str, ...]
    hidden: tuple[str, ...]
    table: PairedTable


def measure_debate_effect(collection: Collection, since: date | None = None) -> DebateEffect:
    """All figures of the drawn arms. Two statements."""
    found = drawn_votes(collection, since)
    flipped = flip_table(both_votes(found))
    return DebateEffect(
        votes=len(found),
        newest_only=len(found) == MOST,
        seen=sum(not vote.blind for vote in found if vote.step == "first"),
        sides=side_by_side(found),
        accuracy_gain=debate_gain(measures.accuracy, found),
        balanced_gain=debate_gain(measures.balanced_accuracy, found),
        seconds_saved=seconds_saved(found),
        flips=flipped,
        names=dict(Membership.objects.filter(assessor__in=flipped.by_person).values_list("assessor", "user__username")),
    )


def list_studies(collection: Collection, most: int = 5) -> list[StudyFound]:
    """The newest studies with their tables. Three statements for each."""
    known = Study.objects.filter(collection=collection).select_related("collection").order_by("-pk")[:most]
    return [_load_study(study) for study in known]


def _load_study(study: Study) -> StudyFound:
    kept = ReservedFor.objects.filter(item__study_item__study=study).values_list("membership", "item__arm").distinct()
    arm_of = dict(kept)
    people = Membership.objects.filter(pk__in=arm_of).order_by("user__username")
    names = list(people.values_list("pk", "user__username"))
    return StudyFound(
        study=study,
        pairs=study.items.count() // 2,
        shown=tuple(name for pk, name in names if arm_of[pk] == "shown"),
        hidden=tuple(name for pk, name in names if arm_of[pk] == "hidden"),
        table=paired_table(studied_pairs(study), study.overlap),
    )


def build_json_document(collection: Collection, found: DebateEffect, studied: Sequence[StudyFound]) -> dict[str, Any]:
    """One JSON document: every statistic is {value, low, high, n, reason}."""
    return {
        "collection": collection.name,
        "arms": collection.arms,
        "seed": collection.seed,
        "votes": found.votes,
        "newest_only": found.newest_only,
        "first_votes_not_blind": found.seen,
        "moments": [_side_document(side) for side in found.sides],
        "shown_minus_hidden": {
            "accuracy": asdict(found.accuracy_gain),
            "balanced_accuracy": asdict(found.balanced_gain),
        },
        "seconds_saved": asdict(found.seconds_saved),
        "flips": {
            "all": asdict(found.flips.all),
            "by_side": {side: asdict(some) for side, some in found.flips.by_side.items()},
            "by_person": [
                {"name": found.names.get(person, "")} | asdict(some) for person, some in found.flips.by_person.items()
            ],
        },
        "studies": [_study_document(one) for one in studied],
    }


def _side_document(side: ArmVotes) -> dict[str, Any]:
    figures = asdict(side)
    moment = figures.pop("moment")
    return {"moment": moment.pop("key"), **moment, **figures}


def _study_document(one: StudyFound) -> dict[str, Any]:
    return {
        "study": one.study.pk,
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
        if isinstance(one, dict) and "reason" in one:
            cells = ("" if one[key] is None else one[key] for key in ("value", "low", "high", "n", "reason"))
            yield csv_line((part, row, measure, *cells))
