"""Quality of each annotator: number and speed of judgments, agreement with the others and with the reference."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np
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
from annotation.quality.label_quality.records import PersonQuality, missing_statistic
from corpus.models import Assessor, Collection
from store.sql import read_sql

FEW = 20  # Fewer judgments than this raise no alarm.
GOLD_MARK = 0.8
MAJORITY_MARK = 0.7
HASTE = 1 / 3  # Of the median of everybody's medians.
LEAST_S = 2.0  # Median seconds of a judgment below which nobody has read.
FEW_HASTY = 5  # Judgments from which on such a median alarms: it needs no comparison.
SKIPS = 0.3
RESAMPLES = 200
HASTY = 0.1  # Share of far too fast judgments that alarms.
FAR = 3.0  # Deviations from the median time of a judgment.
LEAST_SPREAD = 0.35  # Of times, as a logarithm: nobody is an outlier for being a third away.
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
    own: list[int] = field(default_factory=list)  # Relevance where the others on the item have a majority, ...
    others: list[int] = field(default_factory=list)  # ... and that majority.
    gold: list[bool] = field(default_factory=list)
    checks: list[bool] = field(default_factory=list)
    again: list[bool] = field(default_factory=list)  # Whether a pair that was asked once more got the same answer.
    fast: int = 0
    slow: int = 0


def measure_annotators(collection: Collection, said: BinaryVotes | None = None) -> list[PersonQuality]:
    """Measure everybody who judged, skipped or flagged here, by name. `said`: everybody's votes, if read before."""
    sums = _tally_judgments(collection)
    State = Assignment.State
    members = Membership.objects.filter(collection=collection).select_related("user").order_by("user__username")
    members = members.annotate(
        skips=Count("assignments", filter=Q(assignments__state=State.SKIPPED)),
        flags=Count("assignments", filter=Q(assignments__flagged=True, assignments__state=State.DONE)),
    )
    # The median of people's medians: somebody with very many judgments does not set the usual time.
    medians = [median(one.milliseconds) for one in sums.values() if one.milliseconds]
    usual = median(medians) if medians else None
    shares = estimate_accuracies(said or read_binary_votes(collection))
    people = [
        _person_quality(member, sums.get(member.assessor_id, AnnotatorTally()), usual, shares) for member in members
    ]
    # A member who has done nothing yet has no quality to show.
    return [one for one in people if one.judged or one.skips or one.flags or one.checks]


def _person_quality(
    member: Membership, sums: AnnotatorTally, usual: float | None, shares: dict[int, float]
) -> PersonQuality:
    equal = [mine == theirs for mine, theirs in zip(sums.own, sums.others, strict=True)]
    kappa = missing_statistic(NOBODY_ELSE)
    if sums.own:
        grades = np.array([sums.own, sums.others], dtype=np.int16)
        kappa = compute_measures(grades, bootstrap=RESAMPLES).pairwise[0].kappa
    found = PersonQuality(
        membership=member.pk,
        name=member.user.username,
        active=member.is_active,
        judged=sums.judged,
        seconds=median(sums.milliseconds) / 1000 if sums.milliseconds else None,
        majority=share_statistic(equal, NOBODY_ELSE),
        gold=share_statistic(sums.gold, NO_GOLD),
        kappa=kappa,
        prevalence=sums.relevant / sums.judged if sums.judged else None,
        skips=member.skips,  # type: ignore[attr-defined]  # annotated above
        flags=member.flags,  # type: ignore[attr-defined]
        intra=share_statistic(sums.again, NO_REPEATS),
        fast=sums.fast,
        slow=sums.slow,
        dawid_skene=shares.get(member.assessor_id),
        checks=len(sums.checks),
        missed=sums.checks.count(False),
        paused=member.paused_at is not None,
        alarms=(),
    )
    return replace(found, alarms=tuple(list_alarms(found, usual)))


