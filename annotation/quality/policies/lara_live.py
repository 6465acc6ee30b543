"""LARA as a live policy: a judge's stored votes, calibrated on people's labels batch by batch (DREAM 3.2).

A campaign of the policy `lara` asks no judge: it uses the votes of another campaign, whose judge gave
P(yes) and P(no) for every pair. All its pairs wait as running work with a lease that does not end. Once
people have resolved their batch, a step opens the next one, or labels the rest when people have had
their share. The engine's own statement writes outcomes, so tasks, labels, audits and counters are
those of every policy.
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
from judges.campaigns.selectors import campaigns_that_count
from judges.costs import counters
from judges.domain.routing import EscalationReason, RoutingOutcome, RoutingState
from judges.engine import leases, rows
from judges.engine.budget import BudgetExhausted
from judges.engine.calls import Caller
from judges.engine.leases import Claimed
from judges.engine.pairs import build_decision, play_debate
from judges.engine.plan import Plan, load_plan
from judges.models import Campaign, JudgeVersion, Work
from judges.records import Turn
from judges.workers import inline_runner as runner
from store.sql import database_parameters, fetch_rows, read_sql

POLICY = Campaign.Policy.LARA.value
GO_ON = "annotation.go_on_with_lara"  # A step in the background, for a campaign.
RETRY_AFTER = timedelta(minutes=10)  # Time until a failed step is tried again, unless `lara NAME` does so.
# One step of a campaign at a time; a second one waits, and then has nothing to do.
LOCK = "SELECT pg_advisory_xact_lock(7108, %s)"

READ_VOTES = read_sql(__file__, "read_lara_votes")
READ_PROGRESS = read_sql(__file__, "read_lara_progress")

# The lease never ends: no worker claims these rows, and only a step of LARA ends them.
CREATE_WORK = """
INSERT INTO judges_work (campaign_id, pair_id, state, fence, claims, lease_until, reason, error, attempt_base)
SELECT %(campaign)s, pair_id, 'running', 1, 1, now() + interval '100 years', '', '', 0
FROM judges_work WHERE campaign_id = %(source)s AND state IN ('labelled', 'escalated') ORDER BY pair_id
"""

# Campaigns whose escalated pairs people have all resolved.
RESOLVED_CAMPAIGNS = """
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
    """Progress of a live calibration, in numbers of pairs."""

    people_pairs: int  # Pairs that were given to people.
    waiting: int  # Of those, pairs that people have not resolved.
    budget: int  # Pairs that people get in all.
    handed: int = 0  # Pairs that this step gave to people.
    labelled: int = 0  # Pairs that this step labelled.


