"""Services of campaigns: start or join, pause, resume, cancel, retry. Commands and pages call the same ones.

A campaign covers pairs once. The same configuration (panel, policy, rounds, members) goes on with
its newest campaign, whether unfinished or finished: pairs that came since are added to it. `limit`
is the number of pairs that the campaign covers in all. A campaign over certain pairs has a `scope`,
a name for them: only a start with the same scope goes on with it, and no pair that has its outcome
from the configuration, in whatever scope, is judged once more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from corpus import table_statistics
from corpus.errors import BadInput, BadOption
from corpus.holding import hold
from corpus.models import Collection, Pair
from judges.campaigns.configurations import Configuration
from judges.costs import counters
from judges.costs.prices import price_for_judge
from judges.domain.protocol import Protocol
from judges.engine import leases, notifications
from judges.engine.account_states import end_pauses
from judges.models import Campaign, JudgeVersion, Work
from store.sql import execute, fetch_row, read_sql

State = Campaign.State
Policy = Campaign.Policy
DEFINED = ("rubric", "instruction")  # Fields of a campaign that say what relevant means for it, and of a collection.
UNFINISHED = (State.RUNNING, State.BUDGET)

ENQUEUE_CANDIDATES = read_sql(__file__, "enqueue_candidates")
ENQUEUE_PAIRS = read_sql(__file__, "enqueue_pairs")
ENQUEUE_POSITIVES = read_sql(__file__, "enqueue_positives")
ESCALATE_FAILED = read_sql(__file__, "escalate_failed")


@dataclass(frozen=True, slots=True)
class Started:
    """Result of a start; nothing was to do where `campaign` is None, or finished with nothing added or retried."""

    campaign: Campaign | None
    added: int = 0
    retried: int = 0
    joined: bool = False

    @property
    def idle(self) -> bool:
        return self.campaign is None or self.campaign.state != State.RUNNING


def same_configuration(collection: Collection, configuration: Configuration) -> list[Campaign]:
    """Return campaigns with this configuration and the collection's present relevance definition, newest first."""
    campaigns = Campaign.objects.filter(collection=collection, **_relevance_fields(collection), **configuration.values)
    return list(campaigns.order_by("-pk"))


def _relevance_fields(collection: Collection) -> dict[str, Any]:
    """Return a campaign's definition of relevance: the collection's, as it is now."""
    return {name: getattr(collection, name) for name in DEFINED}


def matching_campaigns(campaign: Campaign) -> list[Campaign]:
    """Return campaigns of the same configuration, itself included, newest first."""
    fields = ("panel", "policy", "rounds", "debaters", "voters", "majority", "early_stop", "protocol", *DEFINED)
    values = {name: getattr(campaign, name) for name in fields}
    return list(Campaign.objects.filter(collection=campaign.collection_id, **values).order_by("-pk"))


def pairs_to_judge(
    collection: Collection, configuration: Configuration, *, limit: int | None, again: bool = False
) -> int:
    """Return about how many pairs a start would still have to judge: for the estimate."""
    earlier = [] if again else same_configuration(collection, configuration)
    ended = [Work.State.LABELLED, Work.State.ESCALATED, Work.State.FAILED]
    done = Work.objects.filter(campaign__in=earlier, state__in=ended).values("pair").distinct().count()
    candidates = Pair.objects.filter(collection=collection, is_candidate=True)
    current = candidates.filter(query__is_current=True, document__is_current=True).count()
    return max(0, min(current, limit if limit is not None else current) - done)


