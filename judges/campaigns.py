"""Services of campaigns: start or join, pause, resume, cancel, retry. Commands and pages call the same ones.

A campaign covers pairs once. The same configuration (panel, policy, rounds, members) goes on with its newest campaign,
whether unfinished or finished: pairs that came since are added to it. `limit` is the number of pairs that the
campaign covers in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Q, Sum
from django.db.models.functions import Now

from corpus.errors import BadInput
from corpus.models import Collection, Pair
from judges import tallies, wakeups
from judges.debate import MOST_AGENTS
from judges.engine import claims
from judges.engine.plan import judge_of
from judges.escalations import failed_to_people as escalate_failed
from judges.models import Campaign, JudgeVersion, Panel, Tally, Work
from judges.panels import ensure_offline
from judges.prices import BATCHED, is_batched, price
from judges.protocol import FILTERS, Protocol, family, same_family
from judges.records import Judge

State = Campaign.State
Policy = Campaign.Policy
JUDGING = tuple(value for value in Policy.values if value not in (Policy.EVIDENCE, Policy.LARA))
"""Policies that are started here; judges.evidence starts the one that writes targets, the command lara its own."""
UNFINISHED = (State.RUNNING, State.BUDGET)

ENQUEUE = """
WITH chosen AS (
    SELECT p.id FROM corpus_pair p
    JOIN corpus_query q ON q.id = p.query_id AND q.is_current
    JOIN corpus_document d ON d.id = p.document_id AND d.is_current
    WHERE p.collection_id = %(collection)s AND p.is_candidate AND NOT EXISTS (
        SELECT 1 FROM judges_work w WHERE w.pair_id = p.id AND (w.campaign_id = %(campaign)s
            OR (w.campaign_id = ANY(%(earlier)s) AND w.state IN ('labelled', 'escalated', 'failed'))))
    ORDER BY p.id LIMIT %(limit)s
), added AS (
    INSERT INTO judges_work (campaign_id, pair_id, state, fence, claims, reason, error, attempt_base)
    SELECT %(campaign)s, id, 'pending', 0, 0, '', '', 0 FROM chosen ORDER BY id RETURNING 1
), counted AS ({tally})
SELECT count(*) FROM added
""".format(tally=tallies.ADD.format(rows="SELECT %(campaign)s, 0, 'pairs', count(*) FROM added HAVING count(*) > 0"))

# A pair whose newest standing target is good needs none, unless all shall be written again; what a person wrote is
# never written over, and what waits for one is left to them.
POSITIVES = """
WITH chosen AS (
    SELECT p.id FROM corpus_label l
    JOIN corpus_pair p ON p.id = l.pair_id AND p.collection_id = %(collection)s
    JOIN corpus_collection c ON c.id = p.collection_id
    JOIN corpus_query q ON q.id = p.query_id AND q.is_current
    JOIN corpus_document d ON d.id = p.document_id AND d.is_current
    WHERE l.aspect_id IS NULL AND l.grade >= c.relevant_from AND NOT EXISTS (
        SELECT 1 FROM judges_work w WHERE w.pair_id = p.id AND (w.campaign_id = %(campaign)s
            OR (w.campaign_id = ANY(%(earlier)s) AND w.state IN ('labelled', 'failed'))))
      AND NOT EXISTS (
        SELECT 1 FROM corpus_target t WHERE t.pair_id = p.id AND t.good AND (t.kind = 'person' OR NOT %(again)s)
            AND NOT EXISTS (SELECT 1 FROM corpus_target later WHERE later.withdraws_id = t.id))
      AND NOT EXISTS (
        SELECT 1 FROM corpus_item i
        WHERE i.pair_id = p.id AND i.reason = 'evidence' AND i.state IN ('open', 'conflict'))
    ORDER BY p.id LIMIT %(limit)s
), added AS (""" + ENQUEUE.split("), added AS (")[1]
"""ENQUEUE for relevant pairs without a target."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Who judges and by which policy: what makes two starts the same campaign."""

    panel: str
    policy: str
    rounds: int
    debaters: tuple[Judge, ...]
    voters: tuple[Judge, ...]
    majority: int
    early_stop: bool
    protocol: Protocol = field(default_factory=Protocol)
    filters: tuple[Judge, ...] = ()
    adjudicator: Judge | None = None

    @property
    def judges(self) -> tuple[Judge, ...]:
        """Everybody who may be asked."""
        return (*self.debaters, *self.voters, *self.filters, *((self.adjudicator,) if self.adjudicator else ()))

    @property
    def words(self) -> list[tuple[str, str]]:
        """What differs from the usual way to judge, for people: (what, how)."""
        protocol = self.protocol
        told = {
            "Stances": "agent A begins with not relevant" if protocol.stance_order != "relevant-first" else "",
            "Agents": f"{len(self.debaters)}, all must agree" if len(self.debaters) > 2 else "",
            "Temperature": "" if protocol.temperature is None else f"{protocol.temperature:g} in the debate",
            "Disagreements": f"settled by {self.adjudicator.name}" if self.adjudicator else "",
            "Filter": f"where {', '.join(judge.name for judge in self.filters)} all say no" if self.filters else "",
            "Batches": "half the price where a provider has them; takes hours" if protocol.batch else "",
            "Giving in": "without new evidence is no agreement" if protocol.guard else "",
            "Rounds": f"all {self.rounds} are played" if protocol.play_on else "",
        }
        return [(what, how) for what, how in told.items() if how]

    @property
    def values(self) -> dict[str, object]:
        """Fields of the campaign."""
        return {
            "panel": self.panel,
            "policy": self.policy,
            "rounds": self.rounds,
            "debaters": [judge.id for judge in self.debaters],
            "voters": [judge.id for judge in self.voters],
            "majority": self.majority,
            "early_stop": self.early_stop,
            "protocol": self.protocol.stored,
        }


@dataclass(frozen=True, slots=True)
class Options:
    """The papers' options of a campaign, judges by name (judges.protocol says what each means)."""

    stance_order: str = "relevant-first"
    agents: int | None = None
    temperature: float | None = None
    play_on: bool = False
    guard: bool = False
    adjudicator: str = ""
    filter: Sequence[str] = ()
    batch: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """What a start came to: `campaign` None or `added` and `retried` 0 with a finished campaign: nothing to do."""

    campaign: Campaign | None
    added: int = 0
    retried: int = 0
    joined: bool = False

    @property
    def idle(self) -> bool:
        """Nothing to do."""
        return self.campaign is None or self.campaign.state != State.RUNNING


def configuration(
    *,
    panel: str | None = None,
    policy: str | None = None,
    rounds: int | None = None,
    debaters: Sequence[str] = (),
    voters: Sequence[str] = (),
    options: Options = Options(),
) -> Configuration:
    """The panel's members in their present versions, some of them replaced by name. Raises BadInput."""
    chosen = _panel(panel)
    rule = policy or Policy.DEBATE_ENSEMBLE.value
    if rule == Policy.LARA:
        raise BadInput("policy lara goes on from the votes of a judge: judge first, then `lara NAME --judge J`")
    if rule not in JUDGING:
        raise BadInput(f"{rule!r} is no policy: use one of {', '.join(JUDGING)}")
    if rounds is not None and not 1 <= rounds <= 5:
        raise BadInput(f"--rounds {rounds}: a debate has 1 to 5 rounds")
    if options.temperature is not None and not 0 <= options.temperature <= 2:
        raise BadInput(f"--temperature {options.temperature}: give a number from 0 to 2")
    agents = _agents(_members(debaters or chosen.debate, "debaters"), options.agents)
    panelists = _members(voters or chosen.ensemble, "judges")
    if rule in (Policy.DEBATE, Policy.DEBATE_ENSEMBLE) and not agents:
        raise BadInput(f"policy {rule} needs two debaters, panel {chosen.name!r} has none: give --debaters a,b")
    if rule == Policy.SINGLE:
        panelists = panelists[:1]
    if rule == Policy.HUMAN:
        agents, panelists = [], []
    elif rule == Policy.DEBATE:
        panelists = []
    elif not panelists:
        raise BadInput(f"policy {rule} needs judges, panel {chosen.name!r} has none: give --judges a,b,c,d,e")
    if rule in (Policy.ENSEMBLE, Policy.DEBATE_ENSEMBLE) and chosen.majority > len(panelists):
        raise BadInput(f"a majority of {chosen.majority} needs as many judges, there are {len(panelists)}")
    filters = _filters(options.filter)
    adjudicator = _adjudicator(chosen, rule, options.adjudicator)
    protocol = Protocol(
        stance_order=options.stance_order,
        temperature=options.temperature,
        play_on=options.play_on,
        guard=options.guard,
        adjudicator=adjudicator.id if adjudicator else None,
        filter=tuple(judge.id for judge in filters),
        batch=options.batch,
    )
    everybody = [*agents, *panelists, *filters, *([adjudicator] if adjudicator else [])]
    if options.batch and not any(map(is_batched, everybody)):
        raise BadInput(f"--batch: no judge is of a provider with a batch endpoint ({', '.join(BATCHED)})")
    return Configuration(
        panel=chosen.name,
        policy=rule,
        rounds=rounds or 2,
        debaters=tuple(agents),
        voters=tuple(panelists),
        majority=chosen.majority,
        early_stop=chosen.early_stop,
        protocol=protocol,
        filters=tuple(filters),
        adjudicator=adjudicator,
    )


def _agents(judges: list[Judge], number: int | None) -> list[Judge]:
    """The debate's agents, A first. Four of two judges: each holds both stances (DREAM B.4.1)."""
    if number == 1 or len(judges) == 1:
        raise BadInput("a debate has 2 to 4 agents; a single judge is `--policy single`")
    if number == 4 and len(judges) == 2:
        judges = [judges[0], judges[0], judges[1], judges[1]]
    if judges and number not in (None, len(judges)):
        raise BadInput(f"--agents {number}: there are {len(judges)} debaters; name as many with --debaters")
    if judges and not 2 <= len(judges) <= MOST_AGENTS:
        raise BadInput(f"a debate has 2 to {MOST_AGENTS} agents, not {len(judges)}")
    if silent := [judge.name for judge in judges if judge.provider == "rerank-endpoint" or judge.decides]:
        raise BadInput(f"{silent[0]} only votes, it cannot debate: its endpoint gives scores and no text")
    return judges


def _filters(names: Sequence[str]) -> list[Judge]:
    """Three judges of different families, or none (SPEC S3)."""
    if names and len(names) != FILTERS:
        raise BadInput(f"--filter: name {FILTERS} judges of different families, not {len(names)}")
    found = _members(names, "filter")
    families = [(judge.name, family(str(judge.parameters.get("family", "")), judge.model)) for judge in found]
    if same := same_family(families):
        raise BadInput(
            f"--filter: {same[0]} and {same[1]} are of one family, and what they get wrong they get wrong together; "
            "choose others, or set `family` in the judges file"
        )
    return found


def _adjudicator(panel: Panel, rule: str, wanted: str) -> Judge | None:
    """Who settles disagreements in place of people: asked for by name, or "panel" for the panel's own."""
    if not wanted:
        return None
    if rule not in (Policy.DEBATE, Policy.DEBATE_ENSEMBLE):
        raise BadInput(f"--adjudicator settles debates, and policy {rule} has none")
    name = panel.adjudicator if wanted == "panel" else wanted
    if not name:
        raise BadInput(f"panel {panel.name!r} names no adjudicator: name a judge with --adjudicator")
    (judge,) = _members([name], "adjudicator")
    return judge


def _panel(name: str | None) -> Panel:
    ensure_offline()
    found = Panel.objects.filter(name=name).first() if name else Panel.objects.filter(is_default=True).first()
    if found is None:
        known = ", ".join(Panel.objects.order_by("name").values_list("name", flat=True))
        raise BadInput(f"there is no panel {name or 'by default'}: known are {known}")
    return found


def _members(names: Sequence[str], role: str) -> list[Judge]:
    found = {row.name: judge_of(row) for row in JudgeVersion.objects.filter(name__in=names, is_current=True)}
    if missing := [name for name in names if name not in found]:
        raise BadInput(f"{role}: there is no judge {missing[0]!r}; load it with configure_judges")
    return [found[name] for name in names]


def same_configuration(collection: Collection, wanted: Configuration) -> list[Campaign]:
    """Campaigns of the collection with this configuration, newest first."""
    return list(Campaign.objects.filter(collection=collection, **wanted.values).order_by("-pk"))


def pairs_to_judge(collection: Collection, wanted: Configuration, *, limit: int | None, again: bool = False) -> int:
    """About how many pairs a start would still have to judge: for the estimate."""
    known = [] if again else same_configuration(collection, wanted)
    candidates = Pair.objects.filter(collection=collection, is_candidate=True)
    current = candidates.filter(query__is_current=True, document__is_current=True).count()
    ended = [Work.State.LABELLED, Work.State.ESCALATED, Work.State.FAILED]
    done = Work.objects.filter(campaign__in=known, state__in=ended).values("pair").distinct().count()
    return max(0, min(current, limit if limit is not None else current) - done)


def start_or_join(
    *,
    collection: Collection,
    wanted: Configuration,
    limit: int | None = None,
    budget: float | None = None,
    max_calls: int | None = None,
    again: bool = False,
    retry: bool = False,
    failed_to_people: bool = False,
) -> Started:
    """Start a campaign, or go on with the one of this configuration; wake-ups are sent once that is committed.

    Raises BadInput for a paused campaign, and for a money budget, its own or the collection's, while a judge has no
    known price.
    """
    check_budget(collection, wanted, budget, max_calls, limit)
    with transaction.atomic():
        _lock(collection)
        known = same_configuration(collection, wanted)
        campaign = _newest_to_join(known) if not again else None
        if campaign is not None and campaign.state == State.PAUSED:
            raise BadInput(
                f"campaign {campaign.pk} is paused: resume it with `campaign {collection.name} resume`, "
                "or start another with --again"
            )
        joined = campaign is not None
        if campaign is None:
            campaign = _create(collection, wanted)
        _set(campaign, budget=budget, max_calls=max_calls, failed_to_people=failed_to_people)
        retried = _retry(campaign) if retry else 0
        if failed_to_people and joined:
            escalate_failed(campaign)
        earlier = [] if again else [one.pk for one in known]
        added = _enqueue(campaign, earlier, limit, again=again)
        if not joined and not added:
            transaction.set_rollback(True)
            return Started(None)
        _run(campaign)
    return Started(campaign, added, retried, joined)


def _newest_to_join(known: Sequence[Campaign]) -> Campaign | None:
    """The newest unfinished one; else the newest that is paused or finished. A cancelled one is never joined."""
    unfinished = [one for one in known if one.state in UNFINISHED]
    others = [one for one in known if one.state in (State.PAUSED, State.FINISHED)]
    return next(iter(unfinished + others), None)


def check_budget(
    collection: Collection, wanted: Configuration, budget: float | None, max_calls: int | None, limit: int | None
) -> None:
    """A money budget, of a campaign or its collection, needs every judge's price. Raises BadInput."""
    for name, value in (("--budget", budget), ("--max-calls", max_calls), ("--limit", limit)):
        if value is not None and not value > 0:
            raise BadInput(f"{name} {value}: give a number above 0")
    unknown = ", ".join(dict.fromkeys(judge.name for judge in wanted.judges if price(judge) is None))
    if unknown and budget is not None:
        raise BadInput(
            f"--budget needs a price for every judge, and {unknown} has none: "
            "set input_price and output_price in the judges file, or use --max-calls"
        )
    if unknown and (collection.budget is not None or collection.daily_budget is not None):
        raise BadInput(
            f"{collection.name} has a budget, which needs a price for every judge, and {unknown} has none: set "
            "input_price and output_price in the judges file, or take the collection's budget away and use --max-calls"
        )


def _create(collection: Collection, wanted: Configuration) -> Campaign:
    return Campaign.objects.create(
        collection=collection, instruction=collection.instruction, seed=collection.seed, **wanted.values
    )


def _set(campaign: Campaign, *, budget: float | None, max_calls: int | None, failed_to_people: bool) -> None:
    """The new limits replace the old ones; what was spent so far stands in the tallies."""
    sums = dict(
        Tally.objects.filter(campaign=campaign, key__in=("cost", "calls")).values_list("key").annotate(Sum("value"))
    )
    bounded = campaign.budget is not None or campaign.max_calls is not None
    if not bounded:  # an unbounded campaign does not keep these two
        campaign.spent, campaign.calls_spent = sums.get("cost", 0.0), int(sums.get("calls", 0))
    campaign.budget, campaign.max_calls, campaign.failed_to_people = budget, max_calls, failed_to_people
    fields = ["budget", "max_calls", "failed_to_people"] + ([] if bounded else ["spent", "calls_spent"])
    campaign.save(update_fields=fields)


def _enqueue(campaign: Campaign, earlier: list[int], limit: int | None, *, again: bool) -> int:
    """Add pairs without an outcome, up to `limit` in the campaign; how many."""
    room = None if limit is None else max(0, limit - Work.objects.filter(campaign=campaign).count())
    values: dict[str, Any] = {
        "campaign": campaign.pk,
        "collection": campaign.collection_id,
        "earlier": earlier,
        "limit": room,
        "again": again,
    }
    with connection.cursor() as cursor:
        cursor.execute(POSITIVES if campaign.policy == Policy.EVIDENCE else ENQUEUE, values)
        (added,) = cursor.fetchone()
    return int(added)


def _run(campaign: Campaign) -> None:
    """Set it running and wake workers, where there is something to do."""
    if not Work.objects.filter(campaign=campaign, state__in=[Work.State.PENDING, Work.State.RUNNING]).exists():
        campaign.refresh_from_db()
        return
    Campaign.objects.filter(pk=campaign.pk).update(state=State.RUNNING, stopped_by="", finished_at=None)
    campaign.refresh_from_db()
    _wake(campaign)


def _wake(campaign: Campaign) -> None:
    transaction.on_commit(partial(wakeups.send, campaign.pk))


def _lock(collection: Collection) -> None:
    with connection.cursor() as cursor:
        cursor.execute(claims.LOCK, {"collection": collection.pk})


def newest(*, collection: Collection) -> Campaign:
    """The collection's newest campaign that judges. Raises BadInput when there is none."""
    campaign = Campaign.judging.filter(collection=collection).order_by("-pk").first()
    if campaign is None:
        raise BadInput(f"{collection.name} has no campaign yet: start one with `judge {collection.name}`")
    return campaign


def pause(*, campaign: Campaign) -> Campaign:
    """Send nothing more until it is resumed; calls that are out are taken in."""
    return _change(campaign, State.PAUSED, (State.RUNNING, State.BUDGET))


def resume(*, campaign: Campaign) -> Campaign:
    """Go on with a paused campaign, or one that the budget stopped (its limits hold still)."""
    with transaction.atomic():
        resumed = _change(campaign, State.RUNNING, (State.PAUSED, State.BUDGET))
        _wake(resumed)
    return resumed


def cancel(*, campaign: Campaign) -> Campaign:
    """End it for good; what was judged stays."""
    return _change(campaign, State.CANCELLED, (State.RUNNING, State.PAUSED, State.BUDGET))


def retry_failed(*, campaign: Campaign) -> int:
    """Judge the failed pairs again, with attempts counted anew; how many. A paused campaign stays paused."""
    with transaction.atomic():
        _lock(campaign.collection)
        campaign = Campaign.objects.select_for_update().get(pk=campaign.pk)
        if campaign.state == State.CANCELLED:
            raise BadInput(f"campaign {campaign.pk} is cancelled")
        retried = _retry(campaign)
        if retried and campaign.state == State.FINISHED:
            _run(campaign)
        elif retried and campaign.state == State.RUNNING:
            _wake(campaign)
    return retried


def _retry(campaign: Campaign) -> int:
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
        tallies.add(campaign.pk, "failed", -retried)
    return retried


def _change(campaign: Campaign, state: str, from_states: Sequence[str]) -> Campaign:
    with transaction.atomic():
        _lock(campaign.collection)
        finished = Now() if state == State.CANCELLED else None
        found = Campaign.objects.filter(Q(pk=campaign.pk), state__in=from_states)
        changed = found.update(state=state, stopped_by="", finished_at=finished)
        campaign = Campaign.objects.get(pk=campaign.pk)
    if not changed and campaign.state != state:
        raise BadInput(f"campaign {campaign.pk} is {campaign.state}: it cannot be {_PAST[state]}")
    if campaign.protocol.get("batch") and state != State.RUNNING:
        _wake(campaign)  # what its batches bring is taken in, and what waits is put back
    return campaign


_PAST: dict[str, str] = {State.PAUSED: "paused", State.RUNNING: "resumed", State.CANCELLED: "cancelled"}
