"""Checks of judges by at most two paid calls each: key, model, schema mode and parameters.

The first call is the same as in a campaign. A second one answers what the first left open: it uses the next schema
mode, or omits the parameter that a refusal names, or, if all is well, asks for log-probabilities. Free information of
the provider (the names of its models, the context length) is read in addition.
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
from judges.presets.own_servers import advised_timeout
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
AROUND = 2_000  # Tokens of a prompt besides its document: the instructions, the query, a debate.
# Tokens of a prompt with the longest document that judges see: in English, and in scripts with a token for each
# character.
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
    """Findings about a judge. `problem`: what is wrong and what to do; empty if the judge works."""

    judge: Judge
    role: str
    problem: str
    price: Price | None
    answered_as: str = ""  # The model's name in the answer, if it is not the requested one.
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0  # Duration of the first call.
    calls: int = 0
    cost: float | None = None  # USD of all calls; None if the price or the usage is unknown.
    warnings: tuple[str, ...] = ()
    found: dict[str, Any] = field(default_factory=dict)  # The judge's abilities, as they are stored.


def plan_check(judge: Judge, role: str) -> tuple[int, float | None]:
    """Return the maximum number of calls of a check, and their maximum cost in USD; None if the price is unknown."""
    if judge.provider == "offline":
        return 0, 0.0
    # A second call would show nothing more about an endpoint that only decides or makes vectors.
    calls = MOST_CALLS if judge.preset.asks and not judge.decides else 1
    price = price_for_judge(judge)
    # The second call may use another mode with a longer request, so the bound is the maximum over all modes.
    variants = [judge, *(remedies.change_parameters(judge, schema_mode=mode) for mode in remedies.other_modes(judge))]

    def bound(request: ModelRequest) -> float:
        return cost_bound(request.judge, request.prompt, request.schema, price)

    highest_bound = max(bound(probe_request(variant, role)) for variant in variants) if price else None
    if highest_bound is not None and calls == MOST_CALLS and may_cut_prompts(judge):
        return calls, highest_bound + bound(probe_request(judge, role, LONG_INPUTS))
    return calls, None if highest_bound is None else calls * highest_bound


def probe_role(judge: Judge) -> str:
    """Return the role in which a judge without a panel is checked: a vote, unless it serves another purpose."""
    if judge.provider == "offline" and judge.model in ("for", "against"):
        return judge.model
    return {"embed": "embed", "search": "web"}.get(judge.preset.wire, "vote")


async def run_checks(judges: Sequence[tuple[Judge, str]], *, at_length: bool = True) -> list[CheckedJudge]:
    """Check every (judge, role), with role for, against, vote, embed or web: accounts in parallel, judges in turn.

    `at_length`: whether servers that may cut long prompts get a long one as their second call, which takes slow
    servers minutes.
    """
    # groupby needs the judges of one account side by side; `order` finds their positions again.
    order = sorted(range(len(judges)), key=lambda position: judges[position][0].account)
    groups = [
        list(positions) for _account, positions in groupby(order, key=lambda position: judges[position][0].account)
    ]
    results: dict[int, CheckedJudge] = {}

    async def account(positions: list[int]) -> None:
        for position in positions:
            results[position] = await check_one(*judges[position], at_length=at_length)

    try:
        for judge, _role in judges:
            open_provider(judge)  # Loading an SDK takes seconds, which are not the model's.
        await asyncio.gather(*map(account, groups))
    finally:
        # The clients belong to the loop of this check, and would leave their sockets open.
        await close_providers()
    return [results[position] for position in range(len(judges))]


async def check_one(judge: Judge, role: str, *, at_length: bool = True) -> CheckedJudge:
    """Check a judge by one call with an obvious answer, and by a second one if that shows more."""
    began = perf_counter()
    first = await _try_call(judge, role)
    seconds = perf_counter() - began
    # An endpoint that answered, even with a refusal, can be asked for its catalogue.
    has_answered = first.reply is not None or (first.error is not None and first.error.status is not None)
    catalogue = await look_up(judge) if has_answered else Catalogue()
    names, context = catalogue.names, catalogue.context
    next_judge, is_long = remedies.next_try(first), False
    if at_length and first.works and may_cut_prompts(judge) and context is None:
        next_judge, is_long = next_judge or judge, True
    second = await _try_call(next_judge, role, LONG_INPUTS if is_long else INPUTS) if next_judge else None
    reply, price = first.reply, price_for_judge(judge)
    probe_calls = [call for call in (first, second) if call]
    cut_problem, long_error = _cuts_prompts(first, second if is_long else None, context)
    # A long question without an answer says nothing about other abilities.
    informative_second = None if second is not None and is_long and second.reply is None else second
    usages = [call.reply.usage for call in probe_calls if call.reply is not None]
    counts = ("input", "cached", "output", "reasoning", "written")
    logprobs_problem = ""
    if reply is not None and judge.alternatives and not reply.tokens and not reply.probabilities:
        logprobs_problem = _("it returned no log-probabilities when asked: LARA and its grades would go without them")
    # Calls that were sent: not if a key is missing or no connection was made.
    return CheckedJudge(
        judge,
        role,
        problem=remedies.describe_problem(first, second, names) or logprobs_problem or cut_problem,
        price=price,
        answered_as=answering_model(judge, reply) if reply else "",
        usage=Usage(**{name: sum(getattr(call, name) for call in usages) for name in counts}),
        seconds=seconds,
        calls=sum(call.error is None or call.error.status is not None or call.error.billed for call in probe_calls),
        cost=add_costs(cost_of_result(call.judge, call.reply or call.error, price) for call in probe_calls),
        warnings=tuple([*_list_warnings(first, None if cut_problem else context, catalogue), *long_error]),
        found=_found_abilities(first, informative_second, context)
        | {"ends": catalogue.ends.isoformat() if catalogue.ends else None}
        | {"price": price and {"input": price.input, "output": price.output}},
    )


def may_cut_prompts(judge: Judge) -> bool:
    """Return whether the judge's server may silently read only a part of a long prompt."""
    cuts = judge.preset.cuts_prompts
    return cuts == "always" or (cuts == "perhaps" and (judge.preset.local or is_private(judge.base_url)))


