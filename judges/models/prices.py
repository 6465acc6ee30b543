"""The price table: a team's own prices of models."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from corpus.models import append_only
from judges.models import Priced


class PriceRow(Priced):
    """A model's price from a judges file or an admin. Append-only: a model's newest row applies.

    A row without an input price removes the price. Costs that were recorded earlier keep the price of their time.
    """

    class Source(models.TextChoices):
        FILE = "file", gettext_lazy("judges file")
        PAGE = "page", gettext_lazy("entered on the Prices page")

    provider = models.CharField(max_length=50)
    base_url = models.CharField(max_length=500, blank=True, help_text="Empty: at any address of the provider.")
    model = models.CharField(max_length=200, help_text="Its name; with * at the end, every name that begins so.")
    source = models.CharField(max_length=4, choices=Source)
    note = models.CharField(max_length=200, blank=True, help_text="Where the price is from.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["provider", "model", "base_url", "-id"], name="price_row_newest")]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.provider} {self.model}: {self.input_price}"
