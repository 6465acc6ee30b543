"""Checks of judges, with two paid calls each at most: key, model, schema mode and parameters.

The first call asks as a campaign would. The second one is made where the first left something open:
in the next schema mode, or without the parameter that a refusal speaks of; with log-probabilities
where all is well and none were asked for. What a provider tells for nothing (the names of its
models, the length of a context) is read beside them.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from time import perf_counter
from typing import Any

from django.utils.translation import gettext as _

from judges.costs.prices import Price, answering_model, call_cost, cost_bound, price_for_judge, price_of_reply
from judges.domain import prompt_sizes
from judges.errors import ProviderError
from judges.panels.judge_checks import ROOM_TO_THINK
from judges.probes import remedies
from judges.probes.catalogues import Catalogue, look_up
from judges.probes.remedies import ProbeCall
from judges.prompts import answering, render
from judges.prompts.render import DOCUMENT_LIMIT
from judges.providers import close_providers, open_provider
from judges.providers.connections import is_private
from judges.records import Inputs, Judge, ModelRequest, Reply, Usage

INPUTS = Inputs(
    query="At what temperature does water boil at sea level?",
    answers=("At 100 degrees Celsius.",),
    title="",
    document="Water boils at 100 degrees Celsius at sea level. On high mountains it boils at a lower temperature.",
)
MOST_CALLS = 2
AROUND = 2_000  # Tokens of a prompt around its document: the instructions, the query, a debate about it.
# Tokens of a prompt with a document of as many characters as judges see: of English, and of scripts
# with a token for each character.
LONG_ENGLISH = DOCUMENT_LIMIT // 4 + AROUND
LONG_CHINESE = DOCUMENT_LIMIT + AROUND
LONG_INPUTS = replace(
    INPUTS,
    document=" ".join(
        f"Note {number}: at sea level water boils at 100 degrees Celsius, and on a mountain below that."
        for number in range(DOCUMENT_LIMIT // 80)
    )[:DOCUMENT_LIMIT],
)


@dataclass(frozen=True, slots=True)
class CheckedJudge:
    """Findings from a judge's calls. `problem` is empty when the judge can work; it says what to do otherwise."""

    judge: Judge
    role: str
    problem: str
    price: Price | None
    answered_as: str = ""  # The model's name in the answer, where it is another than the one asked for.
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0  # Of the first call.
    calls: int = 0
    cost: float | None = None  # USD of all calls; None where the price is unknown, or what they used.
    warnings: tuple[str, ...] = ()
    found: dict[str, Any] = field(default_factory=dict)  # What it can do, as it is stored (`_found`).


def plan_check(judge: Judge, role: str) -> tuple[int, float | None]:
    """Return the most calls that a check of the judge may send, and the most they cost; None: the price is unknown."""
    if judge.provider == "offline":
        return 0, 0.0
    # One call tells all there is to know of an endpoint that only decides or makes vectors.
    calls = MOST_CALLS if judge.preset.asks and not judge.decides else 1
    known = price_for_judge(judge)
    # The second call may use another mode, whose request is longer: the bound is over all of them.
    ways = [judge, *(remedies.change_parameters(judge, schema_mode=mode) for mode in remedies.other_modes(judge))]

    def bound(request: ModelRequest) -> float:
        return cost_bound(request.judge, request.prompt, request.schema, known)

    most = max(bound(probe_request(way, role)) for way in ways) if known else None
    if most is not None and calls == MOST_CALLS and may_cut_prompts(judge):
        return calls, most + bound(probe_request(judge, role, LONG_INPUTS))
    return calls, None if most is None else calls * most


def probe_role(judge: Judge) -> str:
    """Return the role that a judge without a panel is asked in: a vote, or what else it is for."""
    if judge.provider == "offline" and judge.model in ("for", "against"):
        return judge.model
    return {"embed": "embed", "search": "web"}.get(judge.preset.wire, "vote")


async def run_checks(judges: Sequence[tuple[Judge, str]], *, at_length: bool = True) -> list[CheckedJudge]:
    """Probe every (judge, role: for, against, vote or embed). Accounts are asked side by side, their judges in turn.

    `at_length`: servers that may cut long prompts get one as their second call, which a slow one reads for minutes.
    """
    # groupby needs the judges of one account side by side; `order` finds their places again.
    order = sorted(range(len(judges)), key=lambda place: judges[place][0].account)
    groups = [list(places) for _account, places in groupby(order, key=lambda place: judges[place][0].account)]
    found: dict[int, CheckedJudge] = {}

    async def account(places: list[int]) -> None:
        for place in places:
            found[place] = await check_one(*judges[place], at_length=at_length)

    try:
        for judge, _role in judges:
            open_provider(judge)  # Loading an SDK takes seconds, which are not the model's.
        await asyncio.gather(*map(account, groups))
    finally:
        # The clients belong to the loop of this check, and would hold their sockets after it.
        await close_providers()
    return [found[place] for place in range(len(judges))]


