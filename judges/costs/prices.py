"""Prices of calls. An unknown price is None and stays it: none is guessed from a similar model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from charts.translation import gettext_noop
from judges.costs.listed_prices import MILLION, TIER_NAMES, USUAL_TIERS, Rates, list_version, listed_rates
from judges.domain.model_names import is_same_model
from judges.presets import PRESETS, thinking
from judges.records import Judge, Prompt, Reply, Usage

ENVELOPE = 64  # Tokens that a provider may add around messages: roles, separators, the name of the schema.


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens. `cached`: the input that the provider took from cache."""

    input: float
    cached: float
    output: float
    written: float | None = None  # For input that the provider wrote to its cache; None: as other input.
    # For reasoning that the model keeps apart from its answer; None: as other output, which is how most bill it.
    reasoning: float | None = None
    call: float = 0.0  # USD of a call, whatever it holds: of web searches.

    def cost(self, usage: Usage) -> float:
        """Return USD of a call; `usage.input` includes `cached` and `written`, `usage.output` includes `reasoning`."""
        cached = min(usage.cached, usage.input)
        written = min(usage.written, usage.input - cached)
        reasoning = min(usage.reasoning, usage.output)
        dear = self.input if self.written is None else self.written
        thought = self.output if self.reasoning is None else self.reasoning
        spent = (usage.input - cached - written) * self.input + cached * self.cached + written * dear
        spent += (usage.output - reasoning) * self.output + reasoning * thought
        return self.call + spent / MILLION

    def most(self, tokens_in: int, tokens_out: int) -> float:
        """Return USD of a call with so many tokens at most, should all be of the dearest kind."""
        dear = max(self.input, self.cached, self.written or 0.0)
        return self.call + (tokens_in * dear + tokens_out * max(self.output, self.reasoning or 0.0)) / MILLION

    @property
    def is_free(self) -> bool:
        return not self.most(1, 1)

    def times(self, share: float) -> "Price":
        written, reasoning = (None if one is None else one * share for one in (self.written, self.reasoning))
        return Price(self.input * share, self.cached * share, self.output * share, written, reasoning)


def call_cost(price: Price | None, usage: Usage, bill: float | None = None) -> float | None:
    """Return USD of a call; None where nobody knows: no price, or an answer that does not say what it used.

    `bill`: what the provider says it charges, which is what counts.
    """
    if bill is not None and not (price is not None and price.is_free):
        return bill
    if price is None or not (usage.is_known or price.call or price.is_free):
        return None
    return price.cost(usage)


FREE = Price(0.0, 0.0, 0.0)
# Ways to ask for thinking (judges.presets.thinking) where the limit of the output may not count the
# thoughts, and their most tokens without a budget. DashScope's documentation does not say, so the
# bound takes them beside it.
THOUGHT_BESIDE = {"qwen": 81_920}
# Tokens that a provider adds for a tool and its instructions, at most: Anthropic's documentation has 346.
TOOL_TOKENS = 512
# Of the usual price, where nobody says what a batch costs: what all three providers charge for one.
BATCH_SHARE = 0.5
SOURCES = {
    "page": gettext_noop("entered on the Prices page"),
    "table": gettext_noop("price table in the judges file"),
    "file": gettext_noop("judges file"),
}
FREE_AS_SAID = gettext_noop("free (set by you): %(who)s")
# Providers that are paid by the call: the judges file alone sets their price.
PAID_BY_CALL = tuple(one.name for one in PRESETS.values() if one.wire == "search")
BATCHED = tuple(one.name for one in PRESETS.values() if one.batch)  # Providers with a batch endpoint.


def is_batched(judge: Judge) -> bool:
    """Return whether a batch campaign asks the judge through a batch endpoint."""
    # A batch has no place for the headers of a call, and Google's none for fields that its SDK does not know.
    unheard = {"extra_headers"} | ({"extra_body"} if judge.preset.wire == "generate" else set())
    return judge.preset.batch and not judge.decides and not unheard & judge.parameters.keys()


def price_for_judge(judge: Judge, *, batch: bool = False) -> Price | None:
    """Return the team's price, else genai-prices'; None: unknown. `batch`: in batches."""
    # What the team says stands in the judge's row, in a `[[price]]` table or on the page:
    # judges.costs.price_rows puts the one that holds into the record.
    if judge.provider == "offline":
        return FREE
    if judge.provider in PAID_BY_CALL:
        own = judge.parameters.get("call_price")
        return None if own is None else Price(0.0, 0.0, 0.0, call=float(own))
    in_batch = batch and is_batched(judge)
    if judge.input_price is not None and judge.output_price is not None:
        cached = judge.input_price if judge.cached_input_price is None else judge.cached_input_price
        own = Price(judge.input_price, cached, judge.output_price, judge.written_input_price, judge.reasoning_price)
        return _own_batch(judge, own) if in_batch else own
    model = (judge.provider, judge.base_url, judge.model)
    if in_batch:
        usual = _price_from_rates(listed_rates(*model))
        return _price_from_rates(listed_rates(*model, batch=True)) or (usual and usual.times(BATCH_SHARE))
    return _price_from_rates(listed_rates(*model, tier=str(judge.parameters.get("service_tier", ""))))


