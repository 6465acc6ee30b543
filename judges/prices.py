"""What a call costs, or that nobody knows. Unknown is None and stays it: no price is guessed from a similar model."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from judges.records import Judge, Request, Usage

MILLION = 1_000_000
SAMPLES = (1_000, 30_000)
"""Input tokens at which the table is asked: some prices rise with the length of the prompt, within what judges see."""
ENVELOPE = 64
"""Tokens that a provider may add around messages: roles, separators, the name of the schema."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens. `cached` is for the part of the input that the provider took from its cache."""

    input: float
    cached: float
    output: float
    written: float | None = None
    """For input that the provider wrote to its cache, where that costs more than other input."""

    def cost(self, usage: Usage) -> float:
        """USD of a call; `usage.input` includes `cached` and `written`, `usage.output` includes reasoning."""
        cached = min(usage.cached, usage.input)
        written = min(usage.written, usage.input - cached)
        fresh = usage.input - cached - written
        dear = self.input if self.written is None else self.written
        spent = fresh * self.input + cached * self.cached + written * dear + usage.output * self.output
        return spent / MILLION

    def most(self, tokens_in: int, tokens_out: int) -> float:
        """USD of a call with so many tokens, should all input be written to a cache."""
        return self.cost(Usage(input=tokens_in, written=tokens_in, output=tokens_out))

    def bound(self, request: Request) -> float:
        """USD that the call can cost at most, for reservations of a budget."""
        return self.most(upper_bound(request), request.judge.max_output_tokens)

    def times(self, share: float) -> "Price":
        """The same at a share of it."""
        written = None if self.written is None else self.written * share
        return Price(self.input * share, self.cached * share, self.output * share, written)


FREE = Price(0.0, 0.0, 0.0)
OVERRIDES: dict[tuple[str, str], Price] = {}
"""(provider, model) whose price in the table is missing or wrong, until the table has it. Give the source beside it."""


BATCH_SHARE = 0.5
"""Of the usual price: what all three providers charge for a batch."""
BATCHED = ("openai", "anthropic", "google")
"""Providers with a batch endpoint."""


def is_batched(judge: Judge) -> bool:
    """Whether a batch campaign asks it through its provider's batch endpoint; others are asked one by one."""
    return judge.provider in BATCHED and not judge.decides


def in_batch(judge: Judge, price: Price | None) -> Price | None:
    """Its price in a batch campaign."""
    return price.times(BATCH_SHARE) if price and is_batched(judge) else price


def price(judge: Judge) -> Price | None:
    """The judge's own prices, else our overrides, else genai-prices; None when none of them knows the model."""
    if judge.provider == "offline":
        return FREE
    if judge.input_price is not None and judge.output_price is not None:
        cached = judge.input_price if judge.cached_input_price is None else judge.cached_input_price
        return Price(judge.input_price, cached, judge.output_price)
    own = OVERRIDES.get((judge.provider, judge.model))
    return own or _listed(judge.provider, judge.base_url, judge.model)


def upper_bound(request: Request) -> int:
    """Input tokens of the request at most: a token of a byte-pair encoding is at least one byte of UTF-8."""
    texts = (request.prompt.system, request.prompt.user, json.dumps(request.schema))
    return sum(len(text.encode("utf-8", "replace")) for text in texts) + ENVELOPE


@lru_cache(maxsize=1024)
def _listed(provider: str, base_url: str, model: str) -> Price | None:
    """The table's price. Where it varies with the hour or the prompt's length, the dearest, so that bounds hold."""
    midnight = datetime.now(tz=UTC).replace(hour=0, minute=0)
    hours = [midnight + timedelta(hours=hour, minutes=30) for hour in range(24)]
    try:
        rates = [_rates(provider, base_url, model, tokens, when) for tokens in SAMPLES for when in hours]
    except LookupError:
        return None
    fresh, cached, output, written = (max(column) for column in zip(*rates, strict=True))
    # The table says 0 also where it does not know one of the two.
    return Price(fresh, cached, output, written if written > fresh else None) if fresh and output else None


def _rates(provider: str, base_url: str, model: str, tokens: int, when: datetime) -> tuple[float, float, float, float]:
    """USD per million (input, cached, output, written). At the provider's own address by its name, else by the address.

    Raises LookupError for an unknown model or address: a gateway has prices of its own.
    """
    # The table is a large module, and a panel of offline judges never asks it.
    from genai_prices import calc_price
    from genai_prices.types import Usage as Listed

    found = []
    for cached, written in ((0, 0), (tokens, 0), (0, tokens)):
        usage = Listed(input_tokens=tokens, cache_read_tokens=cached, cache_write_tokens=written, output_tokens=tokens)
        name = model.removeprefix("models/")
        if base_url:
            call = calc_price(usage, name, provider_api_url=base_url, genai_request_timestamp=when)
        else:
            call = calc_price(usage, name, provider_id=provider, genai_request_timestamp=when)
        found.append((float(call.input_price) * MILLION / tokens, float(call.output_price) * MILLION / tokens))
    return found[0][0], found[1][0], found[0][1], found[2][0]
