"""The `[[price]]` tables of a judges file: what a provider's model costs, whichever judge asks it."""

from dataclasses import dataclass, field
from typing import Any

from judges.costs.price_keys import HIGHEST, PRICES, misfit
from judges.panels.file_lines import KeyLines
from judges.presets import PRESETS

TEXTS = ("provider", "model", "base_url")


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """One [[price]]: prices in USD per million tokens. A model that ends with * means every name that begins so."""

    provider: str
    model: str
    base_url: str = ""
    prices: dict[str, float] = field(default_factory=dict)


def read_prices(lines: KeyLines, tables: object) -> list[PriceEntry]:
    """Check the tables. Raises BadInput with line, key and what to do."""
    if not isinstance(tables, list) or not all(isinstance(entry, dict) for entry in tables):
        lines.fail("", "price", "is no list of tables: write each price as [[price]]")
    found: list[PriceEntry] = []
    for number, entry in enumerate(tables, 1):
        place = f"price {number}"
        one = _read_entry(lines, place, entry)
        if any((one.provider, one.model, one.base_url) == (old.provider, old.model, old.base_url) for old in found):
            lines.fail(place, "model", f'"{one.model}" has a price in an earlier table; give one')
        found.append(one)
    return found


def _read_entry(lines: KeyLines, place: str, entry: dict[str, Any]) -> PriceEntry:
    lines.known(place, entry, {*TEXTS, *PRICES})
    for key in ("provider", "model", "input_price", "output_price"):
        if key not in entry:
            lines.fail(place, key, "is missing")
    for key, value in entry.items():
        if key in TEXTS:
            lines.text(place, key, value)
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= HIGHEST:
            lines.fail(place, key, f"must be a number from 0 to {HIGHEST:g}")
    if problem := misfit(entry):
        lines.fail(place, *problem)
    provider, model, base_url = entry["provider"], entry["model"], entry.get("base_url", "").rstrip("/")
    paid = [name for name in PRESETS if name != "offline"]
    if provider not in paid:
        lines.fail(place, "provider", f'"{provider}" is none that has prices; use one of {", ".join(paid)}')
    if len(model) > 200 or "*" in model[:-1]:
        lines.fail(place, "model", "must have 200 characters at most, and * only at its end")
    if len(base_url) > 500:
        lines.fail(place, "base_url", "must have 500 characters at most")
    prices = {key: float(entry[key]) for key in PRICES if key in entry}
    return PriceEntry(provider, model, "" if base_url == PRESETS[provider].base_url else base_url, prices)
