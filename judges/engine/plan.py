"""A campaign's plan, as the engine reads it for one time slice: judges, prices, limits and prompts."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.db.models import Min

from corpus.document_limit import SHOWN, WHOLE
from corpus.models import Assessor
from corpus.rubric import BY_QUERY, Rubric
from judges.costs import counters
from judges.costs.judge_records import judges_of, price_tables
from judges.costs.prices import Price, price_for_judge
from judges.domain import copies, routing
from judges.domain.protocol import Protocol
from judges.engine import route_breakers
from judges.engine.limits import Limit
from judges.models import Campaign, JudgeVersion, PromptVersion
from judges.models.prices import PriceRow
from judges.prompts import answering
from judges.records import DebateAgent, Judge

# Tokens for an answer as long as a document: evidence, or a text to search for in place of a query.
ROOM = 2048
# Policies whose outcome judges decide: each window of a long document may be judged by itself.
WINDOWED = tuple(rule.value for rule in routing.RoutingPolicy if rule.debates or rule.votes)
LABEL_NOTHING = (Campaign.Policy.EVIDENCE, Campaign.Policy.RETRIEVAL)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that stays constant while a worker works on the campaign for a time slice."""

    campaign: int
    collection: int
    row: Campaign  # As it was read, with its collection.
    rubric: Rubric
    debaters: tuple[Judge, ...]
    voters: tuple[Judge, ...]
    # For each voter, the number of its copies before it on the panel (judges.domain.copies).
    samples: tuple[int, ...]
    prices: dict[int, Price | None]
    limits: dict[tuple[str, str, str], Limit]
    prompt_ids: dict[tuple[str, str], int]
    # The assessor of a label, by the label's route; "" is the policy's own (judges.domain.routing).
    assessors: dict[str, int]
    protocol: Protocol = field(default_factory=Protocol)
    filter: tuple[Judge, ...] = ()
    adjudicator: Judge | None = None
    seats: tuple[DebateAgent, ...] = ()  # The debate's agents; () without a debate.
    # Keys of routes that failed their audit: their pairs go to people (judges.engine.route_breakers).
    stopped: frozenset[str] = frozenset()
    bounded: bool = False  # The campaign has a limit of money or calls, or its collection has a budget.
    # The team's prices of models, by provider and address, then by name.
    tables: dict[tuple[str, str], dict[str, Price]] = field(default_factory=dict)
    priced_at: int = 0  # The newest row of the price table when the prices were read.

    def log_fields(self, pair: int) -> dict[str, Any]:
        """Return the fields of every log line about a pair; 0: a call of a run or conversation, about no pair."""
        fields = {"collection": self.row.collection.name, "campaign": self.row.number}
        return fields | {"pair": pair} if pair else fields

    @property
    def start(self) -> str:
        """Name of this start of the campaign, also used in Redis."""
        return f"{self.campaign}:{self.row.starts}"

    @property
    def shown(self) -> int:
        """How many characters of a document the judges are shown at most."""
        return WHOLE if self.row.collection.long_documents == "context" else SHOWN

    @property
    def by_windows(self) -> bool:
        return self.row.collection.long_documents == "windows" and self.row.policy in WINDOWED

    @property
    def people(self) -> int:
        """How many people judge an escalated pair."""
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


def load_plan(campaign_id: int) -> Plan | None:
    """Return the campaign's plan; None if the campaign has been deleted."""
    campaign = Campaign.objects.select_related("collection").filter(pk=campaign_id).first()
    if campaign is None:
        return None
    collection = campaign.collection
    protocol = Protocol.of(campaign.protocol)
    # The campaign's temperature, if it has one, replaces the debaters' own.
    temperature = {} if protocol.temperature is None else {"temperature": protocol.temperature}
    debaters = tuple(
        replace(judge, parameters={**judge.parameters, **temperature}) for judge in judges_of(campaign.debaters)
    )
    voters, filters = tuple(judges_of(campaign.voters)), tuple(judges_of(protocol.filter))
    adjudicator = next(iter(judges_of([protocol.adjudicator])), None) if protocol.adjudicator else None
    if campaign.policy in LABEL_NOTHING:
        voters = tuple(raise_output_limit(judge) for judge in voters)
    assessors: dict[str, int] = {}
    if campaign.policy not in LABEL_NOTHING:
        names = {"": campaign.policy}
        names |= {"filter": routing.ORIGINS["filter"]} if protocol.filter else {}
        names |= {"adjudicator": routing.ORIGINS["adjudicator"]} if protocol.adjudicator else {}
        find_assessor = partial(Assessor.objects.get_or_create, collection=collection, kind=Assessor.Kind.POLICY)
        assessors = {route: find_assessor(name=name)[0].pk for route, name in names.items()}
    # Before the prices: one that is added in between is read again.
    priced_at = PriceRow.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    judges = (*debaters, *voters, *filters, *((adjudicator,) if adjudicator else ()))
    return Plan(
        campaign=campaign.pk,
        collection=collection.pk,
        row=campaign,
        rubric=campaign.relevance,
        debaters=debaters,
        voters=voters,
        samples=copies.sample_indexes(voters),
        prices={judge.id: price_for_judge(judge) for judge in judges},
        limits={judge.account: limit_of(judge.account) for judge in judges},
        prompt_ids=prompt_ids(campaign.relevance, judges),
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
        tables=price_tables(judges),
        priced_at=priced_at,
    )


def raise_output_limit(judge: Judge) -> Judge:
    """Return the judge with output tokens for a long text, unless the judges file sets their number."""
    return replace(judge, parameters={"max_output_tokens": ROOM, **judge.parameters})


def limit_of(account: tuple[str, str, str]) -> Limit:
    """Return the account's limits: the smallest of its current judges, which share the limits of their API key."""
    provider, base_url, api_key_env = account
    smallest = JudgeVersion.objects.filter(
        provider=provider, base_url=base_url, api_key_env=api_key_env, is_current=True
    ).aggregate(
        concurrency=Min("max_concurrency"), requests=Min("requests_per_minute"), tokens=Min("tokens_per_minute")
    )
    return Limit(smallest["concurrency"] or 0, smallest["requests"] or 0, smallest["tokens"] or 0)


def prompt_ids(rubric: Rubric = BY_QUERY, judges: Iterable[Judge] = ()) -> dict[tuple[str, str], int]:
    """Return the row ids of all prompt versions that the judges may get, by (name, sha256). Store new versions."""
    versions = answering.prompt_versions(rubric, judges)
    rows = [PromptVersion(name=name, sha256=digest, text=text) for name, (digest, text) in versions.items()]
    stored_versions = PromptVersion.objects.filter(name__in=versions, sha256__in=[row.sha256 for row in rows])
    ids = {(row.name, row.sha256): row.pk for row in stored_versions.only("name", "sha256")}
    if new_rows := [row for row in rows if (row.name, row.sha256) not in ids]:
        # Another process may store the same version at this moment: then its row is read.
        PromptVersion.objects.bulk_create(new_rows, ignore_conflicts=True)
        ids = {(row.name, row.sha256): row.pk for row in stored_versions.only("name", "sha256")}
    return ids