def _describe_context(judge: Judge, sentence: str, **values: object) -> str:
    """Fill in the values of a sentence and append the context length that long documents need."""
    values_needed = {
        "needed": f"{prompt_sizes.context_for(LONG_ENGLISH, judge.max_output_tokens):,}",
        "most": f"{prompt_sizes.context_for(LONG_CHINESE, judge.max_output_tokens):,}",
        "characters": f"{DOCUMENT_LIMIT:,}",
    }
    need = _(
        "documents of %(characters)s characters need a context of %(needed)s tokens, or %(most)s for Chinese and other "
        "scripts with a token for each character"
    )
    return f"{sentence % values}: {need % values_needed}"


def _cuts_prompts(first: ProbeCall, long: ProbeCall | None, context: int | None) -> tuple[str, list[str]]:
    """Return the problem of a server that cuts long prompts, and the warnings about one that refuses them."""
    judge = first.judge
    if judge.preset.cuts_prompts == "always" and context is not None and context < LONG_ENGLISH:
        words = _("it cuts long prompts silently, and its context is %(context)s tokens")
        return _describe_context(judge, words, context=f"{context:,}"), []
    for call, inputs in ((first, INPUTS), (long, LONG_INPUTS)):
        reply = call.reply if call is not None else None
        if reply is None or not judge.preset.asks or not reply.usage.said:
            continue
        prompt = probe_request(judge, first.role, inputs).prompt
        if prompt_sizes.is_cut(f"{prompt.system}\n{prompt.user}", reply.usage.input, judge.max_output_tokens):
            least = f"{prompt_sizes.least_tokens(prompt.system + prompt.user):,}"
            words = _("it cuts long prompts silently: it read %(counted)s tokens of one with at least %(least)s")
            return _describe_context(judge, words, counted=f"{reply.usage.input:,}", least=least), []
    if long is not None and long.error is not None:
        words = _("it does not answer about a long document (%(error)s)")
        return "", [_describe_context(judge, words, error=long.error)]
    return "", []


async def _try_call(judge: Judge, role: str, inputs: Inputs = INPUTS) -> ProbeCall:
    try:
        reply = await open_provider(judge).complete(probe_request(judge, role, inputs))
    except ProviderError as error:
        if error.late:
            # A busy machine takes minutes for what it answers in seconds when it is idle.
            line = remedies.setting_line("timeout_s", advised_timeout(5 * judge.timeout_s))
            error.args = (_("%(error)s: set %(wanted)s") % {"error": error, "wanted": line},)
        return ProbeCall(judge, role, inputs.document, error=error)
    return ProbeCall(judge, role, inputs.document, reply=reply)