def start_campaign(
    *,
    collection: Collection,
    configuration: Configuration,
    limit: int | None = None,
    budget: float | None = None,
    max_calls: int | None = None,
    again: bool = False,
    fresh: bool = False,
    retry: bool = False,
    failed_to_people: bool = False,
    pairs: Sequence[int] | None = None,
    scope: str = "",
) -> Started:
    """Start a campaign, or go on with the one of this configuration; wake-ups are sent once that is committed.

    `fresh`: a new campaign (`again`) that takes over no earlier answer. `pairs`: only these,
    candidates or not, in this order, in a campaign of their own that `scope` names. Raises BadInput
    for a paused campaign, and for a money budget, its own or the collection's, while a judge has no
    known price; ValueError for pairs without a scope, and for a scope without pairs.
    """
    if bool(scope) is not (pairs is not None):
        raise ValueError("pairs have a scope that names them, and every candidate has none")
    if fresh and not again:
        raise BadOption("again", _("Asking anew needs a new campaign: choose to judge again."))
    check_budget(collection, configuration, budget, max_calls, limit)
    with transaction.atomic():
        _lock_collection(collection)
        campaigns = same_configuration(collection, configuration)
        # The newest unfinished one; else the newest that is paused or finished. A cancelled one is never joined.
        alike = (
            []
            if again
            else [
                candidate for candidate in campaigns if candidate.scope == scope and candidate.state != State.CANCELLED
            ]
        )
        campaign = min(alike, key=lambda candidate: candidate.state not in UNFINISHED, default=None)
        if campaign is not None and campaign.state == State.PAUSED:
            because = f" ({campaign.paused_because})" if campaign.paused_because else ""
            raise BadOption(
                "again",
                _("Campaign %(campaign)s is paused%(because)s: resume it, or choose to judge again in a new one.")
                % {"campaign": campaign.number, "because": because},
            )
        joined = campaign is not None
        if campaign is None:
            campaign = Campaign.objects.create(
                collection=collection,
                scope=scope,
                seed=collection.seed,
                fresh=fresh,
                **_relevance_fields(collection),
                **configuration.values,
            )
        # What was spent so far counts, since it stands in the tallies.
        campaign.budget, campaign.max_calls, campaign.failed_to_people = budget, max_calls, failed_to_people
        campaign.save(update_fields=["budget", "max_calls", "failed_to_people"])
        retried = _requeue_failed(campaign) if retry else 0
        if failed_to_people and joined:
            (count,) = fetch_row(ESCALATE_FAILED, campaign=campaign.pk)
            if count:
                counters.add(campaign.pk, "failed", -count)
                counters.add(campaign.pk, "escalated:error", count)
        earlier = [] if again else [other.pk for other in campaigns]
        added = _enqueue_pairs(campaign, earlier, limit, again=again, pairs=pairs)
        if not joined and not added:
            transaction.set_rollback(True)
            return Started(None)
        _start_running(campaign)
    return Started(campaign, added, retried, joined)


def check_budget(
    collection: Collection, configuration: Configuration, budget: float | None, max_calls: int | None, limit: int | None
) -> None:
    """Check that a budget has every judge's price. Raises BadInput."""
    for name, value in (("budget", budget), ("max_calls", max_calls), ("limit", limit)):
        if value is not None and not value > 0:
            raise BadOption(name, _("Enter a number greater than %(limit_value)s.") % {"limit_value": 0})
    unknown = ", ".join(dict.fromkeys(judge.name for judge in configuration.judges if price_for_judge(judge) is None))
    if unknown and budget is not None:
        raise BadOption(
            "budget",
            _(
                "A budget needs a price for every judge, and %(unknown)s has none: set input_price and output_price "
                "in the judges file (0 and 0 where it costs nothing), enter them on the page Prices, or limit the "
                "calls instead."
            )
            % {"unknown": unknown},
        )
    if unknown and (collection.budget is not None or collection.daily_budget is not None):
        raise BadInput(
            _(
                "%(collection)s has a budget, which needs a price for every judge, and %(unknown)s has none: "
                "set input_price and output_price in the judges file (0 and 0 where it costs nothing), enter them on "
                "the page Prices, or limit the calls instead of the collection's budget"
            )
            % {"collection": collection.name, "unknown": unknown}
        )


def _enqueue_pairs(
    campaign: Campaign, earlier: list[int], limit: int | None, *, again: bool, pairs: Sequence[int] | None
) -> int:
    """Add pairs without an outcome, up to `limit` in the campaign; how many."""
    room = None if limit is None else max(0, limit - Work.objects.filter(campaign=campaign).count())
    values: dict[str, Any] = {
        "campaign": campaign.pk,
        "collection": campaign.collection_id,
        "earlier": earlier,
        "limit": room,
        "again": again,
        "pairs": None if pairs is None else list(dict.fromkeys(pairs)),
    }
    statement = ENQUEUE_CANDIDATES if pairs is None else ENQUEUE_PAIRS
    (added,) = fetch_row(ENQUEUE_POSITIVES if campaign.policy == Policy.EVIDENCE else statement, **values)
    table_statistics.renew_statistics(added, Work)
    return int(added)