@dataclass(frozen=True, slots=True)
class LaraProgress:
    """All pairs of a campaign, in the order of their ids."""

    rows: list[tuple[Any, ...]]  # Of READ_PROGRESS: work, pair, query and so on.
    beliefs: NDArray[np.float64]  # Pairs x (P(yes), P(no)).
    people_pairs: NDArray[np.int64]  # Positions of the pairs that were given to people.
    labels: NDArray[np.int64]  # People's labels of these; -1: not resolved.
    budget: int  # Number of pairs that people get in all.

    @property
    def has_open_batch(self) -> bool:
        """Whether some pairs that were given to people are not resolved."""
        return bool((self.labels < 0).any())

    def next_batch(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the positions of the pairs that people get next, and P(relevant) of all pairs."""
        probability = lara.calibrate_beliefs(self.beliefs, self.people_pairs, self.labels)
        most = max(0, min(lara.batch_of(len(self.rows)), self.budget - len(self.people_pairs)))
        return lara.most_uncertain(probability, self.people_pairs, most), probability


def start(
    collection: Collection, *, judge: str, share: float, source: Campaign | None = None, debates: bool = True
) -> Campaign:
    """Start a campaign on a judge's votes of the campaign `source` (default: the judge's newest).

    A campaign of the same judge, source and share that is not cancelled is returned instead.
    `debates`: pairs are debated before people get them, by the debaters of `source`, where it has some.
    Raises BadInput for a judge without votes, a vote without log-probabilities, or a share outside (0, 1].
    """
    if not 0 < share <= 1:
        raise BadOption("share", "Enter a share above 0 and at most 1, for example 0.125.")
    source, position = source_of(collection, judge, source)
    protocol: dict[str, Any] = {POLICY: {"source": source.pk, "place": position, "share": share}}
    protocol |= {} if debates else {"debate_for_people": False}
    with transaction.atomic(), connection.cursor() as cursor:
        # The engine's own lock: a start and the end of another campaign exclude each other.
        cursor.execute(leases.LOCK, {"collection": collection.pk})
        campaigns = Campaign.objects.filter(collection=collection, policy=POLICY, protocol=protocol)
        if existing_campaign := campaigns.exclude(state=Campaign.State.CANCELLED).order_by("-pk").first():
            return existing_campaign
        campaign = Campaign.objects.create(
            collection=collection,
            policy=POLICY,
            voters=[source.voters[position]],
            debaters=source.debaters if debates else [],
            seed=collection.seed,
            protocol=protocol,
            **{name: getattr(source, name) for name in ("panel", "rounds", "rubric", "instruction")},
        )
        cursor.execute(CREATE_WORK, {"campaign": campaign.pk, "source": source.pk})
        counters.add(campaign.pk, "pairs", cursor.rowcount)
    return campaign


def source_of(collection: Collection, judge: str, source: Campaign | None) -> tuple[Campaign, int]:
    """Return the campaign whose votes are calibrated, and the judge's position on its panel. Raises BadInput."""
    versions = list(JudgeVersion.objects.filter(name=judge).values_list("pk", flat=True))
    judging = campaigns_that_count(collection).filter(kind=Campaign.Kind.JUDGING)
    candidates = judging.filter(voters__overlap=versions).exclude(policy=POLICY)
    campaign = source or candidates.order_by("-pk").first()
    voters = campaign.voters if campaign else []
    position = next((position for position, pk in enumerate(voters) if pk in versions), None)
    if campaign is None or position is None:
        raise BadOption(
            "judge", f"{judge} has voted in no campaign of {collection.name}: start one with the policy single first."
        )
    if windows := Work.objects.filter(campaign=campaign, window__gt=0).count():
        raise BadOption(
            "judge",
            f"{windows:,} pairs of campaign {campaign.number} were judged window by window, and LARA calibrates votes "
            'about whole documents: set long_documents to "cut" or "context", and judge again.',
        )
    votes = fetch_rows(READ_VOTES, place=position, campaign=campaign.pk)
    incomplete = sum(None in vote for vote in votes)
    if incomplete or not votes:
        raise BadOption(
            "judge",
            f"{incomplete:,} of {len(votes):,} pairs of campaign {campaign.number} have no P(yes) and P(no). "
            "LARA needs a provider with log-probabilities: set logprobs = true in the judges file, "
            "check that the model gives them (check_judges), and judge again.",
        )
    return campaign, position


def step(campaign: Campaign) -> LaraStep:
    """Take the next step of a calibration. It may run at any time, also twice.

    1. Debate the next batch, without a lock.
    2. Under a lock, give the batch to people; or, when they have had their share, label the rest.
    3. After the rest is labelled, finish the campaign.
    """
    # A step that runs meanwhile debates the same pairs, and reads their turns from the cache.
    if work := _to_debate(campaign):
        play_debates(campaign, work)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK, [campaign.pk])
        campaign = Campaign.objects.select_related("collection").get(pk=campaign.pk)
        progress = read_progress(campaign)
        people_pairs, budget = len(progress.people_pairs), progress.budget
        # Calibrating on a part of the last batch would favour pairs that people resolve quickly.
        if progress.has_open_batch or campaign.state != Campaign.State.RUNNING:
            return LaraStep(people_pairs, int((progress.labels < 0).sum()), budget)
        plan = load_plan(campaign.pk)
        assert plan is not None
        batch, probability = progress.next_batch()
        if people_pairs < budget:
            _write_outcomes(plan, progress, [(int(position), None) for position in batch], probability)
            forget_watermarks(campaign.collection)
            return LaraStep(people_pairs + len(batch), len(batch), budget, handed=len(batch))
        rest = np.setdiff1d(np.arange(len(progress.rows)), progress.people_pairs)
        labels: list[tuple[int, int | None]] = [(int(position), int(probability[position] >= 0.5)) for position in rest]
        _write_outcomes(plan, progress, labels, probability)
    # The engine's own function fills up the audit sample, as at the end of every campaign.
    in_transaction(partial(leases.finish_campaign, campaign=campaign.pk, collection=campaign.collection_id))
    return LaraStep(people_pairs, 0, budget, labelled=len(rest))


