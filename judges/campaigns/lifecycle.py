"""Services of campaigns: start or join, pause, resume, cancel, retry. Commands and pages call the same ones.

A campaign covers each pair once. A start with the same configuration (panel, policy, rounds, members)
joins its newest campaign, finished or not, and adds the pairs that are new since. `limit` is the
number of pairs that the campaign covers in all. A campaign over certain pairs has a `scope`, a name
for them: only a start with the same scope joins it, and no pair with an outcome of the configuration,
in any scope, is judged again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from corpus import table_statistics
from corpus.errors import BadInput, BadOption
from corpus.holding import hold
from corpus.models import Collection, Pair
from jobs.notifications import redis_client, redis_key
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
DEFINED = ("rubric", "instruction")  # Fields of campaigns and collections that define relevance.
UNFINISHED = (State.RUNNING, State.BUDGET)

ENQUEUE_CANDIDATES = read_sql(__file__, "enqueue_candidates")
ENQUEUE_PAIRS = read_sql(__file__, "enqueue_pairs")
ENQUEUE_POSITIVES = read_sql(__file__, "enqueue_positives")
ESCALATE_FAILED = read_sql(__file__, "escalate_failed")


@dataclass(frozen=True, slots=True)
class Started:
    """Result of a start. There was nothing to do if `campaign` is None, or finished with nothing added or retried."""

    campaign: Campaign | None
    added: int = 0
    retried: int = 0
    joined: bool = False

    @property
    def idle(self) -> bool:
        return self.campaign is None or self.campaign.state != State.RUNNING


def same_configuration(collection: Collection, configuration: Configuration) -> list[Campaign]:
    """Return campaigns with this configuration and the collection's current definition of relevance, newest first."""
    campaigns = Campaign.objects.filter(collection=collection, **_relevance_fields(collection), **configuration.values)
    return list(campaigns.order_by("-pk"))


def _relevance_fields(collection: Collection) -> dict[str, Any]:
    return {name: getattr(collection, name) for name in DEFINED}


def matching_campaigns(campaign: Campaign) -> list[Campaign]:
    """Return campaigns with the same configuration, including this one, newest first."""
    fields = ("panel", "policy", "rounds", "debaters", "voters", "majority", "early_stop", "protocol", *DEFINED)
    values = {name: getattr(campaign, name) for name in fields}
    return list(Campaign.objects.filter(collection=campaign.collection_id, **values).order_by("-pk"))