def _start_running(campaign: Campaign) -> None:
    """Set the campaign running and wake workers, where there is something to do."""
    if not Work.objects.filter(campaign=campaign, state__in=[Work.State.PENDING, Work.State.RUNNING]).exists():
        campaign.refresh_from_db()
        return
    fresh = {"state": State.RUNNING, "stopped_by": "", "paused_because": "", "finished_at": None}
    Campaign.objects.filter(pk=campaign.pk).update(**fresh, starts=F("starts") + 1)
    campaign.refresh_from_db()
    _notify_workers(campaign)


def _notify_workers(campaign: Campaign) -> None:
    transaction.on_commit(partial(notifications.notify_workers, campaign.pk))


def _lock_collection(collection: Collection) -> None:
    execute(leases.LOCK, collection=collection.pk)


def pause(*, campaign: Campaign) -> Campaign:
    """Send nothing more of the campaign until it is resumed; calls that are out are taken in."""
    return _change_state(campaign, State.PAUSED, (State.RUNNING, State.BUDGET))


def resume(*, campaign: Campaign) -> Campaign:
    """Resume a campaign that is paused or that a limit stopped; its limits still hold, waits of its accounts end."""
    return _change_state(campaign, State.RUNNING, (State.PAUSED, State.BUDGET))


def cancel(*, campaign: Campaign) -> Campaign:
    """End the campaign for good; what was judged stays."""
    return _change_state(campaign, State.CANCELLED, (State.RUNNING, State.PAUSED, State.BUDGET))


def send_again(*, campaign: Campaign) -> int:
    """Send batches once more of which nobody knows whether the provider began them; how many. Both may be paid for."""
    lost = campaign.batches.filter(ended_at=None, provider_id="").exclude(sent_at=None).exclude(problem="")
    with transaction.atomic():
        count = lost.update(sent_at=None, problem="")
        if count:
            _notify_workers(campaign)
    return count


def retry_failed(*, campaign: Campaign) -> int:
    """Judge failed pairs again, counted anew; how many. Paused stays paused."""
    with transaction.atomic():
        _lock_collection(campaign.collection)
        campaign = hold(Campaign.objects, campaign.pk)
        if campaign.state == State.CANCELLED:
            raise BadInput(_("Campaign %(campaign)s is cancelled") % {"campaign": campaign.number})
        retried = _requeue_failed(campaign)
        if retried and campaign.state == State.FINISHED:
            _start_running(campaign)
        elif retried and campaign.state == State.RUNNING:
            _notify_workers(campaign)
    return retried


def _requeue_failed(campaign: Campaign) -> int:
    failed = Work.objects.filter(campaign=campaign, state=Work.State.FAILED)
    retried = failed.update(
        state=Work.State.PENDING,
        claims=0,
        attempt_base=F("attempt_base") + 4,
        fence=F("fence") + 1,
        reason="",
        error="",
        ended_at=None,
    )
    if retried:
        counters.add(campaign.pk, "failed", -retried)
        notifications.forget_failing(campaign.pk)
    return retried


def _change_state(campaign: Campaign, state: str, from_states: Sequence[str]) -> Campaign:
    with transaction.atomic():
        _lock_collection(campaign.collection)
        finished = Now() if state == State.CANCELLED else None
        rows = Campaign.objects.filter(pk=campaign.pk, state__in=from_states)
        starts = F("starts") + int(state == State.RUNNING)
        changed = rows.update(state=state, stopped_by="", paused_because="", finished_at=finished, starts=starts)
        campaign = Campaign.objects.get(pk=campaign.pk)
        if state == State.CANCELLED:
            execute(leases.ABANDONED)
    if not changed and campaign.state != state:
        raise BadInput(
            _("Campaign %(campaign)s is %(state)s: it cannot be %(past)s")
            % {"campaign": campaign.number, "state": campaign.state, "past": _PAST[state]}
        )
    if state == State.RUNNING:
        ids = [*campaign.debaters, *campaign.voters, *Protocol.of(campaign.protocol).judges]
        accounts = JudgeVersion.objects.filter(pk__in=ids).values_list("provider", "base_url", "api_key_env")
        transaction.on_commit(partial(end_pauses, set(accounts)))
    # What the batches of one that stands still bring is taken in all the same, and what waits is put back.
    if state == State.RUNNING or campaign.protocol.get("batch"):
        _notify_workers(campaign)
    return campaign


_PAST: dict[str, str] = {State.PAUSED: "paused", State.RUNNING: "resumed", State.CANCELLED: "cancelled"}