# Words of an answer for the price that holds without any word.
USUAL = USUAL_TIERS | {"batch", "standard_only", "on-demand", "none"}


def price_of_reply(
    judge: Judge, reply: Reply, price: Price | None, table: Mapping[str, Price], *, batch: bool = False
) -> Price | None:
    """Return the price of what answered: another model's or another tier's than was asked for may be unknown.

    `price`: of what was asked for; `table`: what the team says that other models of the provider cost, by name.
    """
    if price is not None and (price.is_free or price.call):
        return price
    asked, tier = (
        TIER_NAMES.get(name, name) for name in (str(judge.parameters.get("service_tier", "")), reply.tier.lower())
    )
    model = answering_model(judge, reply)
    if model:
        fits = [name for name in table if name == model or (name.endswith("*") and model.startswith(name[:-1]))]
        own = table[max(fits, key=lambda name: (not name.endswith("*"), len(name)))] if fits else None
        other = replace(judge, model=model, input_price=None, output_price=None)
        price = own or price_for_judge(other, batch=batch) or (price if judge.preset.own_names else None)
    moved = bool(tier) and tier != asked and not (tier in USUAL and asked in USUAL)
    if moved and not batch:
        # The team's own price is that of the tier which the judge asks for.
        served = replace(judge, model=model or judge.model, parameters={**judge.parameters, "service_tier": tier})
        price = None if judge.input_price is not None or judge.preset.wire == "messages" else price_for_judge(served)
    return price and (price.times(reply.surcharge) if reply.surcharge != 1 else price)


def answering_model(judge: Judge, reply: Reply) -> str:
    """Return the model that answered, where it is another than the one that was asked; else ""."""
    # At Azure the judge names a deployment, which is never the model's name.
    return "" if judge.preset.client == "azure" or is_same_model(judge.model, reply.model) else reply.model


def describe_price_source(judge: Judge) -> str:
    """Return the source of the price that holds, in words."""
    known = price_for_judge(judge)
    if judge.provider == "offline":
        return _("free (offline)")
    if judge.input_price is None and judge.provider not in PAID_BY_CALL:
        return list_version() if known is not None else _("unknown")
    if known is None:
        return _("unknown")
    source = SOURCES.get(judge.priced_by, SOURCES["file"])
    who = _(source)
    return _(FREE_AS_SAID) % {"who": who} if known.is_free else who


def requests_reasoning(judge: Judge) -> bool:
    """Whether the judge is asked to reason before it answers, as far as its parameters say."""
    return thinking.thinks(judge.model, judge.parameters, judge.preset)


def output_bound(judge: Judge) -> int:
    """Return tokens of output that a call can take at most, reasoning included."""
    beside = THOUGHT_BESIDE.get(judge.preset.thinking)
    if beside is None or not requests_reasoning(judge):
        return judge.max_output_tokens
    budget = judge.parameters.get("thinking")
    return judge.max_output_tokens + (budget if isinstance(budget, int) and not isinstance(budget, bool) else beside)


def input_bound(judge: Judge, prompt: Prompt, schema: dict[str, Any]) -> int:
    """Return input tokens at most: one a byte, the schema's too."""
    sent = len(prompt.system.encode()) + len(prompt.user.encode()) + len(repr(schema))
    return sent + envelope_tokens(judge)


def cost_bound(judge: Judge, prompt: Prompt, schema: dict[str, Any], price: Price | None) -> float:
    """Return USD that the call can cost at most; 0 where its price is unknown."""
    return 0.0 if price is None else price.most(input_bound(judge, prompt, schema), output_bound(judge))


def envelope_tokens(judge: Judge) -> int:
    """Return tokens that a provider may add around what is sent."""
    return ENVELOPE + (TOOL_TOKENS if judge.schema_mode == "tool" else 0)


def _own_batch(judge: Judge, own: Price) -> Price:
    """Return the team's batch price; what it does not say has the share that other input, or output, has there."""
    if judge.batch_input_price is None or judge.batch_output_price is None:
        return own.times(BATCH_SHARE)
    into = own.times(judge.batch_input_price / own.input if own.input else BATCH_SHARE)
    out = own.times(judge.batch_output_price / own.output if own.output else BATCH_SHARE)
    cached = into.cached if judge.batch_cached_input_price is None else judge.batch_cached_input_price
    return Price(judge.batch_input_price, cached, judge.batch_output_price, into.written, out.reasoning)


def _price_from_rates(rates: Rates | None) -> Price | None:
    """Make a price of listed rates; tokens without one cost as other input, output."""
    if rates is None:
        return None
    input, cached, written, output, reasoning = rates
    own_written, own_reasoning = written if written > input else None, None if reasoning == output else reasoning
    return Price(input, cached, output, own_written, own_reasoning)
