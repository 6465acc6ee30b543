"""Quality of each annotator: number and speed of judgments, agreement with the others and with reference grades."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np
from django.conf import settings
from django.db.models import Count, Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.agreement.dawid_skene import dawid_skene, sparse_counts
from annotation.agreement.grade_matrix import fetch_columns
from annotation.agreement.measures import compute_measures
from annotation.agreement.proportions import share_statistic
from annotation.agreement.resampling import MISSING, group_patterns
from annotation.models import Assignment, Membership
from annotation.quality.label_quality.kappas import BinaryVotes, read_binary_votes
from annotation.quality.label_quality.records import MonthQuality, PersonQuality, missing_statistic
from corpus.models import Assessor, Collection
from store.sql import read_sql

FEW = 20  # Fewer judgments than this raise no alarm.
GOLD_MARK = 0.8
MAJORITY_MARK = 0.7
HASTE = 1 / 3  # Share of the usual median time below which an annotator is too fast.
LEAST_S = 2.0  # Median seconds of a judgment below which no one can have read the document.
FEW_HASTY = 10  # Fewest judgments for an alarm about such a median.
SKIPS = 0.3
RESAMPLES = 200
HASTY = 0.1  # Share of far too fast judgments that raises an alarm.
FAR = 3.0  # Deviations from the median time from which a judgment is an outlier.
LEAST_SPREAD = 0.35  # Least deviation of log times: a time that differs by a third is no outlier.
INTRA_MARK = 0.8
ORDINARY, CHECK, REPEAT = 0, 1, 2
NO_REPEATS = "no pair was repeated"
NOBODY_ELSE = gettext_noop("no one else judged the same items")
NO_GOLD = gettext_noop("not measured: no reference grade on the judged pairs")
READ_JUDGMENTS = read_sql(__file__, "read_members_judgments")


@dataclass(slots=True)
class AnnotatorTally:
    """Sums over one annotator's judgments."""

    judged: int = 0
    relevant: int = 0
    milliseconds: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)  # Relevance where the others on the task have a majority.
    others: list[int] = field(default_factory=list)  # The majority there.
    gold: list[bool] = field(default_factory=list)  # Whether a judgment equals the reference grade.
    checks: list[bool] = field(default_factory=list)  # Whether the answer of an attention check is correct.
    repeats: list[bool] = field(default_factory=list)  # Whether a repeated pair got the same answer.
    fast: int = 0
    slow: int = 0


def measure_annotators(collection: Collection, votes: BinaryVotes | None = None) -> list[PersonQuality]:
    """Measure everyone who judged, skipped or flagged in a collection, by name. `votes`: all votes, if already read."""
    tally_of = _tally_judgments(collection)
    State = Assignment.State
    members = Membership.objects.filter(collection=collection).select_related("user").order_by("user__username")
    members = members.annotate(
        skips=Count("assignments", filter=Q(assignments__state=State.SKIPPED)),
        flags=Count("assignments", filter=Q(assignments__flagged=True, assignments__state=State.DONE)),
    )
    # The median of people's medians: an annotator with very many judgments does not set the usual time.
    medians = [median(tally.milliseconds) for tally in tally_of.values() if tally.milliseconds]
    usual_ms = median(medians) if medians else None
    accuracies = estimate_accuracies(votes or read_binary_votes(collection))
    people = [
        _person_quality(member, tally_of.get((member.assessor_id, 0), AnnotatorTally()), usual_ms, accuracies)
        for member in members
    ]
    # A member without any work has no quality to show.
    return [person for person in people if person.judged or person.skips or person.flags or person.checks]


def measure_months(collection: Collection) -> list[MonthQuality]:
    """Measure everyone's accuracy on gold and agreement with the others, month by month, newest month first."""
    members = dict(Membership.objects.filter(collection=collection).values_list("assessor", "pk"))
    tally_of = _tally_judgments(collection, monthly=True)
    return [
        MonthQuality(
            membership=members[assessor],
            month=f"{month // 12}-{month % 12 + 1:02}",
            gold=share_statistic(tally.gold, NO_GOLD),
            majority=share_statistic(_equal_to_majority(tally), NOBODY_ELSE),
        )
        for (assessor, month), tally in sorted(tally_of.items(), key=lambda row: (-row[0][1], row[0][0]))
        if assessor in members
    ]