def list_alarms(one: PersonQuality, usual: float | None) -> Iterator[str]:
    """Say why an admin should look. `usual`: the median of all median times (ms)."""
    gold, majority, intra = one.gold, one.majority, one.intra
    if gold.n >= FEW and gold.high is not None and gold.high < GOLD_MARK:
        words = _("%(gold_value)s correct on %(n)s gold pairs: below %(gold_mark)s (95%% confidence)")
        yield words % {"gold_value": f"{gold.value:.0%}", "n": gold.n, "gold_mark": f"{GOLD_MARK:.0%}"}
    if majority.n >= FEW and majority.high is not None and majority.high < MAJORITY_MARK:
        words = _("agrees with others on %(majority_value)s of %(n)s items: below 70%% (95%% confidence)")
        yield words % {"majority_value": f"{majority.value:.0%}", "n": majority.n}
    if one.judged >= FEW_HASTY and one.seconds is not None and one.seconds < LEAST_S:
        # Whatever the others take: nobody reads a query and a document in that time.
        words = _("takes %(seconds)s s per judgment, less than reading takes")
        yield words % {"seconds": f"{one.seconds:.1f}"}
    elif one.judged >= FEW and one.seconds is not None and usual is not None and one.seconds * 1000 < usual * HASTE:
        words = _("takes %(seconds)s s per judgment; others take %(usual)s s")
        yield words % {"seconds": f"{one.seconds:.1f}", "usual": f"{usual / 1000:.1f}"}
    if one.skips >= FEW and one.skips > SKIPS * (one.judged + one.skips):
        yield _("skips %(skips)s of the items") % {"skips": f"{one.skips / (one.judged + one.skips):.0%}"}
    if one.judged >= FEW and one.fast > HASTY * one.judged:
        yield _("%(n)s judgments with an outlier time (too fast)") % {"n": one.fast}
    if one.missed:
        yield _("missed %(missed)s of %(n)s attention checks") % {"missed": one.missed, "n": one.checks}
    if intra.high is not None and intra.high < INTRA_MARK:
        yield _("self-consistency of only %(same)s on repeated pairs") % {"same": f"{intra.value:.0%}"}


def _tally_judgments(collection: Collection) -> dict[int, AnnotatorTally]:
    """Tally judgments by assessor, without adjudications, which see everybody's answers."""
    mark = collection.relevant_from
    # The first of each member on an item.
    found_rows = fetch_columns(READ_JUDGMENTS, collection=collection.pk, missing=MISSING).tolist()
    rows = [(*row, grade >= mark) for *row, grade, _reference in found_rows]
    gold = {pair: grade >= mark for _who, _item, pair, *_rest, grade in found_rows if grade != MISSING}
    items: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    before: dict[tuple[int, int], bool] = {}
    for who, item, pair, _ms, kind, yes in rows:
        # Only ordinary work makes the majority: a check or repeat would be a second vote.
        if kind == ORDINARY:
            items[item][yes] += 1
            before.setdefault((who, pair), yes)
    found: dict[int, AnnotatorTally] = defaultdict(AnnotatorTally)
    for who, item, pair, ms, kind, yes in rows:
        one = found[who]
        if kind == REPEAT:
            if (who, pair) in before:
                one.again.append(before[who, pair] == yes)
            continue
        # Checks count as gold but not as work: their time and their grades say nothing of the ordinary pairs.
        if kind == CHECK:
            if pair in gold:
                one.checks.append(gold[pair] == yes)
                one.gold.append(gold[pair] == yes)
            continue
        one.judged += 1
        one.relevant += yes
        if ms != MISSING:
            one.milliseconds.append(ms)
        # Without the person's own vote, else everybody would agree with a majority that they make.
        no_votes, yes_votes = (votes - (yes == side) for side, votes in enumerate(items[item]))
        if no_votes != yes_votes:
            one.own.append(int(yes))
            one.others.append(int(yes_votes > no_votes))
        if pair in gold:
            one.gold.append(gold[pair] == yes)
    # Times far from everybody's, on a logarithmic scale (median absolute deviation).
    times = np.log([max(ms, 1) for one in found.values() for ms in one.milliseconds])
    if len(times) < FEW:
        return found
    middle = float(np.median(times))
    # 1.4826 makes the median absolute deviation an estimate of the standard deviation.
    spread = max(1.4826 * float(np.median(np.abs(times - middle))), LEAST_SPREAD)
    for one in found.values():
        away = (np.log([max(ms, 1) for ms in one.milliseconds]) - middle) / spread
        one.fast, one.slow = int((away < -FAR).sum()), int((away > FAR).sum())
    return found


def estimate_accuracies(said: BinaryVotes) -> dict[int, float]:
    """Estimate the share of right grades by assessor (Dawid and Skene, people alone); empty where it cannot be told."""
    rows = [place for place, one in enumerate(said.found.assessors) if one.kind == Assessor.Kind.PERSON]
    grades = said.found.grades[rows]
    grades = grades[:, (grades != MISSING).sum(axis=0) >= 2]  # nobody's error shows on a pair that one person judged
    # With two judges the model cannot tell which of them errs.
    if len(rows) < 3 or not grades.size:
        return {}
    found = group_patterns(grades)
    classes, counts = sparse_counts(found.grades)
    solution = dawid_skene(counts, classes, weights=found.counts.astype(np.float64))
    # A solution that collapsed into one class says that everybody is perfect.
    if solution is None or solution.collapsed:
        return {}
    heard = (grades != MISSING).any(axis=1)
    return {
        said.found.assessors[row].id: float(share)
        for row, share, any_ in zip(rows, solution.accuracies[0], heard, strict=True)
        if any_
    }
