"""LARA as a live policy: a judge's stored votes, calibrated on people's labels batch by batch (DREAM 3.2).

A campaign of the policy `lara` asks no judge: it goes on from the votes of another campaign, whose
judge gave P(yes) and P(no) for every pair. All its pairs wait as running work with a lease that
does not end. A step looks whether people have settled what they got, and then hands them the next
batch, or labels the rest once the share is spent. Outcomes are written by the engine's own
statement, so items, labels, audits and counters are those of every policy.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import psycopg
from django.db import connection, transaction
from django.utils import timezone
from numpy.typing import NDArray

from annotation.quality.policies import lara
from annotation.work.queue.assignment import in_transaction
from corpus.collections.task_order import forget_watermarks
from corpus.errors import BadOption
from corpus.labels import ADJUDICATOR, PEOPLE
from corpus.models import Collection
from jobs import background
from judges.campaigns import counters
from judges.campaigns.selectors import campaigns_that_count
from judges.costs.budget import BudgetExhausted
from judges.domain.routing import EscalationReason, RoutingOutcome, RoutingState
from judges.engine import leases, rows
from judges.engine.calls import Caller
from judges.engine.leases import Claimed
from judges.engine.pairs import build_decision, play_debate
from judges.engine.plan import Plan, load_plan
from judges.inline import runner
from judges.models import Campaign, JudgeVersion, Work
from judges.records import Turn
from judges.tasks import database_parameters
from store.sql import fetch_rows, read_sql

POLICY = Campaign.Policy.LARA.value
GO_ON = "annotation.go_on_with_lara"  # A step in the background, for a campaign.
REST = timedelta(minutes=10)  # A step that failed is asked for again after so long, or by `lara NAME`.
# One step of a campaign at a time; a second one waits, and then finds nothing left to do.
LOCK = "SELECT pg_advisory_xact_lock(7108, %s)"

VOTES = read_sql(__file__, "read_lara_votes")
STANDING = read_sql(__file__, "read_lara_progress")

# The lease never ends: no worker claims these rows, and only a step of LARA ends them.
BEGIN = """
INSERT INTO judges_work (campaign_id, pair_id, state, fence, claims, lease_until, reason, error, attempt_base)
SELECT %(campaign)s, pair_id, 'running', 1, 1, now() + interval '100 years', '', '', 0
FROM judges_work WHERE campaign_id = %(source)s AND state IN ('labelled', 'escalated') ORDER BY pair_id
"""

# Campaigns of which people have settled all that they got.
SETTLED = """
SELECT c.id FROM judges_campaign c
WHERE c.policy = %(policy)s AND c.state = 'running'
  AND EXISTS (SELECT FROM judges_work w WHERE w.campaign_id = c.id AND w.state = 'escalated')
  AND NOT EXISTS (
    SELECT FROM judges_work w
    WHERE w.campaign_id = c.id AND w.state = 'escalated' AND NOT EXISTS (
        SELECT FROM corpus_label l
        WHERE l.pair_id = w.pair_id AND l.aspect_id IS NULL AND l.origin = ANY(%(people)s)))
"""


@dataclass(frozen=True, slots=True)
class LaraStep:
    """Progress of a live calibration. `handed` and `labelled` count this step alone."""

    asked: int
    waiting: int  # Of the asked, pairs that people have not settled yet.
    budget: int
    handed: int = 0
    labelled: int = 0


@dataclass(frozen=True, slots=True)
class LaraProgress:
    """All pairs of a campaign, in the order of their ids."""

    rows: list[tuple[Any, ...]]  # As STANDING gives them: work, pair, query and so on.
    beliefs: NDArray[np.float64]
    asked: NDArray[np.int64]  # Places of the pairs that people got, and their labels (-1: not settled yet).
    labels: NDArray[np.int64]
    budget: int  # Pairs that people get in all.

    @property
    def has_open_batch(self) -> bool:
        """Whether people have not settled all that they got."""
        return bool((self.labels < 0).any())

    def next_batch(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return places of the pairs that people get next, and the calibration's beliefs."""
        probability = lara.calibrate_beliefs(self.beliefs, self.asked, self.labels)
        most = max(0, min(lara.batch_of(len(self.rows)), self.budget - len(self.asked)))
        return lara.most_uncertain(probability, self.asked, most), probability


