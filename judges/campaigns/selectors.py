"""Queries on campaigns: status, the debate of a pair, every attempt, failed pairs, and latency."""

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Subquery, Sum, When
from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.models import Collection, Pair
from corpus.numbered import find_numbered
from judges.campaigns.judge_reports import describe_reports, join_reports, judge_reports, other_models
from judges.campaigns.pair_states import PairState, PairStates, count_states
from judges.costs import counters
from judges.domain.copies import sample_name
from judges.models import Attempt, AttemptBody, Campaign, Panel, Work
from judges.models.batches import Batch
from judges.panels.offline_panel import OWN_PANEL, judges_that_vote
from store.sql import fetch_row, fetch_rows, read_sql

STATUS = """
SELECT c.number, c.policy, c.state, c.stopped_by, c.paused_because,
    (SELECT count(*) FROM judges_work w WHERE w.campaign_id = c.id AND w.state = 'running'),
    (SELECT COALESCE(json_object_agg(key, value), '{}') FROM (
        SELECT key, sum(value) AS value FROM judges_tally t WHERE t.campaign_id = c.id GROUP BY key) AS sums)
FROM judges_campaign c WHERE c.id = %(campaign)s
"""

COLLECTION_SUMS = read_sql(__file__, "sum_collection")
LATENCY_MEDIANS = read_sql(__file__, "read_latency_medians")
LATENCY_OF = """
SELECT sum(milliseconds)::float8 AS summed, 1000 * extract(
    epoch FROM max(started_at + milliseconds * interval '1 millisecond') - min(started_at))::float8 AS wall
FROM judges_attempt WHERE campaign_id = %(campaign)s AND NOT cached AND pair_id = %(pair)s HAVING count(*) > 0
"""

LATENCY_SAMPLE = 400
TOKENS = ("in", "cached", "written", "out", "reasoning")


@dataclass(frozen=True)
class AttemptView:
    """An attempt with the messages sent and the body received; the row's fields can be read through it."""

    attempt: Attempt
    messages: list[dict[str, str]]
    raw: str

    @property
    def voter(self) -> str:
        return voter_name(self.attempt)

    @property
    def share(self) -> float | None:
        """The probability of the answer, if the provider returned it."""
        attempt = self.attempt
        # Keyed by the grade if there is one, otherwise by yes and no.
        shares = attempt.probabilities or {}
        if attempt.score is not None:
            return shares.get(str(attempt.score))
        return shares.get("yes" if attempt.verdict else "no")

    def __getattr__(self, name: str) -> Any:
        # Templates read a turn's fields from the view as from the row.
        return getattr(self.attempt, name)


def annotate_cost(campaigns: QuerySet[Campaign]) -> QuerySet[Campaign]:
    """Annotate campaigns with `spent`: USD, including assumed costs of calls whose cost is unknown."""
    return campaigns.annotate(spent=Sum("tallies__value", filter=Q(tallies__key__in=counters.COSTS), default=0.0))


def collection_status(
    collection: Collection, states: PairStates | None = None, *, by_judge: bool = True
) -> dict[str, Any]:
    """Return the contract's status document of the whole collection, in which every pair counts once.

    Calls and costs are those of all its campaigns that judge; `campaign` is the newest that was not
    cancelled. `states`: the counts of its pairs, if the caller has them. `by_judge`: include the
    results of each judge's calls, which takes three more statements.
    """
    states = states or count_states(collection)
    campaign, number, policy, state, stopped_by, because, protocol, sums = fetch_row(
        COLLECTION_SUMS, collection=collection.pk, cancelled=Campaign.State.CANCELLED
    )
    counted = {
        "pairs": states.pairs,
        "failed": states.counts[PairState.FAILED],
        "settled": states.counts[PairState.SETTLED],
        "escalated:audit": states.audits,
        **{f"labelled:{verdict}": n for verdict, n in states.labels.items()},
        **{f"escalated:{reason}": n for reason, n in states.reasons.items()},
        **{f"agreed:{number}": n for number, n in states.agreed.items()},
    }
    running = states.counts[PairState.RUNNING]
    row = (number, policy, state, stopped_by or "", because or "", running, (sums or {}) | counted)
    document = _status_document(collection.name, row)
    if by_judge:
        document |= _judge_lines(row[-1], Campaign.judging.filter(collection=collection).values_list("pk", flat=True))
    return document | ({"batches": _open_batches(campaign)} if campaign and (protocol or {}).get("batch") else {})


def campaign_status(
    collection: Collection, campaign: Campaign | None = None, *, by_judge: bool = True
) -> dict[str, Any]:
    """Return the contract's status document of a campaign, from its counters; without one, the collection's."""
    if campaign is None:
        return collection_status(collection, by_judge=by_judge)
    row = fetch_row(STATUS, campaign=campaign.pk)
    document = _status_document(collection.name, row)
    if by_judge:
        document |= _judge_lines(row[-1], [campaign.pk])
    return document | ({"batches": _open_batches(campaign.pk)} if campaign.protocol.get("batch") else {})