def _equal_to_majority(tally: AnnotatorTally) -> list[bool]:
    return [own == majority for own, majority in zip(tally.own, tally.others, strict=True)]


def _person_quality(
    member: Membership, tally: AnnotatorTally, usual_ms: float | None, accuracies: dict[int, float]
) -> PersonQuality:
    kappa = missing_statistic(NOBODY_ELSE)
    if tally.own:
        grades = np.array([tally.own, tally.others], dtype=np.int16)
        kappa = compute_measures(grades, bootstrap=RESAMPLES).pairwise[0].kappa
    person = PersonQuality(
        membership=member.pk,
        name=member.user.username,
        active=member.is_active,
        judged=tally.judged,
        seconds=median(tally.milliseconds) / 1000 if tally.milliseconds else None,
        majority=share_statistic(_equal_to_majority(tally), NOBODY_ELSE),
        gold=share_statistic(tally.gold, NO_GOLD),
        kappa=kappa,
        prevalence=tally.relevant / tally.judged if tally.judged else None,
        skips=member.skips,  # type: ignore[attr-defined]  # annotated above
        flags=member.flags,  # type: ignore[attr-defined]
        intra=share_statistic(tally.repeats, NO_REPEATS),
        fast=tally.fast,
        slow=tally.slow,
        dawid_skene=accuracies.get(member.assessor_id),
        checks=len(tally.checks),
        missed=tally.checks.count(False),
        paused=member.paused_at is not None,
        alarms=(),
    )
    return replace(person, alarms=tuple(list_alarms(person, usual_ms)))


def list_alarms(person: PersonQuality, usual_ms: float | None) -> Iterator[str]:
    """Yield the reasons why an admin should look at an annotator. `usual_ms`: the median of all median times."""
    gold, majority, intra = person.gold, person.majority, person.intra
    if gold.n >= FEW and gold.high is not None and gold.high < GOLD_MARK:
        words = _("%(gold_value)s correct on %(n)s gold pairs: below %(gold_mark)s (95%% confidence)")
        yield words % {"gold_value": f"{gold.value:.0%}", "n": gold.n, "gold_mark": f"{GOLD_MARK:.0%}"}
    if majority.n >= FEW and majority.high is not None and majority.high < MAJORITY_MARK:
        words = _("agrees with others on %(majority_value)s of %(n)s items: below 70%% (95%% confidence)")
        yield words % {"majority_value": f"{majority.value:.0%}", "n": majority.n}
    if person.judged >= FEW_HASTY and person.seconds is not None and person.seconds < LEAST_S:
        # However fast the others are: no one can read a query and a document in that time.
        words = _("takes %(seconds)s s per judgment, less than reading takes")
        yield words % {"seconds": f"{person.seconds:.1f}"}
    elif (
        person.judged >= FEW
        and person.seconds is not None
        and usual_ms is not None
        and person.seconds * 1000 < usual_ms * HASTE
    ):
        words = _("takes %(seconds)s s per judgment; others take %(usual)s s")
        yield words % {"seconds": f"{person.seconds:.1f}", "usual": f"{usual_ms / 1000:.1f}"}
    if person.skips >= FEW and person.skips > SKIPS * (person.judged + person.skips):
        yield _("skips %(skips)s of %(n)s pairs") % {"skips": person.skips, "n": person.judged + person.skips}
    if person.judged >= FEW and person.fast > HASTY * person.judged:
        yield _("%(n)s judgments with an outlier time (too fast)") % {"n": person.fast}
    if person.missed:
        yield _("missed %(missed)s of %(n)s attention checks") % {"missed": person.missed, "n": person.checks}
    if intra.high is not None and intra.high < INTRA_MARK:
        words = _("repeats only %(same)s of %(n)s earlier answers: below %(mark)s (95%% confidence)")
        yield words % {"same": f"{intra.value:.0%}", "n": intra.n, "mark": f"{INTRA_MARK:.0%}"}