def start(
    collection: Collection, *, judge: str, share: float, source: Campaign | None = None, debates: bool = True
) -> Campaign:
    """Start a campaign on the judge's votes of `source` (default: its newest), or return the one that goes on already.

    `debates`: what people get is debated first, by the debaters of the votes' panel, where it has
    some. Raises BadInput for a judge without votes, a vote without log-probabilities, or a share
    out of (0, 1].
    """
    if not 0 < share <= 1:
        raise BadOption("share", "Enter a share above 0 and at most 1, for example 0.125.")
    found, place = source_of(collection, judge, source)
    protocol: dict[str, Any] = {POLICY: {"source": found.pk, "place": place, "share": share}}
    protocol |= {} if debates else {"debate_for_people": False}
    with transaction.atomic(), connection.cursor() as cursor:
        # The engine's own lock: a start never meets the end of another campaign here.
        cursor.execute(leases.LOCK, {"collection": collection.pk})
        known = Campaign.objects.filter(collection=collection, policy=POLICY, protocol=protocol)
        # The same judge, source and share is the same campaign, whoever asks again.
        if going := known.exclude(state=Campaign.State.CANCELLED).order_by("-pk").first():
            return going
        campaign = Campaign.objects.create(
            collection=collection,
            policy=POLICY,
            voters=[found.voters[place]],
            debaters=found.debaters if debates else [],
            seed=collection.seed,
            protocol=protocol,
            **{name: getattr(found, name) for name in ("panel", "rounds", "rubric", "instruction")},
        )
        cursor.execute(BEGIN, {"campaign": campaign.pk, "source": found.pk})
        counters.add(campaign.pk, "pairs", cursor.rowcount)
    return campaign


def source_of(collection: Collection, judge: str, source: Campaign | None) -> tuple[Campaign, int]:
    """The campaign whose votes are calibrated, the judge's place on its panel. Raises BadInput."""
    versions = list(JudgeVersion.objects.filter(name=judge).values_list("pk", flat=True))
    judging = campaigns_that_count(collection).filter(kind=Campaign.Kind.JUDGING)
    asked = judging.filter(voters__overlap=versions).exclude(policy=POLICY)
    found = source or asked.order_by("-pk").first()
    place = next((at for at, pk in enumerate(found.voters) if pk in versions), None) if found else None
    if found is None or place is None:
        raise BadOption(
            "judge", f"{judge} has voted in no campaign of {collection.name}: start one with the policy single first."
        )
    if windows := Work.objects.filter(campaign=found, window__gt=0).count():
        raise BadOption(
            "judge",
            f"{windows:,} pairs of campaign {found.number} were judged window by window, and LARA calibrates votes "
            'about whole documents: set long_documents to "cut" or "context", and judge again.',
        )
    votes = fetch_rows(VOTES, place=place, campaign=found.pk)
    lacking = sum(None in vote for vote in votes)
    if lacking or not votes:
        raise BadOption(
            "judge",
            f"{lacking:,} of {len(votes):,} pairs of campaign {found.number} have no P(yes) and P(no). LARA needs a "
            "provider with log-probabilities: set logprobs = true in the judges file, check that the model gives them "
            "(check_judges), and judge again.",
        )
    return found, place


def step(campaign: Campaign) -> LaraStep:
    """Take the next step of a calibration: hand out a batch, or label the rest. Safe to run at any time, and twice."""
    # The batch is debated before people get it, and nobody holds a lock meanwhile. A step that
    # comes then debates the same pairs and finds their turns in the cache; who is first hands them
    # out.
    if undebated := _to_debate(campaign):
        play_debates(campaign, undebated)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK, [campaign.pk])
        campaign = Campaign.objects.select_related("collection").get(pk=campaign.pk)
        now = read_progress(campaign)
        asked, budget = len(now.asked), now.budget
        # People have not settled the last batch: calibrating on part of it would favour pairs that are settled fast.
        if now.has_open_batch or campaign.state != Campaign.State.RUNNING:
            return LaraStep(asked, int((now.labels < 0).sum()), budget)
        plan = load_plan(campaign.pk)
        assert plan is not None
        chosen, probability = now.next_batch()
        if asked < budget:
            _write_outcomes(plan, now, [(int(place), None) for place in chosen], probability)
            forget_watermarks(campaign.collection)
            return LaraStep(asked + len(chosen), len(chosen), budget, handed=len(chosen))
        rest = np.setdiff1d(np.arange(len(now.rows)), now.asked)
        _write_outcomes(plan, now, [(int(place), int(probability[place] >= 0.5)) for place in rest], probability)
    # By the engine's own function: the audit sample is filled up as at the end of every campaign.
    in_transaction(partial(leases.finish_campaign, campaign=campaign.pk, collection=campaign.collection_id))
    return LaraStep(asked, 0, budget, labelled=len(rest))


