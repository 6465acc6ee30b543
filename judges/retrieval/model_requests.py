"""Requests of runs to models: texts to search for, scores of documents, vectors (docs/adr/0032).

They pass through the engine like judgments: limits of the account, retries, budgets and spending limits, each answer
stored before it is used, its cost in the ledger. A run's calls belong to one campaign (policy `retrieval`) that workers
ignore. The run's earlier answers are reused from there, also after a kill; those of other runs are found by the hash of
the request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from django.db import connection
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from corpus.errors import BadInput
from corpus.models import Collection
from corpus.rubric import QUERY, Definition
from judges.campaigns.configurations import Configuration
from judges.campaigns.lifecycle import check_budget
from judges.costs.judge_records import judge_of, judges_of, records_of
from judges.domain.verdicts import NoVerdict
from judges.engine import plan as plans
from judges.engine.budget import BudgetExhausted
from judges.engine.cache import FIND_CALLS
from judges.engine.calls import Caller, Cancelled, JudgeQuestion
from judges.engine.leases import Claimed
from judges.engine.plan import raise_output_limit
from judges.models import Campaign, JudgeVersion
from judges.models.retrieval import RetrievalCall
from judges.offline.judges import ASSESSORS
from judges.panels.offline_panel import OFFLINE_REWRITER, OFFLINE_SEARCH, ensure_writers, missing_writers
from judges.records import Inputs, Judge, Prompt, Turn
from judges.workers import inline_runner as runner
from judges.workers.inline_runner import open_finished_campaign

# The only wire format for a role; other roles are for judges that write text.
ENDPOINTS = {"rank": "rerank", "embed": "embed", "web": "search"}
JUDGE_KINDS = {
    "rank": gettext_noop('a judge with provider = "rerank-endpoint"'),
    "embed": gettext_noop('a judge with provider = "embed-endpoint"'),
    "web": gettext_noop('a judge with provider = "tavily" or "exa"'),
    "": gettext_noop("a judge that writes text"),
}

T = TypeVar("T")
Used = tuple[float, int, int]  # Seconds, input tokens, output tokens.
USED = """
SELECT query, sum(tokens_in), sum(tokens_out), max(ms) FROM (
    SELECT c.query, c.sample, sum(COALESCE(o.tokens_in, c.tokens_in)) AS tokens_in,
        sum(COALESCE(o.tokens_out, c.tokens_out)) AS tokens_out, sum(COALESCE(o.milliseconds, c.milliseconds)) AS ms
    FROM judges_retrievalcall c LEFT JOIN LATERAL (
        SELECT tokens_in, tokens_out, milliseconds FROM judges_retrievalcall o
        WHERE c.cached AND o.cache_key = c.cache_key AND NOT o.cached AND o.outcome = 'labelled' AND o.role <> 'embed'
        ORDER BY o.id LIMIT 1) o ON true
    WHERE c.campaign_id = %(campaign)s AND c.query = ANY(%(queries)s) AND c.role = ANY(%(roles)s)
    GROUP BY c.query, c.sample) s GROUP BY query