def _tally_judgments(collection: Collection, *, monthly: bool = False) -> dict[tuple[int, int], AnnotatorTally]:
    """Tally judgments by assessor and, if `monthly`, month (else 0), without adjudications.

    An adjudicator sees everyone's answers.

    1. Read the first judgment of each member on each task.
    2. Count the votes on each task, and remember each first answer.
    3. Compare each judgment with the other votes, the reference and the first answer.
    4. Count times that are far from the usual one.
    """
    mark = collection.relevant_from
    values = {"collection": collection.pk, "missing": MISSING, "zone": settings.TIME_ZONE}
    judgments = fetch_columns(READ_JUDGMENTS, **values).tolist()
    rows = [(*row, grade >= mark) for *row, grade, _reference in judgments]
    gold = {pair: grade >= mark for _assessor, _task, pair, *_rest, grade in judgments if grade != MISSING}
    task_votes: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    first_answers: dict[tuple[int, int], bool] = {}
    for assessor, task, pair, _ms, _month, kind, relevant in rows:
        # Only ordinary work makes the majority: a check or repeat would be a second vote.
        if kind == ORDINARY:
            task_votes[task][relevant] += 1
            first_answers.setdefault((assessor, pair), relevant)
    tally_of: dict[tuple[int, int], AnnotatorTally] = defaultdict(AnnotatorTally)
    for assessor, task, pair, ms, month, kind, relevant in rows:
        tally = tally_of[assessor, month if monthly else 0]
        if kind == REPEAT:
            if (assessor, pair) in first_answers:
                tally.repeats.append(first_answers[assessor, pair] == relevant)
            continue
        # Checks count as gold but not as work: their times and grades say nothing about ordinary pairs.
        if kind == CHECK:
            if pair in gold:
                tally.checks.append(gold[pair] == relevant)
                tally.gold.append(gold[pair] == relevant)
            continue
        tally.judged += 1
        tally.relevant += relevant
        if ms != MISSING:
            tally.milliseconds.append(ms)
        # Without the annotator's own vote, which would make everyone agree with a majority of which they are part.
        no_votes, yes_votes = (votes - (relevant == side) for side, votes in enumerate(task_votes[task]))
        if no_votes != yes_votes:
            tally.own.append(int(relevant))
            tally.others.append(int(yes_votes > no_votes))
        if pair in gold:
            tally.gold.append(gold[pair] == relevant)
    # Times are compared on a logarithmic scale, by their median absolute deviation.
    times = np.log([max(ms, 1) for tally in tally_of.values() for ms in tally.milliseconds])
    if len(times) < FEW:
        return tally_of
    center = float(np.median(times))
    # 1.4826 makes the median absolute deviation an estimate of the standard deviation.
    spread = max(1.4826 * float(np.median(np.abs(times - center))), LEAST_SPREAD)
    for tally in tally_of.values():
        deviations = (np.log([max(ms, 1) for ms in tally.milliseconds]) - center) / spread
        tally.fast, tally.slow = int((deviations < -FAR).sum()), int((deviations > FAR).sum())
    return tally_of


def estimate_accuracies(votes: BinaryVotes) -> dict[int, float]:
    """Estimate the share of correct grades of each person (Dawid and Skene), by assessor; empty where not possible."""
    rows = [row for row, assessor in enumerate(votes.matrix.assessors) if assessor.kind == Assessor.Kind.PERSON]
    grades = votes.matrix.grades[rows]
    grades = grades[:, (grades != MISSING).sum(axis=0) >= 2]  # A pair with one judgment shows no errors.
    # With two annotators the model cannot tell which of them errs.
    if len(rows) < 3 or not grades.size:
        return {}
    patterns = group_patterns(grades)
    classes, counts = sparse_counts(patterns.grades)
    solution = dawid_skene(counts, classes, weights=patterns.counts.astype(np.float64))
    # In a solution that collapsed into one class everyone is perfect.
    if solution is None or solution.collapsed:
        return {}
    has_graded = (grades != MISSING).any(axis=1)
    return {
        votes.matrix.assessors[row].id: float(share)
        for row, share, graded in zip(rows, solution.accuracies[0], has_graded, strict=True)
        if graded
    }
