"""Prices of the package genai-prices, the list that comes with Quorum. A price that it lacks stays unknown. Pure."""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from importlib.metadata import version

# A provider's name in the list. Other providers are looked up by their address alone: your own server,
# or a gateway, has its own prices, whatever the model's name.
LISTED_AS = {
    **{name: name for name in ("openai", "azure", "anthropic", "google", "deepseek", "mistral", "groq", "together")},
    **{name: name for name in ("fireworks", "openrouter")},
    "openai-responses": "openai",
    "bedrock": "aws",
    "vertex": "google",
    "vertex-anthropic": "google",
    "xai": "x-ai",
}

# Input tokens for which the list is asked: some prices rise with the length of the prompt.
SAMPLES = (1_000, 30_000)
# Service tiers at the usual price. Any other tier has a price only if the list has one for it.
USUAL_TIERS = {"", "auto", "default", "standard", "standard_only", "on_demand"}
TIER_NAMES = {"fast": "priority"}  # OpenAI's newer word for a tier, and the list's.
MILLION = 1_000_000
# USD per million tokens: of input, input from the provider's cache and written to it, of output, and of reasoning.
Rates = tuple[float, float, float, float, float]


def list_version() -> str:
    """Return the name and version of the price list, whose version shows how old the prices are."""
    return f"genai-prices {version('genai-prices')}"


def listed_rates(provider: str, base_url: str, model: str, *, tier: str = "", batch: bool = False) -> Rates | None:
    """Return the list's prices today; None if it has none.

    If they vary by the hour or the prompt's length, return the highest, so that upper bounds hold.
    `batch`: return the prices of the batch endpoint, which has no tiers; None if they are not listed.
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
    input, cached, cache_write, output, reasoning = (max(column) for column in zip(*rates, strict=True))
    # The list also has 0 for a price that it does not know.
    return (input, cached, cache_write, output, reasoning) if input and output else None


def _look_up_rates(name: str, base_url: str, model: str, tokens: int, when: datetime, context: dict[str, str]) -> Rates:
    """Look up a model by its address if it has one, otherwise by its provider's name.

    Raises LookupError for an unknown model or address, and if the list has no prices for the context.
    """
    # The list is a large module, which a panel of offline judges does not need.
    from genai_prices import calc_price
    from genai_prices.types import PriceCalculation, Usage

    def calculate(**special_tokens: int) -> PriceCalculation:
        usage = Usage(input_tokens=tokens, output_tokens=tokens, **special_tokens)
        ref = model.removeprefix("models/")
        provider = {"provider_api_url": base_url} if base_url else {"provider_id": name}
        return calc_price(usage, ref, **provider, genai_request_timestamp=when, price_context=context)

    usual = calculate()
    if context and not any(variant.when == context for variant in usual.model.price_variants or ()):
        raise LookupError(model)
    return (
        float(usual.input_price * MILLION / tokens),
        float(calculate(cache_read_tokens=tokens).input_price * MILLION / tokens),
        float(calculate(cache_write_tokens=tokens).input_price * MILLION / tokens),
        float(usual.output_price * MILLION / tokens),
        float(calculate(output_reasoning_tokens=tokens).output_price * MILLION / tokens),
    )