def _judge_lines(sums: dict[str, float], campaigns: Iterable[int]) -> dict[str, Any]:
    """Return the judges' calls by result, with remedies, and the other models that answered."""
    reports = join_reports(judge_reports(campaigns).values())
    others = other_models(sums)
    document = {"judges": [report.document for report in reports], "judge_notes": describe_reports(reports, others)}
    return document | ({"answered_by": others} if others else {})


def _open_batches(campaign: int) -> list[dict[str, Any]]:
    """List the batches that have not ended. `lost`: it is unknown whether the provider began the batch."""
    return [
        {
            "name": row.name,
            "model": row.model,
            "calls": row.calls,
            "state": "lost" if row.is_unconfirmed else "out" if row.provider_id else "waiting",
            "problem": row.problem or None,
        }
        for row in Batch.objects.filter(campaign=campaign, ended_at=None).order_by("pk")
    ]


def _status_document(name: str, row: tuple[Any, ...]) -> dict[str, Any]:
    campaign, policy, state, stopped_by, because, running, sums = row
    escalations = _sums_by_prefix(sums, "escalated:")
    labels = _sums_by_prefix(sums, "labelled:")
    pairs, failed = int(sums.get("pairs", 0)), int(sums.get("failed", 0))
    audits = escalations.get("audit", 0)
    target_count = int(sums.get("written", 0))
    # Audited pairs have a label: as escalated pairs they would count twice.
    labelled, escalated = sum(labels.values()) + target_count, sum(escalations.values()) - audits
    # At most the number of escalated pairs, since the two are counted separately.
    resolved = min(escalated, int(sums.get("settled", 0) + sums.get("moved", 0)))
    calls, unpriced = int(sums.get("calls", 0)), int(sums.get("calls_without_price", 0))
    possible = int(sums.get("calls_possible", 0))
    return {
        "collection": name,
        "campaign": campaign,
        "policy": policy,
        "state": state,
        "pairs": pairs,
        "pending": pairs - running - labelled - escalated - failed,
        "running": running,
        "labelled": labelled,
        "escalated": escalated,
        "failed": failed,
        "open": escalated - resolved,
        "settled": resolved,
        "audits": audits,
        "escalations": escalations,
        "labels": labels,
        "agreed_in_round": _sums_by_prefix(sums, "agreed:"),
        "calls": calls,
        "calls_failed": int(sums.get("calls_failed", 0)),
        "calls_cached": int(sums.get("calls_cached", 0)),
        "tokens": {part: int(sums.get(f"tokens_{part}", 0)) for part in TOKENS},
        # Unknown if no call has a known cost, otherwise the sum of the known costs.
        "cost": None if calls and unpriced == calls else round(sums.get("cost", 0.0), 10),
        "calls_without_price": unpriced,
        "calls_assumed": int(sums.get("calls_assumed", 0)),
        "cost_assumed": round(sums.get("cost_assumed", 0.0), 10),
        "paused_because": because or None,
        # Calls that the workers of a lost machine may have made, and the most that they can cost.
        **(
            {"calls_possible": possible, "cost_possible": round(sums.get("cost_possible", 0.0), 10)} if possible else {}
        ),
        **({"stopped_by": stopped_by} if state == Campaign.State.BUDGET and stopped_by else {}),
    } | ({"written": target_count} if policy == Campaign.Policy.EVIDENCE else {})


def count_filtered(campaign: Campaign) -> int:
    """Count the pairs that the campaign's filter labelled not relevant, without a debate or a vote of the panel."""
    if not campaign.protocol.get("filter"):
        return 0
    sums = counters.read(campaign.pk).items()
    return int(sum(value for key, value in sums if key.startswith("route:") and key.endswith(".filter")))


def _sums_by_prefix(sums: dict[str, float], prefix: str) -> dict[str, int]:
    counts = {key.removeprefix(prefix): int(value) for key, value in sums.items() if key.startswith(prefix)}
    return {key: counts[key] for key in sorted(counts) if counts[key]}


def find_campaign(collection: Collection, number: int | None, *, cancelled: bool = False) -> Campaign:
    """Return the campaign of this number; without a number the newest that judges, if possible one not cancelled.

    `cancelled`: take the newest even if it is cancelled, so that cancelling twice never ends an earlier campaign.
    Raises BadInput.
    """
    if number is not None:
        campaign = find_numbered(Campaign.objects, collection, number)
        missing = _("%(collection)s has no campaign %(number)s")
    else:
        campaigns = Campaign.judging.filter(collection=collection).order_by("-pk")
        campaign = (campaigns if cancelled else campaigns_of(collection)).first() or campaigns.first()
        missing = _("%(collection)s has no campaign yet: start one first")
    if campaign is None:
        raise BadInput(missing % {"collection": collection.name, "number": number})
    return campaign


def campaigns_of(collection: Collection) -> QuerySet[Campaign]:
    """Return the collection's campaigns that judge and were not cancelled, newest first."""
    return Campaign.judging.filter(collection=collection).exclude(state=Campaign.State.CANCELLED).order_by("-pk")