async def check_one(judge: Judge, role: str, *, at_length: bool = True) -> CheckedJudge:
    """Check a judge by one call whose answer is plain, and a second one where that shows more."""
    began = perf_counter()
    first = await _try_call(judge, role)
    seconds = perf_counter() - began
    # An endpoint that answered anything, even a refusal, can be asked for its catalogue.
    reached = first.reply is not None or (first.error is not None and first.error.status is not None)
    catalogue = await look_up(judge) if reached else Catalogue()
    names, context = catalogue.names, catalogue.context
    other, is_long = remedies.next_try(first), False
    if at_length and first.works and may_cut_prompts(judge) and context is None:
        other, is_long = other or judge, True
    second = await _try_call(other, role, LONG_INPUTS if is_long else INPUTS) if other else None
    reply, known = first.reply, price_for_judge(judge)
    tried = [one for one in (first, second) if one]
    cut, long_error = _cuts_prompts(first, second if is_long else None, context)
    # What a long question brought says nothing of other abilities where it was not answered.
    shown = None if second is not None and is_long and second.reply is None else second
    used = [one.reply.usage for one in tried if one.reply is not None]
    counts = ("input", "cached", "output", "reasoning", "written")
    return CheckedJudge(
        judge,
        role,
        problem=remedies.describe_problem(first, second, names) or _missing_logprobs(first) or cut,
        price=known,
        answered_as=answering_model(judge, reply) if reply else "",
        usage=Usage(**{name: sum(getattr(one, name) for one in used) for name in counts}),
        seconds=seconds,
        calls=sum(one.was_sent for one in tried),
        cost=add_costs(cost_of_result(one.judge, one.reply or one.error, known) for one in tried),
        warnings=tuple([*_list_warnings(first, None if cut else context, catalogue), *long_error]),
        found=_found_abilities(first, shown, context)
        | {"ends": catalogue.ends.isoformat() if catalogue.ends else None}
        | {"price": known and {"input": known.input, "output": known.output}},
    )


def may_cut_prompts(judge: Judge) -> bool:
    """Return whether a server like the judge's may silently read a part of a long prompt."""
    cuts = judge.preset.cuts_prompts
    return cuts == "always" or (cuts == "perhaps" and (judge.preset.local or is_private(judge.base_url)))


def _describe_context(judge: Judge, sentence: str, **values: object) -> str:
    """Fill a sentence with the context that long documents need."""
    needed = {
        "needed": f"{prompt_sizes.context_for(LONG_ENGLISH, judge.max_output_tokens):,}",
        "most": f"{prompt_sizes.context_for(LONG_CHINESE, judge.max_output_tokens):,}",
        "characters": f"{DOCUMENT_LIMIT:,}",
    }
    need = _(
        "documents of %(characters)s characters need a context of %(needed)s tokens, or %(most)s for Chinese and other "
        "scripts with a token for each character"
    )
    return f"{sentence % values}: {need % needed}"


def _cuts_prompts(first: ProbeCall, long: ProbeCall | None, context: int | None) -> tuple[str, list[str]]:
    """Return the problem of a server that cuts long prompts; the note of one that refuses them."""
    judge = first.judge
    if judge.preset.cuts_prompts == "always" and context is not None and context < LONG_ENGLISH:
        words = _("it cuts long prompts without a word, and its context is %(context)s tokens")
        return _describe_context(judge, words, context=f"{context:,}"), []
    for tried, inputs in ((first, INPUTS), (long, LONG_INPUTS)):
        reply = tried.reply if tried is not None else None
        if reply is None or not judge.preset.asks or not reply.usage.said:
            continue
        prompt = probe_request(judge, first.role, inputs).prompt
        if prompt_sizes.is_cut(f"{prompt.system}\n{prompt.user}", reply.usage.input, judge.max_output_tokens):
            least = f"{prompt_sizes.least_tokens(prompt.system + prompt.user):,}"
            words = _(
                "it cuts long prompts without a word: it read %(counted)s tokens of one that has %(least)s at least"
            )
            return _describe_context(judge, words, counted=f"{reply.usage.input:,}", least=least), []
    if long is not None and long.error is not None:
        words = _("it does not answer about a long document (%(error)s)")
        return "", [_describe_context(judge, words, error=long.error)]
    return "", []


