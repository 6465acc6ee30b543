"""A campaign as the engine sees it: judges, prices, limits, prompts, a drain."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from django.db import connection
from django.db.models import Min

from corpus.document_limit import SHOWN, WHOLE
from corpus.models import Assessor
from corpus.rubric import BY_QUERY, Rubric
from judges.campaigns import counters, route_breakers
from judges.costs import price_rows
from judges.costs.prices import Price, price_for_judge
from judges.domain import copies, routing
from judges.domain.protocol import Protocol
from judges.engine.limits import Limit
from judges.models import Campaign, JudgeVersion, PromptVersion
from judges.prompts import answering
from judges.records import DebateAgent, Judge, JudgeSettings

FIELDS = ["id", *(one.name for one in fields(JudgeSettings))]

# Tokens of an answer that may be as long as a document: evidence, or what is searched for in place of a query.
ROOM = 2048
# Policies whose outcome judges bring about: each window of a long document may be judged by itself.
WINDOWED = tuple(rule.value for rule in routing.RoutingPolicy if rule.debates or rule.votes)
LABEL_NOTHING = (Campaign.Policy.EVIDENCE, Campaign.Policy.RETRIEVAL)


@dataclass(frozen=True, slots=True)
class Plan:
    """All that stays constant while a worker works on the campaign for a time slice."""

    campaign: int
    collection: int
    row: Campaign  # As it was read, with its collection.
    rubric: Rubric
    debaters: tuple[Judge, ...]
    voters: tuple[Judge, ...]
    # For each voter: how many copies of it stand before it on the panel (judges.domain.copies).
    samples: tuple[int, ...]
    prices: dict[int, Price | None]
    limits: dict[tuple[str, str, str], Limit]
    prompt_ids: dict[tuple[str, str], int]
    # Whose name a label has, by its route: "" is the policy's own (judges.domain.routing).
    assessors: dict[str, int]
    protocol: Protocol = field(default_factory=Protocol)
    filter: tuple[Judge, ...] = ()
    adjudicator: Judge | None = None
    seats: tuple[DebateAgent, ...] = ()  # The places of the debate's agents, () without a debate.
    # Keys of routes that failed their audit: people get theirs (judges.campaigns.route_breakers).
    stopped: frozenset[str] = frozenset()
    bounded: bool = False  # The campaign has a budget or a number of calls, or its collection a budget.
    # What the team says that models cost, by provider and address, then by name.
    tables: dict[tuple[str, str], dict[str, Price]] = field(default_factory=dict)
    priced_at: int = 0  # The newest row of the price table when the prices were read.

    def log_fields(self, pair: int) -> dict[str, Any]:
        """Return the fields of every log line about one of its pairs."""
        about = {"collection": self.row.collection.name, "campaign": self.row.number}
        return about | {"pair": pair} if pair else about  # What runs and conversations ask is about no pair.

    @property
    def start(self) -> str:
        """Return the name of this start of the campaign, also used in Redis."""
        return f"{self.campaign}:{self.row.starts}"

    @property
    def shown(self) -> int:
        """Return how many characters of a document its judges are shown at most."""
        return WHOLE if self.row.collection.long_documents == "context" else SHOWN

    @property
    def by_windows(self) -> bool:
        return self.row.collection.long_documents == "windows" and self.row.policy in WINDOWED

    @property
    def people(self) -> int:
        """Number of people who judge a pair that is escalated."""
        human, overlap = self.row.policy == routing.RoutingPolicy.HUMAN, self.row.collection.overlap
        return max(routing.VOTES_OF_HUMAN, overlap) if human else overlap

    @property
    def judges(self) -> tuple[Judge, ...]:
        return (*self.debaters, *self.voters, *self.filter, *((self.adjudicator,) if self.adjudicator else ()))

    @property
    def needed(self) -> tuple[Judge, ...]:
        """The judges without whom no pair can end."""
        if self.row.policy in LABEL_NOTHING:
            return self.voters
        rule = routing.RoutingPolicy(self.row.policy)
        return (*self.filter, *(self.debaters if rule.debates else ()), *(self.voters if rule.votes else ()))

    @property
    def writes(self) -> bool:
        """True if judges write training targets for relevant pairs (judges.engine.targets) instead of labels."""
        return self.row.policy == Campaign.Policy.EVIDENCE


def judge_of(version: JudgeVersion) -> Judge:
    """Return the row as the record that providers take, with the prices that hold now."""
    return records_of([version])[0]


def records_of(versions: Iterable[JudgeVersion]) -> list[Judge]:
    versions = list(versions)
    found = [(Judge(**{name: getattr(row, name) for name in FIELDS}), row.created_at) for row in versions]
    # Offline judges and unsaved rows have no price rows, so nothing is read for them.
    stored = any(row.provider != "offline" and row.pk is not None for row in versions)
    rows = price_rows.newest_rows() if stored else []
    return [price_rows.apply_price(judge, made_at, rows) for judge, made_at in found]


def judges_of(ids: Iterable[int]) -> list[Judge]:
    """Return records of JudgeVersions, in the order of the ids (an id may come twice)."""
    ids = list(ids)
    found = {judge.id: judge for judge in records_of(JudgeVersion.objects.filter(pk__in=ids))}
    return [found[pk] for pk in ids]


def load_plan(campaign_id: int) -> Plan | None:
    """Return the campaign's plan; None when the campaign is gone."""
    campaign = Campaign.objects.select_related("collection").filter(pk=campaign_id).first()
    if campaign is None:
        return None
    collection = campaign.collection
    protocol = Protocol.of(campaign.protocol)
    # The campaign's temperature stands in place of the debaters' own, where it has one.
    own = {} if protocol.temperature is None else {"temperature": protocol.temperature}
    debaters = tuple(replace(one, parameters={**one.parameters, **own}) for one in judges_of(campaign.debaters))
    voters, filters = tuple(judges_of(campaign.voters)), tuple(judges_of(protocol.filter))
    adjudicator = next(iter(judges_of([protocol.adjudicator])), None) if protocol.adjudicator else None
    if campaign.policy in LABEL_NOTHING:
        voters = tuple(raise_output_limit(judge) for judge in voters)
    assessors: dict[str, int] = {}
    if campaign.policy not in LABEL_NOTHING:
        names = {"": campaign.policy}
        names |= {"filter": routing.ORIGINS["filter"]} if protocol.filter else {}
        names |= {"adjudicator": routing.ORIGINS["adjudicator"]} if protocol.adjudicator else {}
        policies = partial(Assessor.objects.get_or_create, collection=collection, kind=Assessor.Kind.POLICY)
        assessors = {route: policies(name=name)[0].pk for route, name in names.items()}
    newest = price_rows.newest_number()  # Before the prices: one that comes in between is read again.
    everybody = (*debaters, *voters, *filters, *((adjudicator,) if adjudicator else ()))
    return Plan(
        campaign=campaign.pk,
        collection=collection.pk,
        row=campaign,
        rubric=campaign.relevance,
        debaters=debaters,
        voters=voters,
        samples=copies.sample_indexes(voters),
        prices={judge.id: price_for_judge(judge) for judge in everybody},
        limits={judge.account: limit_of(judge.account) for judge in everybody},
        prompt_ids=prompt_ids(campaign.relevance, everybody),
        assessors=assessors,
        stopped=route_breakers.trip_routes(campaign.pk, collection.relevant_from, counters.read(campaign.pk)),
        protocol=protocol,
        filter=filters,
        adjudicator=adjudicator,
        seats=protocol.debate_agents(len(debaters)) if debaters else (),
        bounded=any(
            limit is not None
            for limit in (campaign.budget, campaign.max_calls, collection.budget, collection.daily_budget)
        ),
        tables=_price_tables(everybody),
        priced_at=newest,
    )