def probe_request(judge: Judge, role: str, inputs: Inputs = INPUTS) -> ModelRequest:
    """Return the request of a check in the judge's role and schema mode, about a small pair or other `inputs`."""
    if role in ("embed", "web"):
        # The endpoint takes no prompt, but every request needs one.
        unused_prompt = render.vote_prompt(INPUTS)
        return ModelRequest(judge, unused_prompt, render.VOTE_SCHEMA, INPUTS, role, documents=(INPUTS.document,))
    return answering.build_request(judge, inputs, role)


def add_costs(costs: Iterable[float | None]) -> float | None:
    """Return the sum in USD; None if one of the costs is unknown, since a smaller sum would be wrong."""
    summands = list(costs)
    return None if None in summands else sum(cost or 0.0 for cost in summands)


def cost_of_result(judge: Judge, result: Reply | ProviderError | None, price: Price | None) -> float | None:
    """Return the USD of a call with this result; None if unknown. An error may include the usage before it."""
    reply = result.reply if isinstance(result, ProviderError) else result
    if reply is not None:
        return call_cost(price_of_reply(judge, reply, price, {}), reply.usage, reply.bill)
    billed = isinstance(result, ProviderError) and result.billed
    return None if billed and not (price and price.is_free) else 0.0


def _found_abilities(first: ProbeCall, second: ProbeCall | None, context: int | None) -> dict[str, Any]:
    """Return the judge's abilities as JSON; {} for an endpoint without a prompt."""
    judge, reply = first.judge, first.reply
    if not judge.preset.asks:
        return {}
    calls = [call for call in (first, second) if call]
    calls_with_logprobs = [call for call in calls if call.judge.alternatives]
    alternatives = [token.others for call in calls_with_logprobs if call.reply for token in call.reply.tokens]
    suspected_key = first.error and remedies.suspect_key(judge, first.error)
    temperature = remedies.sent_temperature(judge)
    return {
        "schema_mode": judge.schema_mode,
        "unwrap": judge.unwrap,
        # Reversed, so that of two calls in the same mode the first one counts.
        "schema_modes": {call.judge.schema_mode: call.mode_result for call in reversed(calls)},
        "logprobs": max(map(len, alternatives), default=0) if calls_with_logprobs else None,
        "logprobs_asked": judge.alternatives,
        "temperature": temperature,
        "temperature_taken": False
        if suspected_key == "temperature"
        else True
        if reply and temperature is not None
        else None,
        "thinks": any(call.thinks for call in calls) or remedies.known_to_think(judge),
        "reasoning_tokens": max((call.reply.usage.reasoning for call in calls if call.reply), default=0),
        "reasoning_text": any(bool(call.reply.reasoning) for call in calls if call.reply),
        "max_output_tokens": judge.max_output_tokens,
        "context": context,
    }


def _list_warnings(first: ProbeCall, context: int | None, catalogue: Catalogue) -> list[str]:
    """List risks of a judge that works: thinking, unknown token counts, a short context, a date of retirement."""
    judge, reply, warnings = first.judge, first.reply, list[str]()
    max_tokens = judge.max_output_tokens
    # Thoughts longer than those about a small question would be cut.
    thinks = judge.preset.asks and (first.thinks or remedies.known_to_think(judge))
    if thinks and max_tokens < ROOM_TO_THINK:
        words = _("it thinks before it answers, and max_output_tokens = %(now)s cuts longer thoughts: set %(wanted)s")
        warnings.append(
            words % {"now": max_tokens, "wanted": remedies.setting_line("max_output_tokens", ROOM_TO_THINK)}
        )
    if reply is not None and judge.preset.asks and not reply.usage.is_known:
        warnings.append(_("it does not say how many tokens it used: the cost of its calls stays unknown"))
    if context is not None and context < LONG_CHINESE + max_tokens:
        warnings.append(_describe_context(judge, _("its context is %(context)s tokens"), context=f"{context:,}"))
    if catalogue.ends:
        words = _("%(model)s answers until %(day)s, as the provider's list of models says")
        warnings.append(words % {"model": judge.model, "day": catalogue.ends.isoformat()})
    return warnings
