"""The debate effect report of a collection: measures of its experiment arms and studies, as JSON and CSV."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from annotation.models import Membership, ReservedFor, Study
from annotation.work.experiments.flips import (
    FlipCounts,
    count_flips,
    count_flips_by_person,
    count_flips_by_side,
    pair_votes,
)
from annotation.work.experiments.moments import MomentMeasures, debate_gain, measure_moments, seconds_saved
from annotation.work.experiments.paired import PairedTable, judged_pairs, paired_table
from annotation.work.experiments.resampled_measures import accuracy_measure, balanced_accuracy_measure
from annotation.work.experiments.votes import Vote
from charts.cells import csv_line
from corpus.models import Collection
from store.sql import fetch_rows, read_sql

# Only the newest votes are measured: the intervals are narrow by then, and a page must not take long.
MOST = 20_000

DRAWN = read_sql(__file__, "read_drawn_votes")
STUDIED = read_sql(__file__, "read_studied_votes")


@dataclass(frozen=True, slots=True)
class StudyResult:
    """A paired study and its table."""

    study: Study
    pairs: int  # All pairs of the study; `table.pairs` of them are finished.
    shown: tuple[str, ...]  # Names of the people with the debate.
    hidden: tuple[str, ...]
    table: PairedTable


def drawn_votes(collection: Collection, since: date | None = None) -> list[Vote]:
    """Return the newest current votes on items whose arm was drawn at random, at most `MOST`. One statement."""
    rows = fetch_rows(DRAWN, collection=collection.pk, relevant=collection.relevant_from, since=since, most=MOST)
    return [Vote(*row) for row in rows]


def measure_debate_effect(collection: Collection, since: date | None = None) -> dict[str, Any]:
    """Measure the votes on items whose arm was drawn at random, for JSON. Two statements.

    Each statistic is {value, low, high, n, reason}. `newest_only`: there are more votes, which were not
    measured. `first_votes_not_blind`: first votes repeated after the reveal. Gains are shown minus
    hidden, `seconds_saved` is hidden minus shown.
    """
    votes = drawn_votes(collection, since)
    vote_pairs = pair_votes(votes)
    flips_by_person = count_flips_by_person(vote_pairs)
    names = dict(Membership.objects.filter(assessor__in=flips_by_person).values_list("assessor", "user__username"))
    return {
        "collection": collection.name,
        "arms": collection.arms,
        "seed": collection.seed,
        "votes": len(votes),
        "newest_only": len(votes) == MOST,
        "first_votes_not_blind": sum(vote.is_repeated_after_debate for vote in votes if vote.step == "first"),
        "moments": [_moment_document(measures) for measures in measure_moments(votes)],
        "shown_minus_hidden": {
            "accuracy": asdict(debate_gain(accuracy_measure, votes)),
            "balanced_accuracy": asdict(debate_gain(balanced_accuracy_measure, votes)),
        },
        "seconds_saved": asdict(seconds_saved(votes)),
        "flips": {
            "all": _flips_document(count_flips(vote_pairs)),
            "by_side": {side: _flips_document(flips) for side, flips in count_flips_by_side(vote_pairs).items()},
            "by_person": [
                {"name": names.get(person, "")} | _flips_document(flips) for person, flips in flips_by_person.items()
            ],
        },
    }


def _moment_document(measures: MomentMeasures) -> dict[str, Any]:
    """Return the measures of a moment for JSON."""
    return {
        "moment": measures.moment.key,
        "items": measures.item_count,
        "votes": measures.vote_count,
        "people": measures.person_count,
        "agreement": asdict(measures.krippendorff_alpha),
        "fleiss": asdict(measures.fleiss_kappa),
        "percent": asdict(measures.equal_vote_share),
        "prevalence": measures.prevalence,
        "accuracy": asdict(measures.accuracy),
        "recall_relevant": asdict(measures.recall_relevant),
        "recall_not_relevant": asdict(measures.recall_not_relevant),
        "balanced_accuracy": asdict(measures.balanced_accuracy),
        "seconds": asdict(measures.median_seconds),
        **asdict(measures.moment),
    }


def _flips_document(flips: FlipCounts) -> dict[str, Any]:
    """Return the counts of flips for JSON."""
    return {
        "n": flips.vote_pairs,
        "known": flips.referenced_vote_pairs,
        "right_right": flips.stayed_right,
        "right_wrong": flips.right_to_wrong,
        "wrong_right": flips.wrong_to_right,
        "wrong_wrong": flips.stayed_wrong,
        "flipped": asdict(flips.flip_share),
        "right_to_wrong": asdict(flips.right_to_wrong_share),
        "wrong_to_right": asdict(flips.wrong_to_right_share),
    }


def list_studies(collection: Collection, most: int = 5) -> list[StudyResult]:
    """Return the newest studies with their tables. Three statements for each."""
    studies = []
    for study in Study.objects.filter(collection=collection).select_related("collection").order_by("-pk")[:most]:
        reserved = ReservedFor.objects.filter(item__study_item__study=study)
        arms = dict(reserved.values_list("membership", "item__arm").distinct())
        people = Membership.objects.filter(pk__in=arms).order_by("user__username")
        names = list(people.values_list("pk", "user__username"))
        pairs = judged_pairs(fetch_rows(STUDIED, study=study.pk, relevant=study.collection.relevant_from))
        shown, hidden = (tuple(name for pk, name in names if arms[pk] == arm) for arm in ("shown", "hidden"))
        # A study has two items for each pair, one for each group.
        studies.append(StudyResult(study, study.items.count() // 2, shown, hidden, paired_table(pairs, study.overlap)))
    return studies


def build_json_document(effect: Mapping[str, Any], studied: Sequence[StudyResult]) -> dict[str, Any]:
    """Build the JSON document: the measured arms and the studies."""
    studies = [
        {
            "study": study_table.study.number,
            "seed": study_table.study.seed,
            "overlap": study_table.study.overlap,
            "ended": study_table.study.ended_at is not None,
            "pairs": study_table.pairs,
            "finished": study_table.table.pairs,
            "with_reference": study_table.table.referenced,
            "ties": study_table.table.ties,
            "with_debate": {"people": list(study_table.shown)} | asdict(study_table.table.shown),
            "without_debate": {"people": list(study_table.hidden)} | asdict(study_table.table.hidden),
            "difference": asdict(study_table.table.difference),
        }
        for study_table in studied
    ]
    return {**effect, "studies": studies}


HEADER = ("part", "row", "measure", "value", "low", "high", "n", "reason")


def csv_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the statistics of a document as lines of CSV."""
    yield csv_line(HEADER)
    for side in document["moments"]:
        yield from _statistic_lines("arms", side["moment"], side)
    yield from _statistic_lines("difference", "shown minus hidden", document["shown_minus_hidden"])
    yield from _statistic_lines("difference", "hidden minus shown", {"seconds_saved": document["seconds_saved"]})
    flips = document["flips"]
    yield from _statistic_lines("flips", "all", flips["all"])
    for side, figures in flips["by_side"].items():
        yield from _statistic_lines("flips by side", side, figures)
    for figures in flips["by_person"]:
        yield from _statistic_lines("flips by person", figures["name"], figures)
    for study in document["studies"]:
        for row in ("with_debate", "without_debate", "difference"):
            yield from _statistic_lines(f"study {study['study']}", row.replace("_", " "), study[row])


def _statistic_lines(part: str, row: str, values: Mapping[str, Any]) -> Iterator[str]:
    for measure, statistic in values.items():
        # Only statistics have a reason; counts and names are not part of the table.
        if isinstance(statistic, dict) and "reason" in statistic:
            cells = (
                "" if statistic[key] is None else statistic[key] for key in ("value", "low", "high", "n", "reason")
            )
            yield csv_line((part, row, measure, *cells))