def wake() -> None:
    """Ask for a step of each campaign of which people have settled all that they got."""
    found = [campaign for (campaign,) in fetch_rows(SETTLED, policy=POLICY, people=[PEOPLE, ADJUDICATOR])]
    last = background.newest(GO_ON, found)
    for campaign in found:
        job = last.get(campaign)
        failed = job is not None and job.state == job.FAILED and job.ended_at
        # A step that keeps failing is not started again at each look.
        if not (failed and failed > timezone.now() - REST):
            background.enqueue(GO_ON, campaign)


def _to_debate(campaign: Campaign) -> list[int]:
    """Work rows of what people get next; [] without debates, or with enough ready."""
    campaign = Campaign.objects.select_related("collection").get(pk=campaign.pk)
    if not campaign.debaters or campaign.state != Campaign.State.RUNNING:
        return []
    now = read_progress(campaign)
    return [] if now.has_open_batch else [now.rows[place][0] for place in now.next_batch()[0].tolist()]


def read_progress(campaign: Campaign) -> LaraProgress:
    """Read the campaign's votes, which pairs people got, and their labels of these."""
    told = campaign.protocol[POLICY]
    found = fetch_rows(
        STANDING,
        campaign=campaign.pk,
        source=told["source"],
        place=told["place"],
        relevant=campaign.collection.relevant_from,
        people=[PEOPLE, ADJUDICATOR],
    )
    asked = [place for place, row in enumerate(found) if row[3]]
    labels = [-1 if found[place][7] is None else found[place][7] for place in asked]
    return LaraProgress(
        rows=found,
        beliefs=np.array([row[5:7] for row in found], dtype=np.float64).reshape(-1, 2),
        asked=np.array(asked, dtype=np.int64),
        labels=np.array(labels, dtype=np.int64),
        budget=lara.budget_of(len(found), told["share"]),
    )


def _write_outcomes(
    plan: Plan, now: LaraProgress, chosen: list[tuple[int, int | None]], probability: NDArray[np.float64]
) -> None:
    """Outcomes of places: a label, or None for people, by the engine's statement."""
    ended = []
    for place, label in chosen:
        # 1 at probability 0.5, 0 where the calibration is sure: this orders the queue.
        doubt = 1 - 2 * abs(float(probability[place]) - 0.5)
        state, reason = (
            (RoutingState.ESCALATED, EscalationReason.UNCERTAIN)
            if label is None
            else (RoutingState.LABELLED, EscalationReason.NONE)
        )
        # The engine's records: its one statement writes labels, tasks and counters here too.
        work, pair_id, query, _asked, verdict, *_rest = now.rows[place]
        pair = Claimed(work, pair_id, 1, 0, query)
        pair.ended["vote", 0, 0] = Turn(verdict, "")
        ended.append(build_decision(plan, pair, RoutingOutcome(state, label, reason, None, doubt)))
    if ended:
        rows.store_rows(connection.connection, ended, counters.random_shard())


def play_debates(campaign: Campaign, work: Sequence[int]) -> None:
    """Play these pairs' debates from where they stand, while the budget lasts."""
    # No worker drains a campaign of LARA: whoever runs the step asks, within the limits and budgets of every campaign.
    plan = load_plan(campaign.pk)
    if plan is None:
        return
    # The judge whose votes are calibrated is not asked: no price of its is needed.
    asked = {judge.id: plan.prices[judge.id] for judge in plan.debaters}
    plan = replace(plan, voters=(), samples=(), prices=asked)
    with psycopg.connect(**database_parameters(), autocommit=True) as own:  # it reads JSON as the engine does
        # Where a row has ended meanwhile, the next running one is in its place, and not meant.
        next_running = [(number, leases.running_pairs(own, plan, after=number - 1, n=1)) for number in work]
    held = [one for number, found in next_running for one in found if one.work == number]
    # The debates may take minutes: Django's connection is not kept open meanwhile.
    connection.close()

    async def play(caller: Caller, claimed: Claimed) -> None:
        with suppress(BudgetExhausted):
            await play_debate(caller, claimed)

    runner.run_inline(plan, held, play)
