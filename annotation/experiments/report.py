"""Report on a collection's experiment arms, as JSON and as CSV."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from annotation.experiments import votes as measures
from annotation.experiments.flips import both_votes, count_flips, flip_table
from annotation.experiments.paired import PairedTable, paired_table
from annotation.experiments.reading import MOST, drawn_votes, studied_pairs
from annotation.experiments.votes import ArmVotes, debate_gain, seconds_saved, side_by_side
from annotation.models import Membership, ReservedFor, Study
from charts.cells import csv_line
from corpus.models import Collection


@dataclass(frozen=True, slots=True)
class StudyFound:
    """A paired study and its table."""

    study: Study
    pairs: int  # Pairs of the study; `table.pairs` of them are finished.
    shown: tuple[str, ...]
    hidden: tuple[str, ...]
    table: PairedTable


def measure_debate_effect(collection: Collection, since: date | None = None) -> dict[str, Any]:
    """All figures of votes on items whose arm was drawn by lot, as JSON has them. Two statements.

    Every statistic is {value, low, high, n, reason}. `newest_only`: there are more votes than were looked at.
    `first_votes_not_blind`: given anew after the reveal. Gains are with the debate shown minus hidden, `seconds_saved`
    hidden minus shown.
    """
    found = drawn_votes(collection, since)
    both = both_votes(found)
    by_side, by_person = flip_table(both)
    people = Membership.objects.filter(assessor__in=by_person).values_list("assessor", "user__username")
    names = dict(people)
    return {
        "collection": collection.name,
        "arms": collection.arms,
        "seed": collection.seed,
        "votes": len(found),
        # As many as were asked for: there are probably more.
        "newest_only": len(found) == MOST,
        "first_votes_not_blind": sum(not vote.blind for vote in found if vote.step == "first"),
        "moments": [_side_document(side) for side in side_by_side(found)],
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
    known = Study.objects.filter(collection=collection).select_related("collection").order_by("-pk")[:most]
    return [_load_study(study) for study in known]


def _load_study(study: Study) -> StudyFound:
    kept = ReservedFor.objects.filter(item__study_item__study=study).values_list("membership", "item__arm").distinct()
    arm_of = dict(kept)
    people = Membership.objects.filter(pk__in=arm_of).order_by("user__username")
    names = list(people.values_list("pk", "user__username"))
    return StudyFound(
        study=study,
        # Each pair of a study has two items, one for each group.
        pairs=study.items.count() // 2,
        shown=tuple(name for pk, name in names if arm_of[pk] == "shown"),
        hidden=tuple(name for pk, name in names if arm_of[pk] == "hidden"),
        table=paired_table(studied_pairs(study), study.overlap),
    )


def build_json_document(found: Mapping[str, Any], studied: Sequence[StudyFound]) -> dict[str, Any]:
    """Build the JSON document of the drawn arms and the studies."""
    return {**found, "studies": [_study_document(one) for one in studied]}


def _side_document(side: ArmVotes) -> dict[str, Any]:
    figures = asdict(side)
    moment = figures.pop("moment")
    return {"moment": moment.pop("key"), **moment, **figures}


def _study_document(one: StudyFound) -> dict[str, Any]:
    return {
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