def campaigns_that_count(collection: Collection) -> QuerySet[Campaign]:
    """Return the collection's campaigns of all kinds, except those cancelled before any answer."""
    answers = Attempt.objects.filter(campaign=OuterRef("pk"), counts=True, outcome=Attempt.Outcome.LABELLED)
    condition = ~Q(state=Campaign.State.CANCELLED) | Exists(answers)
    return Campaign.objects.filter(condition, collection=collection).order_by("pk")


def with_campaign_number(jobs: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate jobs with the number of the campaign to which their calls belong (None: no campaign)."""
    number = Campaign.objects.filter(pk=OuterRef("campaign")).values("number")
    rows: QuerySet[Any] = jobs.annotate(campaign_number=Subquery(number))
    return rows


def number_of(campaign: int | None) -> int | None:
    """Return the number of the campaign with this primary key; None without a campaign."""
    return Campaign.objects.filter(pk=campaign).values_list("number", flat=True).first() if campaign else None


def failed_of(campaign: Campaign) -> QuerySet[Work]:
    """Return the failed pairs with their last error."""
    failed = Work.objects.filter(campaign=campaign, state=Work.State.FAILED)
    return failed.select_related("pair__query", "pair__document").order_by("pk")


def latency_of(pair: Pair, campaign: Campaign) -> dict[str, float] | None:
    """Return milliseconds of the campaign's calls about the pair, including failed ones; None if none was sent.

    `summed`: the sum over all calls; `wall`: from the start of the first to the end of the last.
    """
    return _read_latency(LATENCY_OF, campaign=campaign.pk, pair=pair.pk)


def latency_medians(campaign: Campaign) -> dict[str, float] | None:
    """Return the medians of `latency_of` over the campaign's pairs, or a sample of them; None before any call."""
    return _read_latency(LATENCY_MEDIANS, campaign=campaign.pk, most=LATENCY_SAMPLE)


def _read_latency(query: str, **values: int) -> dict[str, float] | None:
    rows = fetch_rows(query, **values)
    return {"summed": rows[0][0], "wall": rows[0][1]} if rows else None


def debate_of(pair: Pair) -> list[Attempt]:
    """Return the counted turns of the newest debate on the pair; some may have no verdict."""
    return debates_of([pair.pk]).get(pair.pk, [])


def debates_of(pairs: Iterable[int]) -> dict[int, list[Attempt]]:
    """Return the turns of the newest debate on each of these pairs that has one. One statement."""
    turns = Attempt.deciding.filter(role__in=("for", "against"))
    # The newest campaign may only have voted, or broken off its debate: then an older one has the newest debate.
    ended = Work.objects.filter(
        pair=OuterRef("pair"),
        campaign=OuterRef("campaign"),
        state__in=[Work.State.LABELLED, Work.State.ESCALATED],
    )
    newest = turns.filter(pair=OuterRef("pair")).order_by(Case(When(Exists(ended), then=0), default=1), "-campaign_id")
    debates: dict[int, list[Attempt]] = defaultdict(list)
    # By -role, "for" comes before "against" in a round.
    for turn in (
        turns.filter(pair__in=pairs, campaign_id=Subquery(newest.values("campaign_id")[:1]))
        .select_related("judge")
        .order_by("round", "agent_pair", "-role")
    ):
        debates[turn.pair_id].append(turn)
    return dict(debates)


def voter_name(attempt: Attempt) -> str:
    """Return the judge's name, with the number of the sample if the judge is on the panel several times."""
    name, voters = attempt.judge.name, attempt.campaign.voters
    if attempt.role not in ("vote", "generation") or voters.count(attempt.judge_id) < 2:
        return name
    # The number of the sample is that of the same judge's places before this one.
    return sample_name(name, voters[: attempt.place].count(attempt.judge_id))


def attempts_of(pair: Pair) -> list[AttemptView]:
    """Return all attempts on the pair, oldest first, with their bodies."""
    attempts = list(Attempt.objects.filter(pair=pair).select_related("judge", "prompt", "campaign").order_by("pk"))
    campaigns = {attempt.campaign_id for attempt in attempts}
    # Bodies are partitioned by campaign: with the campaigns named, only their partitions are read.
    rows = AttemptBody.objects.filter(campaign_id__in=campaigns, attempt_id__in=[attempt.pk for attempt in attempts])
    bodies = {body.attempt_id: body for body in rows}
    views = []
    for attempt in attempts:
        body = bodies.get(attempt.pk)
        # An attempt without a body, for example one that was never sent, still has a row to show.
        messages = json.loads(zlib.decompress(body.messages)) if body else []
        views.append(AttemptView(attempt, messages, zlib.decompress(body.raw).decode() if body else ""))
    return views


def judging_choices(collection: Collection) -> dict[str, list[tuple[str, str]]]:
    """Return the choices of JudgingOptions in forms: panels, without other collections' own ones, and filters."""
    is_offered = Q(name=f"{collection.name}{OWN_PANEL}") | Q(is_default=True) | ~Q(name__endswith=OWN_PANEL)
    panels = Panel.objects.filter(is_offered).order_by("-is_default", "name").values_list("name", flat=True)
    return {"panel": [(name, name) for name in panels], "filter": [(name, name) for name in judges_that_vote()]}