async def _try_call(judge: Judge, role: str, inputs: Inputs = INPUTS) -> ProbeCall:
    try:
        reply = await open_provider(judge).complete(probe_request(judge, role, inputs))
    except ProviderError as error:
        return ProbeCall(judge, role, inputs.document, error=error)
    return ProbeCall(judge, role, inputs.document, reply=reply)


def probe_request(judge: Judge, role: str, inputs: Inputs = INPUTS) -> ModelRequest:
    """Return the small question, as the judge's role and its schema mode ask it; a long one with other `inputs`."""
    # The signature asks for a prompt all the same.
    if role in ("embed", "web"):
        nothing = render.vote_prompt(INPUTS)  # its endpoint takes no prompt
        return ModelRequest(judge, nothing, render.VOTE_SCHEMA, INPUTS, role, documents=(INPUTS.document,))
    return answering.build_request(judge, inputs, role)


def add_costs(costs: Iterable[float | None]) -> float | None:
    """Return USD of all together; None where one is unknown."""
    known = list(costs)
    # One unknown cost makes the sum unknown: a smaller number would be wrong.
    return None if None in known else sum(cost or 0.0 for cost in known)


def cost_of_result(judge: Judge, result: Reply | ProviderError | None, known: Price | None) -> float | None:
    """Return USD of a call by what came of it; None: unknown. An error may come with what was used before it."""
    reply = result.reply if isinstance(result, ProviderError) else result
    if reply is not None:
        return call_cost(price_of_reply(judge, reply, known, {}), reply.usage, reply.bill)
    billed = isinstance(result, ProviderError) and result.billed
    return None if billed and not (known and known.is_free) else 0.0


def _found_abilities(first: ProbeCall, second: ProbeCall | None, context: int | None) -> dict[str, Any]:
    """Return what the judge can do, as JSON; nothing of a judge without a prompt."""
    judge, reply = first.judge, first.reply
    if not judge.preset.asks:
        return {}
    tried = [one for one in (first, second) if one]
    given = [one for one in tried if one.judge.alternatives]
    others = [token.others for one in given if one.reply for token in one.reply.tokens]
    suspected = first.error and remedies.suspect_key(judge, first.error)
    sent = remedies.sent_temperature(judge)
    return {
        "schema_mode": judge.schema_mode,
        "unwrap": judge.unwrap,
        # Reversed, so that of two tries in one mode the first is what is said.
        "schema_modes": {one.judge.schema_mode: _mode_result(one) for one in reversed(tried)},
        "logprobs": max(map(len, others), default=0) if given else None,
        "logprobs_asked": judge.alternatives,
        "temperature": sent,
        "temperature_taken": False if suspected == "temperature" else True if reply and sent is not None else None,
        "thinks": any(one.thinks for one in tried) or remedies.known_to_think(judge),
        "reasoning_tokens": max((one.reply.usage.reasoning for one in tried if one.reply), default=0),
        "reasoning_text": any(bool(one.reply.reasoning) for one in tried if one.reply),
        "max_output_tokens": judge.max_output_tokens,
        "context": context,
    }


def _mode_result(tried: ProbeCall) -> str:
    if tried.works:
        return "works"
    if tried.reply is not None:
        return "unreadable"
    assert tried.error is not None
    return "refused" if remedies.suspect_key(tried.judge, tried.error) == "schema_mode" else "not known"


def _missing_logprobs(first: ProbeCall) -> str:
    """Say that the judge gave no log-probabilities, though it was asked for them; "" where all is well."""
    reply = first.reply
    if reply is None or not first.judge.alternatives or reply.tokens or reply.probabilities:
        return ""
    return _("it was asked for log-probabilities and gave none: LARA and its grades would go without them")


def _list_warnings(first: ProbeCall, context: int | None, catalogue: Catalogue) -> list[str]:
    """List what works now and may not later: thinking, an unknown use of tokens, a short context, a last day."""
    judge, reply, found = first.judge, first.reply, list[str]()
    now = judge.max_output_tokens
    if remedies.thinks_in_little_room(first):
        words = _("it thinks before it answers, and max_output_tokens = %(now)s cuts longer thoughts: set %(wanted)s")
        found.append(words % {"now": now, "wanted": remedies.setting_line("max_output_tokens", ROOM_TO_THINK)})
    if reply is not None and judge.preset.asks and not reply.usage.is_known:
        found.append(_("it does not say how many tokens it used: the cost of its calls stays unknown"))
    if context is not None and context < LONG_CHINESE + now:
        found.append(_describe_context(judge, _("its context is %(context)s tokens"), context=f"{context:,}"))
    if catalogue.ends:
        words = _("%(model)s answers until %(day)s, as the provider's list of models says")
        found.append(words % {"model": judge.model, "day": catalogue.ends.isoformat()})
    return found
