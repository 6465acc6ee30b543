"""Requests of runs to models: texts to search for, scores of documents, vectors (docs/adr/0032).

It goes through the engine as judging does: limits of the account, retries, budget and caps, an
answer stored before it is used, its cost in the ledger. A run's calls belong to one campaign
(policy `retrieval`) that no worker drains. What the run asked before is taken from there, also
after a kill; what other runs asked is found by its hash.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
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
from judges.costs.budget import BudgetExhausted
from judges.domain.verdicts import NoVerdict
from judges.engine import plan as plans
from judges.engine.cache import FIND_CALLS
from judges.engine.calls import Caller, Cancelled, JudgeQuestion
from judges.engine.leases import Claimed
from judges.engine.plan import judge_of, judges_of, raise_output_limit, records_of
from judges.inline import runner
from judges.inline.runner import open_finished_campaign
from judges.models import Campaign, JudgeVersion
from judges.models.retrieval import RetrievalCall
from judges.panels.offline_panel import OFFLINE_REWRITER, OFFLINE_SEARCH, ensure_writers, missing_writers
from judges.records import Inputs, Judge, Prompt, Turn

# Role to the only wire that takes it; other roles are for judges that write text.
ENDPOINTS = {"rank": "rerank", "embed": "embed", "web": "search"}
WANTED = {
    "rank": gettext_noop('a judge with provider = "rerank-endpoint"'),
    "embed": gettext_noop('a judge with provider = "embed-endpoint"'),
    "web": gettext_noop('a judge with provider = "tavily" or "exa"'),
    "": gettext_noop("a judge that writes text"),
}

T = TypeVar("T")
Used = tuple[float, int, int]  # Seconds, tokens in, tokens out.
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
    """Call to a model: what is asked, and `sample`, which of several equal ones it is, from 0."""

    role: str
    sample: int
    prompt: Prompt
    schema: Mapping[str, Any] = field(default_factory=dict)
    documents: tuple[str, ...] = ()
    # Takes a good answer before its call is booked: for what is kept elsewhere (vectors).
    keep: Callable[[Turn], None] | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that is asked about a query, together. `query`: its key; 0: documents."""

    query: int
    text: str
    calls: tuple[RetrievalRequest, ...]
    instruction: str = ""  # For rerankers, which have no prompt; others read it in theirs.


@dataclass(slots=True)
class Replies(Generic[T]):
    """What came of each of what was asked, in its order; None where one did not get to its end."""

    answers: list[T | None] = field(default_factory=list)
    error: str = ""  # Why a call brought no answer: the last reason.
    spent: str = ""  # The cap at which money or calls ran out (Campaign.Cap).
    stopped: bool = False

    def merge_status(self, later: "Replies[T]") -> None:
        """Take over what went wrong later, in a further step about the same queries."""
        self.error = later.error or self.error
        self.spent, self.stopped = self.spent or later.spent, self.stopped or later.stopped


RetrievalReply = Replies[tuple[Turn, ...]]


def judges_for(role: str) -> list[str]:
    """Return names of the current judges that can be asked so; the offline one first."""
    rows = [*JudgeVersion.objects.filter(is_current=True), *missing_writers()]
    names = [one.name for one in records_of(sorted(rows, key=lambda row: row.name)) if _supports_role(one, role)]
    # An offline judge needs no key and costs nothing, so lists begin with it.
    return sorted(names, key=lambda name: name not in (OFFLINE_REWRITER, OFFLINE_SEARCH))


def judge_for(role: str, name: str) -> Judge:
    """Return the judge of this name. Raises BadInput for an unknown one, and for one that cannot take this role."""
    ensure_writers()
    known = judges_for(role)
    if name not in known:
        listed = ", ".join(known) or _(
            "there is none: write one into the judges file and load it with configure_judges"
        )
        words = WANTED.get(role, WANTED[""])
        what = _(words)
        raise BadInput(_("%(name)s is not %(what)s: %(listed)s") % {"name": repr(name), "what": what, "listed": listed})
    # A name stands for its newest version; judges_in reads what a campaign began with.
    judge = judge_of(JudgeVersion.objects.get(name=name, is_current=True))
    return judge if role in ENDPOINTS else raise_output_limit(judge)


def _supports_role(judge: Judge, role: str) -> bool:
    if judge.name == OFFLINE_SEARCH:
        return role == "web"
    if role in ENDPOINTS:
        return judge.preset.wire == ENDPOINTS[role]
    if judge.preset.wire == "offline":
        # Of the offline judges only the rewriter writes free text.
        return judge.name == OFFLINE_REWRITER
    return judge.preset.asks and not judge.decides


def check_limits(collection: Collection, judges: Sequence[Judge], budget: float | None, max_calls: int | None) -> None:
    """Raises BadInput for a budget that cannot be held: of a judge without a price, of nothing."""
    check_budget(collection, _build_configuration(judges), budget, max_calls, None)


def open_campaign(
    collection: Collection, judges: Sequence[Judge], purpose: str, *, budget: float | None, max_calls: int | None
) -> Campaign:
    """Open the campaign that keeps the calls of a run. Raises BadInput as `check_limits` does."""
    check_limits(collection, judges, budget, max_calls)
    return open_finished_campaign(collection, _build_configuration(judges), purpose, budget, max_calls)


