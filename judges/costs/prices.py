"""Prices of model calls. An unknown price is None: it is never guessed from a similar model."""

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
    """Prices in USD per million tokens."""

    input: float
    cached: float  # For input that the provider read from its cache.
    output: float
    written: float | None = None  # For input that the provider wrote to its cache; None: as other input.
    # For reasoning that is separate from the answer; None: as other output, which is how most providers bill it.
    reasoning: float | None = None
    call: float = 0.0  # USD of a call of any size: of web searches.

    def cost(self, usage: Usage) -> float:
        """Return USD of a call; `usage.input` includes `cached` and `written`, `usage.output` includes `reasoning`."""
        cached = min(usage.cached, usage.input)
        cache_write = min(usage.written, usage.input - cached)
        reasoning = min(usage.reasoning, usage.output)
        written_price = self.input if self.written is None else self.written
        reasoning_price = self.output if self.reasoning is None else self.reasoning
        usd = (usage.input - cached - cache_write) * self.input + cached * self.cached + cache_write * written_price
        usd += (usage.output - reasoning) * self.output + reasoning * reasoning_price
        return self.call + usd / MILLION

    def most(self, tokens_in: int, tokens_out: int) -> float:
        """Return the most USD that a call of at most so many tokens can cost, each at the highest price."""
        highest = max(self.input, self.cached, self.written or 0.0)
        return self.call + (tokens_in * highest + tokens_out * max(self.output, self.reasoning or 0.0)) / MILLION

    @property
    def is_free(self) -> bool:
        return not self.most(1, 1)

    def times(self, share: float) -> "Price":
        written_price, reasoning = (
            None if price is None else price * share for price in (self.written, self.reasoning)
        )
        return Price(self.input * share, self.cached * share, self.output * share, written_price, reasoning)


def call_cost(price: Price | None, usage: Usage, bill: float | None = None) -> float | None:
    """Return USD of a call; None without a known price, or if the answer does not report its usage.

    `bill`: the provider's own charge, which takes precedence.
    """
    if bill is not None and not (price is not None and price.is_free):
        return bill
    if price is None or not (usage.is_known or price.call or price.is_free):
        return None
    return price.cost(usage)


FREE = Price(0.0, 0.0, 0.0)
# Kinds of thinking (judges.presets.thinking) whose tokens may not count against the output limit, with
# the most tokens that they take without a budget. DashScope's documentation does not say, so the
# upper bound adds them.
THOUGHT_BESIDE = {"qwen": 81_920}
# Tokens that a provider adds for a tool and its instructions, at most: Anthropic's documentation has 346.
TOOL_TOKENS = 512
# A batch's share of the usual price, if its own price is unknown: all three providers charge this.
BATCH_SHARE = 0.5
SOURCES = {
    "page": gettext_noop("entered on the Prices page"),
    "table": gettext_noop("price table in the judges file"),
    "file": gettext_noop("judges file"),
}
FREE_AS_SAID = gettext_noop("free (set by you): %(who)s")
# Providers that are paid by the call. Only the judges file sets their price.
PAID_BY_CALL = tuple(preset.name for preset in PRESETS.values() if preset.wire == "search")
BATCHED = tuple(preset.name for preset in PRESETS.values() if preset.batch)  # Providers with a batch endpoint.


def is_batched(judge: Judge) -> bool:
    """Return whether a batch campaign calls the judge through a batch endpoint."""
    # A batch has no headers for single calls, and Google's no fields that its SDK does not know.
    unsupported = {"extra_headers"} | ({"extra_body"} if judge.preset.wire == "generate" else set())
    return judge.preset.batch and not judge.decides and not unsupported & judge.parameters.keys()


def price_for_judge(judge: Judge, *, batch: bool = False) -> Price | None:
    """Return the price of a judge's calls, or with `batch` of its calls in batches; None if it is unknown.

    1. The team's own price, which judges.costs.price_rows has put into the record. A batch price that is missing
       is the same share of the usual one as that of other input, or output.
    2. Otherwise the price of genai-prices.
    """
    if judge.provider == "offline":
        return FREE
    if judge.provider in PAID_BY_CALL:
        call_price = judge.parameters.get("call_price")
        return None if call_price is None else Price(0.0, 0.0, 0.0, call=float(call_price))
    in_batch = batch and is_batched(judge)
    if judge.input_price is not None and judge.output_price is not None:
        cached = judge.input_price if judge.cached_input_price is None else judge.cached_input_price
        own = Price(judge.input_price, cached, judge.output_price, judge.written_input_price, judge.reasoning_price)
        if not in_batch:
            return own
        if judge.batch_input_price is None or judge.batch_output_price is None:
            return own.times(BATCH_SHARE)
        by_input = own.times(judge.batch_input_price / own.input if own.input else BATCH_SHARE)
        by_output = own.times(judge.batch_output_price / own.output if own.output else BATCH_SHARE)
        cached = by_input.cached if judge.batch_cached_input_price is None else judge.batch_cached_input_price
        return Price(judge.batch_input_price, cached, judge.batch_output_price, by_input.written, by_output.reasoning)
    model = (judge.provider, judge.base_url, judge.model)
    if in_batch:
        usual = _price_from_rates(listed_rates(*model))
        return _price_from_rates(listed_rates(*model, batch=True)) or (usual and usual.times(BATCH_SHARE))
    return _price_from_rates(listed_rates(*model, tier=str(judge.parameters.get("service_tier", ""))))


