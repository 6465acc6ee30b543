"""Prices of the list that comes with Quorum: the package genai-prices. What it does not know stays unknown. Pure."""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from importlib.metadata import version

# A provider's name in the list. What is not here is looked up by its address alone: a server of
# one's own or a gateway has prices of its own, whatever the model is called.
LISTED_AS = {
    **{name: name for name in ("openai", "azure", "anthropic", "google", "deepseek", "mistral", "groq", "together")},
    **{name: name for name in ("fireworks", "openrouter")},
    "openai-responses": "openai",
    "bedrock": "aws",
    "vertex": "google",
    "vertex-anthropic": "google",
    "xai": "x-ai",
}

# Input tokens at which the list is asked: some prices rise with the length of the prompt, within what judges see.
SAMPLES = (1_000, 30_000)
# Service tiers at the usual price. Another one has a price only where the list has one for it.
USUAL_TIERS = {"", "auto", "default", "standard", "standard_only", "on_demand"}
TIER_NAMES = {"fast": "priority"}  # OpenAI's newer word for a tier, and the list's.
MILLION = 1_000_000
# USD per million tokens: of input, input from the provider's cache and written to it, of output, and of reasoning.
Rates = tuple[float, float, float, float, float]


def list_version() -> str:
    """Return the name and version of the price list; the version tells how old its prices are."""
    return f"genai-prices {version('genai-prices')}"


def listed_rates(provider: str, base_url: str, model: str, *, tier: str = "", batch: bool = False) -> Rates | None:
    """Return the list's prices today; None where it has none. Where they vary by the hour or the
    prompt's length, the dearest, so that bounds hold. `batch`: of its batch endpoint, which knows
    no tiers; None where it has none apart.
    """
    name = LISTED_AS.get(provider, "")
    if not (name or base_url):
        return None
    tier = "" if tier in USUAL_TIERS else TIER_NAMES.get(tier, tier)
    return _highest_rates(name, base_url, model, tier, batch, datetime.now(tz=UTC).date())


@lru_cache(maxsize=1024)
def _highest_rates(name: str, base_url: str, model: str, tier: str, batch: bool, day: date) -> Rates | None:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    hours = [midnight + timedelta(hours=hour, minutes=30) for hour in range(24)]
    context = {"processing": "batch"} if batch else {"service_tier": tier} if tier else {}
    try:
        rates = [_look_up_rates(name, base_url, model, tokens, when, context) for tokens in SAMPLES for when in hours]
    except LookupError:
        return None
    input, cached, written, output, reasoning = (max(column) for column in zip(*rates, strict=True))
    # The list says 0 also where it does not know one of the two.
    return (input, cached, written, output, reasoning) if input and output else None


def _look_up_rates(name: str, base_url: str, model: str, tokens: int, when: datetime, context: dict[str, str]) -> Rates:
    """Look a model up at its provider by name, or at an address of its own by that.

    Raises LookupError for an unknown model or address, and where the list has no prices for the context.
    """
    # The list is a large module, and a panel of offline judges never asks it.
    from genai_prices import calc_price
    from genai_prices.types import PriceCalculation, Usage

    def call(**part: int) -> PriceCalculation:
        usage = Usage(input_tokens=tokens, output_tokens=tokens, **part)
        ref = model.removeprefix("models/")
        where = {"provider_api_url": base_url} if base_url else {"provider_id": name}
        return calc_price(usage, ref, **where, genai_request_timestamp=when, price_context=context)

    plain = call()
    if context and not any(variant.when == context for variant in plain.model.price_variants or ()):
        raise LookupError(model)
    return (
        float(plain.input_price * MILLION / tokens),
        float(call(cache_read_tokens=tokens).input_price * MILLION / tokens),
        float(call(cache_write_tokens=tokens).input_price * MILLION / tokens),
        float(plain.output_price * MILLION / tokens),
        float(call(output_reasoning_tokens=tokens).output_price * MILLION / tokens),
    )
