"""Prices of a model as the judges file has them: their keys, which need each other, and `[[price]]` tables."""

from collections.abc import Mapping
from typing import Annotated

from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from corpus.importing.toml_files import Line, TomlTable, otherwise, problem
from judges.presets import PRESETS

HIGHEST = 1e6
PAID = [name for name in PRESETS if name != "offline"]
Price = Annotated[
    float,
    Field(ge=0, le=HIGHEST),
    otherwise(format_lazy(gettext_lazy("must be a number from 0 to {most}"), most=f"{HIGHEST:g}")),
]


def incomplete_price(prices: Mapping[str, object]) -> tuple[str, str] | None:
    """Return a key whose price needs another one, and the problem; None if the prices are complete."""
    for first, second in (("input_price", "output_price"), ("batch_input_price", "batch_output_price")):
        if (first in prices) != (second in prices):
            return first, _("needs %(second)s beside it, or leave both out") % {"second": second}
    for key in PRICES:
        if key in prices and "input_price" not in prices:
            return key, _("needs input_price and output_price beside it")
    if "batch_cached_input_price" in prices and "batch_input_price" not in prices:
        return "batch_cached_input_price", _("needs batch_input_price and batch_output_price beside it")
    return None


class PriceKeys(TomlTable):
    """The prices of a [[price]] or a [[judge]] table, in USD per million tokens."""

    input_price: Price | None = None
    output_price: Price | None = None
    cached_input_price: Price | None = None
    written_input_price: Price | None = None
    reasoning_price: Price | None = None
    batch_input_price: Price | None = None
    batch_output_price: Price | None = None
    batch_cached_input_price: Price | None = None

    @property
    def prices(self) -> dict[str, float]:
        return {key: getattr(self, key) for key in PRICES if getattr(self, key) is not None}

    @model_validator(mode="after")
    def _go_together(self) -> "PriceKeys":
        if incomplete := incomplete_price(self.prices):
            key, words = incomplete
            raise problem(words, key)
        return self


PRICES = tuple(PriceKeys.model_fields)


def _paid(provider: str) -> str:
    if provider not in PAID:
        words = _('"%(provider)s" is none that has prices; use one of %(known)s')
        raise problem(words % {"provider": provider, "known": ", ".join(PAID)})
    return provider


class ModelPrice(PriceKeys):
    """A [[price]] table of the file. A model that ends with * means every name that begins so."""

    provider: Annotated[Line, AfterValidator(_paid)]
    model: Annotated[
        Line,
        Field(max_length=200, pattern=r"^[^*]*\*?$"),
        otherwise(gettext_lazy("must have 200 characters at most, and * only at its end")),
    ]
    base_url: Annotated[Line, Field(max_length=500), otherwise(gettext_lazy("must have 500 characters at most"))] = ""
    input_price: Price
    output_price: Price

    @field_validator("base_url")
    @classmethod
    def _own(cls, base_url: str, info: ValidationInfo) -> str:
        # The provider's own address, in any spelling, is stored as "".
        address, provider = base_url.rstrip("/"), info.data.get("provider")
        return "" if provider and address == PRESETS[provider].base_url else address