@dataclass(frozen=True, slots=True)
class CurrentPrices:
    """Prices of judges as of now, and of other models that may answer for them."""

    prices: dict[int, Price | None]
    tables: dict[tuple[str, str], dict[str, Price]]


def read_prices(plan: Plan, *, batch: bool = False) -> CurrentPrices:
    """Return what holds now, in a thread of its own: its connection is closed."""
    try:
        judges = judges_of({judge.id for judge in plan.judges})
        prices = {judge.id: price_for_judge(judge, batch=batch) for judge in judges}
        return CurrentPrices(plan.prices | prices, _price_tables(judges))
    finally:
        connection.close()


def _price_tables(judges: Iterable[Judge]) -> dict[tuple[str, str], dict[str, Price]]:
    paid = [judge for judge in judges if judge.provider != "offline"]
    rows = price_rows.newest_rows() if paid else []
    return {(judge.provider, judge.base_url): price_rows.prices_of_others(judge, rows) for judge in paid}


def raise_output_limit(judge: Judge) -> Judge:
    """Return the judge with room for a long text, unless the judges file sets the room itself."""
    return replace(judge, parameters={"max_output_tokens": ROOM, **judge.parameters})


def limit_of(account: tuple[str, str, str]) -> Limit:
    """Return the smallest numbers that any current judge of the account has."""
    provider, base_url, api_key_env = account
    # The smallest, since judges of one key share the provider's limit whatever each entry says.
    smallest = JudgeVersion.objects.filter(
        provider=provider, base_url=base_url, api_key_env=api_key_env, is_current=True
    ).aggregate(
        concurrency=Min("max_concurrency"), requests=Min("requests_per_minute"), tokens=Min("tokens_per_minute")
    )
    return Limit(smallest["concurrency"] or 0, smallest["requests"] or 0, smallest["tokens"] or 0)


def prompt_ids(rubric: Rubric = BY_QUERY, judges: Iterable[Judge] = ()) -> dict[tuple[str, str], int]:
    """Return row ids of the prompt versions that these judges may get, by (name, sha256); new ones are stored."""
    known = answering.prompt_versions(rubric, judges)
    rows = [PromptVersion(name=name, sha256=digest, text=text) for name, (digest, text) in known.items()]
    present = PromptVersion.objects.filter(name__in=known, sha256__in=[row.sha256 for row in rows])
    ids = {(row.name, row.sha256): row.pk for row in present.only("name", "sha256")}
    if missing := [row for row in rows if (row.name, row.sha256) not in ids]:
        # Another process may store the same version at this moment: its row is read then.
        PromptVersion.objects.bulk_create(missing, ignore_conflicts=True)
        ids = {(row.name, row.sha256): row.pk for row in present.only("name", "sha256")}
    return ids