"""


@dataclass(frozen=True, slots=True)
class RetrievalRequest:
    """A call to a model. `sample`: counts several equal calls, from 0."""

    role: str
    sample: int
    prompt: Prompt
    schema: Mapping[str, Any] = field(default_factory=dict)
    documents: tuple[str, ...] = ()
    # Receives a good answer before its call is booked, if it is stored elsewhere (vectors).
    keep: Callable[[Turn], None] | None = None


@dataclass(frozen=True, slots=True)
class QueryRequests:
    """All requests about a query, which are sent together. `query`: its primary key; 0 for documents."""

    query: int
    text: str
    calls: tuple[RetrievalRequest, ...]
    instruction: str = ""  # For rerankers, which have no prompt; the prompts of other models include it.


@dataclass(slots=True)
class Replies(Generic[T]):
    """The results in the order of the requests; None for those that did not complete."""

    answers: list[T | None] = field(default_factory=list)
    error: str = ""  # The last reason why a call brought no answer.
    spent: str = ""  # The spending limit that was reached (Campaign.Cap).
    stopped: bool = False

    def merge_status(self, later: "Replies[T]") -> None:
        """Add the problems of a later step about the same queries."""
        self.error = later.error or self.error
        self.spent, self.stopped = self.spent or later.spent, self.stopped or later.stopped


RetrievalReply = Replies[tuple[Turn, ...]]


def judges_for(role: str) -> list[str]:
    """Return the names of the current judges that support the role, the offline one first."""
    rows = [*JudgeVersion.objects.filter(is_current=True), *missing_writers()]
    names = [judge.name for judge in records_of(sorted(rows, key=lambda row: row.name)) if _supports_role(judge, role)]
    # An offline judge needs no key and costs nothing, so it comes first.
    return sorted(names, key=lambda name: name not in (OFFLINE_REWRITER, OFFLINE_SEARCH))


def judge_for(role: str, name: str) -> Judge:
    """Return the judge of this name. Raises BadInput if it is unknown or does not support the role."""
    ensure_writers()
    known_names = judges_for(role)
    if name not in known_names:
        alternatives = ", ".join(known_names) or _(
            "there is none: write one into the judges file and load it with configure_judges"
        )
        judge_kind = _(JUDGE_KINDS.get(role, JUDGE_KINDS[""]))
        raise BadInput(
            _("%(name)s is not %(what)s: %(listed)s") % {"name": repr(name), "what": judge_kind, "listed": alternatives}
        )
    # A name means its current version; `judges_in` returns the versions with which a campaign began.
    judge = judge_of(JudgeVersion.objects.get(name=name, is_current=True))
    return judge if role in ENDPOINTS else raise_output_limit(judge)


def _supports_role(judge: Judge, role: str) -> bool:
    if judge.name == OFFLINE_SEARCH:
        return role == "web"
    if role in ENDPOINTS:
        return judge.preset.wire == ENDPOINTS[role]
    if judge.preset.wire == "offline":
        # The rewriter is the only offline judge that writes free text; those that score documents can compare them.
        return judge.model in ASSESSORS if role == "prefer" else judge.name == OFFLINE_REWRITER
    return judge.preset.asks and not judge.decides


def check_limits(collection: Collection, judges: Sequence[Judge], budget: float | None, max_calls: int | None) -> None:
    """Raise BadInput for a budget that cannot be kept: for a judge without a price, or of nothing."""
    check_budget(collection, _build_configuration(judges), budget, max_calls, None)


def open_campaign(
    collection: Collection, judges: Sequence[Judge], purpose: str, *, budget: float | None, max_calls: int | None
) -> Campaign:
    """Open the campaign for the calls of a run. Raises BadInput like `check_limits`."""
    check_limits(collection, judges, budget, max_calls)
    return open_finished_campaign(collection, _build_configuration(judges), purpose, budget, max_calls)


def _build_configuration(judges: Sequence[Judge]) -> Configuration:
    return Configuration("", Campaign.Policy.RETRIEVAL.value, tuple(judges), rounds=1)


def judges_in(campaign: Campaign) -> list[Judge]:
    """Return the versions of judges with which the campaign was opened; writers get room for a long text."""
    return [
        judge if judge.preset.wire in ENDPOINTS.values() else raise_output_limit(judge)
        for judge in judges_of(campaign.voters)
    ]


def ask_model(
    campaign: Campaign,
    judge: Judge,
    requests: Sequence[QueryRequests],
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> RetrievalReply:
    """Send all requests, as many at a time as the accounts allow. Each answer is stored as soon as it arrives."""
    # This campaign's earlier answers, including repaired ones, are not asked for again. Vectors are stored elsewhere.
    rows = RetrievalCall.objects.filter(
        campaign=campaign,
        query__in=[query_calls.query for query_calls in requests if query_calls.query],
        outcome="labelled",
    ).exclude(role="embed")
    earlier_turns: dict[int, dict[tuple[str, int, int], Turn | NoVerdict]] = {}
    for query, role, sample, text in rows.values_list("query", "role", "sample", "text"):
        earlier_turns.setdefault(int(query or 0), {})[role, 0, sample] = Turn(1, text)
    claimed_requests = []
    for position, query_calls in enumerate(requests):
        claimed_requests.append(claim(campaign, position, query_calls.query, query_calls.text, query_calls.instruction))
        claimed_requests[-1].ended.update(earlier_turns.get(query_calls.query, {}))

    errors = [""]

    async def ask(caller: Caller, claimed: Claimed) -> tuple[Turn, ...] | None:
        questions = []
        for request in requests[claimed.work].calls:
            slot, schema, texts = (request.role, 0, request.sample), dict(request.schema), request.documents
            questions.append(
                JudgeQuestion(slot, judge, request.prompt, schema, request.sample, documents=texts, keep=request.keep)
            )
        calls = [caller.ask(claimed, question) for question in questions]
        results = await asyncio.gather(*calls, return_exceptions=True)
        # The first error is raised after all calls have ended, so that none is left running.
        for result in results:
            if isinstance(result, BaseException):
                raise result
            if isinstance(result, NoVerdict) and not claimed.last_error:
                claimed.last_error = f"{judge.name}: {result.outcome}"
        turns = tuple(result for result in results if isinstance(result, Turn))
        # A query counts as answered only with all its calls, because some of them would rank only some documents.
        if len(turns) == len(questions):
            return turns
        if claimed.last_error:
            errors.append(claimed.last_error)
        return None

    replies = ask_each(campaign, claimed_requests, ask, should_stop=should_stop)
    replies.error = errors[-1]
    return replies


def claim(campaign: Campaign, position: int, query: int, text: str, instruction: str) -> Claimed:
    """Return a claim for the engine whose `work` is a position in the list of requests, without any lease."""
    definition = Definition(QUERY, instruction) if instruction else None
    return Claimed(position, 0, 0, 0, query, Inputs(text, (), "", "", definition, campaign.collection_id))


def ask_each(
    campaign: Campaign,
    claimed_requests: Sequence[Claimed],
    converse: Callable[[Caller, Claimed], Awaitable[T | None]],
    *,
    should_stop: Callable[[], bool],
    done: Callable[[int], None] = lambda count: None,
    at_once: int = runner.AT_ONCE,
) -> Replies[T]:
    """Call `converse` for each claim, as many at a time as the accounts allow.

    `done` is called with the number of claims that have ended.
    """
    plan = plans.load_plan(campaign.pk)
    assert plan is not None
    replies: Replies[T] = Replies()
    # The calls run for minutes in another loop, and this thread's connection would be idle meanwhile.
    connection.close()

    async def ask_claimed(caller: Caller, claimed: Claimed) -> T | None:
        try:
            return await converse(caller, claimed)
        except Cancelled:
            replies.stopped = True
        except BudgetExhausted:
            # Another call may have cleared the limit since: then the campaign's own budget was reached.
            replies.spent = caller.budget.cap or Campaign.Cap.BUDGET.value
        return None

    replies.answers = runner.run_inline(
        plan,
        claimed_requests,
        ask_claimed,
        done=done,
        should_stop=should_stop,
        cache_statement=FIND_CALLS,
        at_once=at_once,
    )
    return replies


def usage_by_query(campaign: Campaign, queries: Sequence[int], roles: Sequence[str]) -> dict[int, Used]:
    """Return the time and tokens of the answers to each query, even if another run paid for them."""
    # The longest call determines the time, because the calls of a query are sent together.
    with connection.cursor() as cursor:
        cursor.execute(USED, {"campaign": campaign.pk, "queries": list(queries), "roles": list(roles)})
        return {
            query: (float(ms) / 1000, int(tokens_in), int(tokens_out))
            for query, tokens_in, tokens_out, ms in cursor.fetchall()
        }


def set_limits(campaign: Campaign, *, budget: float | None, max_calls: int | None) -> None:
    """Set new limits for the campaign's total spending, including what it has spent so far."""
    Campaign.objects.filter(pk=campaign.pk).update(budget=budget, max_calls=max_calls)