def wake() -> None:
    """Queue a step of each campaign whose batch people have resolved."""
    campaigns = [
        campaign for (campaign,) in fetch_rows(RESOLVED_CAMPAIGNS, policy=POLICY, people=[PEOPLE, ADJUDICATOR])
    ]
    jobs = background.newest(GO_ON, campaigns)
    for campaign in campaigns:
        job = jobs.get(campaign)
        failed_at = job is not None and job.state == job.FAILED and job.ended_at
        # A step that keeps failing is not queued at every call.
        if not (failed_at and failed_at > timezone.now() - RETRY_AFTER):
            background.enqueue(GO_ON, campaign)


def _to_debate(campaign: Campaign) -> list[int]:
    """Return the work rows of the next batch; none if the campaign does not debate or a batch is open."""
    campaign = Campaign.objects.select_related("collection").get(pk=campaign.pk)
    if not campaign.debaters or campaign.state != Campaign.State.RUNNING:
        return []
    progress = read_progress(campaign)
    if progress.has_open_batch:
        return []
    return [progress.rows[position][0] for position in progress.next_batch()[0].tolist()]


def read_progress(campaign: Campaign) -> LaraProgress:
    """Read the campaign's votes, the pairs that were given to people, and their labels."""
    settings = campaign.protocol[POLICY]
    pair_rows = fetch_rows(
        READ_PROGRESS,
        campaign=campaign.pk,
        source=settings["source"],
        place=settings["place"],
        relevant=campaign.collection.relevant_from,
        people=[PEOPLE, ADJUDICATOR],
    )
    people_pairs = [position for position, row in enumerate(pair_rows) if row[3]]
    labels = [-1 if pair_rows[position][7] is None else pair_rows[position][7] for position in people_pairs]
    return LaraProgress(
        rows=pair_rows,
        beliefs=np.array([row[5:7] for row in pair_rows], dtype=np.float64).reshape(-1, 2),
        people_pairs=np.array(people_pairs, dtype=np.int64),
        labels=np.array(labels, dtype=np.int64),
        budget=lara.budget_of(len(pair_rows), settings["share"]),
    )


def _write_outcomes(
    plan: Plan, progress: LaraProgress, outcomes: list[tuple[int, int | None]], probability: NDArray[np.float64]
) -> None:
    """Write outcomes by the engine's statement. `outcomes`: positions of pairs, with a label or None (for people)."""
    decisions = []
    for position, label in outcomes:
        # 1 at probability 0.5, 0 where the calibration is certain: the queue is ordered by it.
        doubt = 1 - 2 * abs(float(probability[position]) - 0.5)
        state, reason = (
            (RoutingState.ESCALATED, EscalationReason.UNCERTAIN)
            if label is None
            else (RoutingState.LABELLED, EscalationReason.NONE)
        )
        # With the engine's records its statement writes labels, tasks and counters too.
        work, pair_id, query, _asked, verdict, *_rest = progress.rows[position]
        pair = Claimed(work, pair_id, 1, 0, query)
        pair.ended["vote", 0, 0] = Turn(verdict, "")
        decisions.append(build_decision(plan, pair, RoutingOutcome(state, label, reason, None, doubt)))
    if decisions:
        rows.store_rows(connection.connection, decisions, counters.random_shard())


def play_debates(campaign: Campaign, work: Sequence[int]) -> None:
    """Continue the debates of these work rows, as far as the budget allows."""
    # No worker works on a campaign of LARA: the step asks the judges itself, within all limits and budgets.
    plan = load_plan(campaign.pk)
    if plan is None:
        return
    # The judge whose votes are calibrated is not asked, so its price is not needed.
    prices = {judge.id: plan.prices[judge.id] for judge in plan.debaters}
    plan = replace(plan, voters=(), samples=(), prices=prices)
    # A connection of its own, which reads JSON as the engine does.
    with psycopg.connect(**database_parameters(), autocommit=True) as engine_connection:
        next_running = [
            (number, leases.running_pairs(engine_connection, plan, after=number - 1, n=1)) for number in work
        ]
    # For a row that has ended meanwhile the next running one was read, which is not of the batch.
    batch = [pair for number, pairs in next_running for pair in pairs if pair.work == number]
    # Django's connection is closed because the debates may take minutes.
    connection.close()

    async def play(caller: Caller, claimed: Claimed) -> None:
        with suppress(BudgetExhausted):
            await play_debate(caller, claimed)

    runner.run_inline(plan, batch, play)