def pairs_to_judge(
    collection: Collection, configuration: Configuration, *, limit: int | None, again: bool = False
) -> int:
    """Return about how many pairs a start would still have to judge, for its estimate."""
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
    """Start a campaign, or join the one of this configuration; workers are notified after the commit.

    1. Check the options and the budget.
    2. Choose the campaign to join: the newest unfinished one, otherwise the newest that is paused or finished. A
       cancelled one is never joined.
    3. Create a campaign if there is none; set its limits.
    4. Return failed pairs to the queue with `retry`, or escalate them with `failed_to_people`.
    5. Add pairs without an outcome, up to `limit`. A new campaign without pairs is not kept.
    6. Set it running.

    `again`: a new campaign, which judges pairs with an outcome again; `fresh`: without earlier answers from the cache.
    `pairs`: only these, candidates or not, in this order, in a separate campaign that `scope` names. Raises BadInput
    for a paused campaign, and for a budget of the campaign or the collection while a judge has no known price;
    ValueError for pairs without a scope, and for a scope without pairs.
    """
    if bool(scope) is not (pairs is not None):
        raise ValueError("A scope needs pairs, and pairs need a scope.")
    if fresh and not again:
        raise BadOption("again", _("Asking again needs a new campaign: choose to judge again."))
    check_budget(collection, configuration, budget, max_calls, limit)
    with transaction.atomic():
        _lock_collection(collection)
        campaigns = [] if again else same_configuration(collection, configuration)
        joinable = [other for other in campaigns if other.scope == scope and other.state != State.CANCELLED]
        campaign = min(joinable, key=lambda other: other.state not in UNFINISHED, default=None)
        if campaign is not None and campaign.state == State.PAUSED:
            reason = f" ({campaign.paused_because})" if campaign.paused_because else ""
            raise BadOption(
                "again",
                _("Campaign %(campaign)s is paused%(because)s: resume it, or choose to judge again in a new one.")
                % {"campaign": campaign.number, "because": reason},
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
        # What the campaign has spent so far counts against the new limits.
        campaign.budget, campaign.max_calls, campaign.failed_to_people = budget, max_calls, failed_to_people
        campaign.save(update_fields=["budget", "max_calls", "failed_to_people"])
        retried = _requeue_failed(campaign) if retry else 0
        if failed_to_people and joined:
            (count,) = fetch_row(ESCALATE_FAILED, campaign=campaign.pk)
            if count:
                counters.add(campaign.pk, "failed", -count)
                counters.add(campaign.pk, "escalated:error", count)
        statement = ENQUEUE_CANDIDATES if pairs is None else ENQUEUE_PAIRS
        if campaign.policy == Policy.EVIDENCE:
            statement = ENQUEUE_POSITIVES
        (added,) = fetch_row(
            statement,
            campaign=campaign.pk,
            collection=collection.pk,
            earlier=[other.pk for other in campaigns],
            limit=None if limit is None else max(0, limit - Work.objects.filter(campaign=campaign).count()),
            again=again,
            pairs=None if pairs is None else list(dict.fromkeys(pairs)),
        )
        table_statistics.renew_statistics(added, Work)
        if not joined and not added:
            transaction.set_rollback(True)
            return Started(None)
        _start_running(campaign)
    return Started(campaign, added, retried, joined)


def check_budget(
    collection: Collection, configuration: Configuration, budget: float | None, max_calls: int | None, limit: int | None
) -> None:
    """Check that the limits are positive, and that with a budget every judge has a price. Raises BadInput."""
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


def _start_running(campaign: Campaign) -> None:
    """Set the campaign running and notify the workers, if there is work."""
    if not Work.objects.filter(campaign=campaign, state__in=[Work.State.PENDING, Work.State.RUNNING]).exists():
        campaign.refresh_from_db()
        return
    values = {"state": State.RUNNING, "stopped_by": "", "paused_because": "", "finished_at": None}
    Campaign.objects.filter(pk=campaign.pk).update(**values, starts=F("starts") + 1)
    campaign.refresh_from_db()
    _notify_workers(campaign)


def _notify_workers(campaign: Campaign) -> None:
    transaction.on_commit(partial(notifications.notify_workers, campaign.pk))


def _lock_collection(collection: Collection) -> None:
    execute(leases.LOCK, collection=collection.pk)


def pause(*, campaign: Campaign) -> Campaign:
    """Send no more calls of the campaign until it is resumed; the answers of calls in flight are stored."""
    return _change_state(campaign, State.PAUSED, (State.RUNNING, State.BUDGET))


def resume(*, campaign: Campaign) -> Campaign:
    """Resume a campaign that is paused or was stopped by a limit. The limits still apply; its accounts' waits end."""
    return _change_state(campaign, State.RUNNING, (State.PAUSED, State.BUDGET))


def cancel(*, campaign: Campaign) -> Campaign:
    """End the campaign for good; its outcomes stay."""
    return _change_state(campaign, State.CANCELLED, (State.RUNNING, State.PAUSED, State.BUDGET))


def send_again(*, campaign: Campaign) -> int:
    """Send the batches again of which it is unknown whether the provider began them; return their number.

    A batch that the provider did begin is paid for twice.
    """
    lost_batches = campaign.batches.filter(ended_at=None, provider_id="").exclude(sent_at=None).exclude(problem="")
    with transaction.atomic():
        count = lost_batches.update(sent_at=None, problem="")
        if count:
            _notify_workers(campaign)
    return count


def retry_failed(*, campaign: Campaign) -> int:
    """Judge failed pairs again, with new tries; return their number. A paused campaign stays paused."""
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
        # Forget since when the campaign's questions have failed: they are asked again (engine.trials).
        try:
            redis_client().delete(redis_key("failing", campaign.pk))
        except (RedisError, OSError) as error:
            notifications.logger.warning("Redis is away, failing questions of a campaign are not forgotten: %s", error)
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
    # A paused batch campaign still stores the answers of its batches, and puts back the calls that wait.
    if state == State.RUNNING or campaign.protocol.get("batch"):
        _notify_workers(campaign)
    return campaign


_PAST: dict[str, str] = {State.PAUSED: "paused", State.RUNNING: "resumed", State.CANCELLED: "cancelled"}