# Service tiers in answers that mean the usual price.
USUAL = USUAL_TIERS | {"batch", "standard_only", "on-demand", "none"}


def price_of_reply(
    judge: Judge, reply: Reply, price: Price | None, table: Mapping[str, Price], *, batch: bool = False
) -> Price | None:
    """Return the price of the model and tier that answered; None if it is unknown.

    `price`: that of the requested model and tier; `table`: the team's prices of the provider's other models, by name.
    """
    if price is not None and (price.is_free or price.call):
        return price
    requested_tier, tier = (
        TIER_NAMES.get(name, name) for name in (str(judge.parameters.get("service_tier", "")), reply.tier.lower())
    )
    model = answering_model(judge, reply)
    if model:
        names = [name for name in table if name == model or (name.endswith("*") and model.startswith(name[:-1]))]
        own = table[max(names, key=lambda name: (not name.endswith("*"), len(name)))] if names else None
        other = replace(judge, model=model, input_price=None, output_price=None)
        # Model names of own servers are the team's own (a route, a file): another one in an answer changes no price.
        price = own or price_for_judge(other, batch=batch) or (price if judge.preset.local else None)
    is_other_tier = bool(tier) and tier != requested_tier and not (tier in USUAL and requested_tier in USUAL)
    if is_other_tier and not batch:
        # The team's own price applies only to the tier that the judge requests.
        served = replace(judge, model=model or judge.model, parameters={**judge.parameters, "service_tier": tier})
        price = None if judge.input_price is not None or judge.preset.wire == "messages" else price_for_judge(served)
    return price and (price.times(reply.surcharge) if reply.surcharge != 1 else price)


def answering_model(judge: Judge, reply: Reply) -> str:
    """Return the model that answered, if it is not the requested one; else ""."""
    # At Azure the judge names a deployment, which never is the model's name.
    return "" if judge.preset.client == "azure" or is_same_model(judge.model, reply.model) else reply.model


def describe_price_source(judge: Judge) -> str:
    """Describe the source of the judge's price."""
    price = price_for_judge(judge)
    if judge.provider == "offline":
        return _("free (offline)")
    if judge.input_price is None and judge.provider not in PAID_BY_CALL:
        return list_version() if price is not None else _("unknown")
    if price is None:
        return _("unknown")
    source = SOURCES.get(judge.priced_by, SOURCES["file"])
    return _(FREE_AS_SAID) % {"who": _(source)} if price.is_free else _(source)


def requests_reasoning(judge: Judge) -> bool:
    """Return whether the judge's parameters ask it to reason before it answers."""
    return thinking.thinks(judge.model, judge.parameters, judge.preset)


def output_bound(judge: Judge) -> int:
    """Return the most output tokens that a call can take, reasoning included."""
    thought_tokens = THOUGHT_BESIDE.get(judge.preset.thinking)
    if thought_tokens is None or not requests_reasoning(judge):
        return judge.max_output_tokens
    budget = judge.parameters.get("thinking")
    if isinstance(budget, int) and not isinstance(budget, bool):
        thought_tokens = budget
    return judge.max_output_tokens + thought_tokens


def input_bound(judge: Judge, prompt: Prompt, schema: dict[str, Any]) -> int:
    """Return the most input tokens that a call can take: one for each byte of prompt and schema."""
    size = len(prompt.system.encode()) + len(prompt.user.encode()) + len(repr(schema))
    return size + envelope_tokens(judge)


def cost_bound(judge: Judge, prompt: Prompt, schema: dict[str, Any], price: Price | None) -> float:
    """Return the most USD that the call can cost; 0 if its price is unknown."""
    return 0.0 if price is None else price.most(input_bound(judge, prompt, schema), output_bound(judge))


def envelope_tokens(judge: Judge) -> int:
    """Return the tokens that a provider may add to the messages."""
    return ENVELOPE + (TOOL_TOKENS if judge.schema_mode == "tool" else 0)


def _price_from_rates(rates: Rates | None) -> Price | None:
    """Return the price of listed rates; written input and reasoning without a rate of their own have None."""
    if rates is None:
        return None
    input, cached, cache_write, output, reasoning = rates
    written_price = cache_write if cache_write > input else None
    reasoning_price = None if reasoning == output else reasoning
    return Price(input, cached, output, written_price, reasoning_price)
