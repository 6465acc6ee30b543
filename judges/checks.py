"""One call to each judge of a panel: does its key, its model, its schema work, and is its price known?"""

import asyncio
from dataclasses import dataclass, field
from itertools import groupby
from time import perf_counter

from django.utils.translation import gettext as _

from judges import prompts, verdicts
from judges.prices import Price, price
from judges.providers import close_providers, open_provider
from judges.records import (
    Inputs,
    Judge,
    Overloaded,
    ProviderError,
    RateLimited,
    Reply,
    Request,
    Seat,
    Side,
    Unreachable,
    Usage,
)

INPUTS = Inputs(
    query="At what temperature does water boil at sea level?",
    answers=("At 100 degrees Celsius.",),
    title="",
    document="Water boils at 100 degrees Celsius at sea level. On high mountains it boils at a lower temperature.",
)


@dataclass(frozen=True, slots=True)
class Checked:
    """What one judge's call showed. `problem` is empty when the judge can work; it says what to do otherwise."""

    judge: Judge
    role: str
    problem: str
    price: Price | None
    answered_as: str = ""
    """The model's name in the answer, where it is another than the one asked for."""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    @property
    def cost(self) -> float | None:
        """USD of this call; None where the price is unknown."""
        return self.price.cost(self.usage) if self.price else None


async def check(judges: list[tuple[Judge, str]]) -> list[Checked]:
    """Ask every (judge, role: for, against or vote) once. Accounts are asked side by side, their judges in turn."""
    order = sorted(range(len(judges)), key=lambda place: judges[place][0].account)
    groups = [list(places) for _, places in groupby(order, key=lambda place: judges[place][0].account)]
    found: dict[int, Checked] = {}

    async def account(places: list[int]) -> None:
        for place in places:
            found[place] = await check_one(*judges[place])

    try:
        for judge, _ in judges:
            open_provider(judge)  # Loading an SDK takes seconds, which are not the model's.
        await asyncio.gather(*map(account, groups))
    finally:
        await close_providers()
    return [found[place] for place in range(len(judges))]


async def check_one(judge: Judge, role: str) -> Checked:
    """One call with a question whose answer is plain; the verdict itself is not looked at."""
    began = perf_counter()
    try:
        reply = await open_provider(judge).complete(_request(judge, role))
    except ProviderError as error:
        return Checked(judge, role, advice(judge, error), price(judge), seconds=perf_counter() - began)
    answered_as = reply.model if reply.model not in ("", judge.model, judge.model.removeprefix("models/")) else ""
    seconds = perf_counter() - began
    return Checked(judge, role, _problem(judge, role, reply), price(judge), answered_as, reply.usage, seconds)


def advice(judge: Judge, error: ProviderError) -> str:
    """What failed and what to do about it."""
    if isinstance(error, RateLimited):
        return _("%(error)s: a limit or quota is used up; wait, or lower the judge's limits") % {"error": error}
    if isinstance(error, Overloaded):
        return _("%(error)s: the provider fails at the moment; try again later") % {"error": error}
    if isinstance(error, Unreachable):
        return _("%(error)s: is the server up and the base_url right?") % {"error": error}
    what = {
        400: _("it refuses the request; a model without temperature 0 wants temperature = 1 (some take no logprobs)"),
        401: _("the key in %(api_key_env)s is not accepted") % {"api_key_env": judge.api_key_env},
        403: _("the key in %(api_key_env)s may not use this model") % {"api_key_env": judge.api_key_env},
        404: _('it does not know the model "%(model)s", or the base_url is wrong') % {"model": judge.model},
    }.get(error.status or 0)
    return f"{error}: {what}" if what else str(error)


def _request(judge: Judge, role: str) -> Request:
    if role == "vote":
        prompt, schema = prompts.ballot(INPUTS, judge)
        return Request(judge, prompt, schema, INPUTS, role)
    prompt = prompts.turn_prompt(INPUTS, Seat(Side(role)), 1)
    return Request(judge, prompt, prompts.TURN_SCHEMA, INPUTS, role, round=1)


def _problem(judge: Judge, role: str, reply: Reply) -> str:
    if reply.refused:
        return _("it refused a harmless question; choose another model")
    if reply.truncated:
        return _("its answer was cut at %(max_output_tokens)s tokens; raise max_output_tokens") % {
            "max_output_tokens": judge.max_output_tokens
        }
    try:
        verdicts.parse(role, reply.text, INPUTS.document, judge)
    except verdicts.Unusable as error:
        return _(
            "its answer does not follow the schema (%(error)s); the server or model may not support JSON schemas"
        ) % {"error": error}
    return ""