def _build_configuration(judges: Sequence[Judge]) -> Configuration:
    return Configuration("", Campaign.Policy.RETRIEVAL.value, tuple(judges), rounds=1)


def judges_in(campaign: Campaign) -> list[Judge]:
    """Return the judges as the campaign was opened with them; writers get room for a long text."""
    return [
        judge if judge.preset.wire in ENDPOINTS.values() else raise_output_limit(judge)
        for judge in judges_of(campaign.voters)
    ]


def ask_model(
    campaign: Campaign, judge: Judge, wanted: Sequence[Wanted], *, stopped: Callable[[], bool] = lambda: False
) -> RetrievalReply:
    """Ask all that is wanted, as much at a time as the accounts allow. Answers are stored as soon as they are here."""
    known = _answered_turns(campaign, [one.query for one in wanted if one.query])
    held = []
    for place, one in enumerate(wanted):
        held.append(claim(campaign, place, one.query, one.text, one.instruction))
        held[-1].ended.update(known.get(one.query, {}))

    errors = [""]

    async def ask(caller: Caller, claimed: Claimed) -> tuple[Turn, ...] | None:
        turns = await _ask_questions(caller, claimed, judge, wanted[claimed.work])
        if turns is None and claimed.last_error:
            errors.append(claimed.last_error)
        return turns

    found = ask_each(campaign, held, ask, stopped=stopped)
    found.error = errors[-1]
    return found


def claim(campaign: Campaign, place: int, query: int, text: str, instruction: str) -> Claimed:
    """Return what the engine works on: `work` is the place among what is asked, and nothing is leased."""
    told = Definition(QUERY, instruction) if instruction else None
    return Claimed(place, 0, 0, 0, query, Inputs(text, (), "", "", told, campaign.collection_id))


def ask_each(
    campaign: Campaign,
    held: Sequence[Claimed],
    talk: Callable[[Caller, Claimed], Awaitable[T | None]],
    *,
    stopped: Callable[[], bool],
    done: Callable[[int], None] = lambda count: None,
    at_once: int = runner.AT_ONCE,
) -> Replies[T]:
    """Talk about each of these, as many at a time as the accounts allow. `done` is told how many ended."""
    plan = plans.load_plan(campaign.pk)
    assert plan is not None
    found: Replies[T] = Replies()
    # The calls run for minutes in a loop of their own, and this thread's connection would idle meanwhile.
    connection.close()

    async def one(caller: Caller, claimed: Claimed) -> T | None:
        try:
            return await talk(caller, claimed)
        except Cancelled:
            found.stopped = True
        except BudgetExhausted:
            # Another call may have cleared the cap since: then the campaign's own budget is meant.
            found.spent = caller.budget.cap or Campaign.Cap.BUDGET.value
        return None

    found.answers = runner.run_inline(plan, held, one, done=done, stopped=stopped, known=FIND_CALLS, at_once=at_once)
    return found


async def _ask_questions(caller: Caller, claimed: Claimed, judge: Judge, asked: Wanted) -> tuple[Turn, ...] | None:
    questions = []
    for one in asked.calls:
        slot, schema, texts = (one.role, 0, one.sample), dict(one.schema), one.documents
        question = JudgeQuestion(slot, judge, one.prompt, schema, one.sample, documents=texts, keep=one.keep)
        questions.append(question)
    results = await asyncio.gather(*(caller.ask(claimed, one) for one in questions), return_exceptions=True)
    # The first error is raised after all calls ended: none is left running behind it.
    for result in results:
        if isinstance(result, BaseException):
            raise result
        if isinstance(result, NoVerdict) and not claimed.last_error:
            claimed.last_error = f"{judge.name}: {result.outcome}"
    turns = tuple(result for result in results if isinstance(result, Turn))
    # A query counts as answered when all its calls are: a part ranks only some documents.
    return turns if len(turns) == len(questions) else None


def _answered_turns(
    campaign: Campaign, queries: Iterable[int]
) -> dict[int, dict[tuple[str, int, int], Turn | NoVerdict]]:
    """Return this campaign's earlier answers, repaired too: nothing is asked twice."""
    rows = RetrievalCall.objects.filter(campaign=campaign, query__in=list(queries), outcome="labelled")
    found: dict[int, dict[tuple[str, int, int], Turn | NoVerdict]] = {}
    # Vectors are kept elsewhere, and their rows hold none.
    for query, role, sample, text in rows.exclude(role="embed").values_list("query", "role", "sample", "text"):
        found.setdefault(int(query or 0), {})[role, 0, sample] = Turn(1, text)
    return found


def usage_by_query(campaign: Campaign, queries: Sequence[int], roles: Sequence[str]) -> dict[int, Used]:
    """Return what the answers to each query took, whoever asked first. Its longest call counts: all go together."""
    # The longest call stands for the time, because the calls of one query are sent together.
    with connection.cursor() as cursor:
        cursor.execute(USED, {"campaign": campaign.pk, "queries": list(queries), "roles": list(roles)})
        return {query: (float(ms) / 1000, int(taken), int(given)) for query, taken, given, ms in cursor.fetchall()}


def set_limits(campaign: Campaign, *, budget: float | None, max_calls: int | None) -> None:
    """New limits for what it may spend in all; what it spent so far counts."""
    Campaign.objects.filter(pk=campaign.pk).update(budget=budget, max_calls=max_calls)
