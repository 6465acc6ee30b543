"""The names of a model's prices, in a judges file and on the page, and which of them need each other. Pure."""

from collections.abc import Mapping

# USD per million tokens.
PRICES = (
    "input_price",
    "output_price",
    "cached_input_price",
    "written_input_price",
    "reasoning_price",
    "batch_input_price",
    "batch_output_price",
    "batch_cached_input_price",
)
HIGHEST = 1e6


def incomplete_price(given: Mapping[str, object]) -> tuple[str, str] | None:
    """The key whose price lacks another one, and what is wrong; None where they hold together."""
    for first, second in (("input_price", "output_price"), ("batch_input_price", "batch_output_price")):
        if (first in given) != (second in given):
            return first, f"and {second} go together; give both or none"
    for key in PRICES:
        if key in given and "input_price" not in given:
            return key, "needs input_price and output_price beside it"
    if "batch_cached_input_price" in given and "batch_input_price" not in given:
        return "batch_cached_input_price", "needs batch_input_price and batch_output_price beside it"
    return None
