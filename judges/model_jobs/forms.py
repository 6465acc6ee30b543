"""Forms of jobs that ask models: what a job may spend, and the base of the forms that start one."""

from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corpus.models import Collection
from judges.model_jobs.options import LIMITS
from judges.retrieval.model_requests import judges_for

STOPS = gettext_lazy("The work stops at this limit. You can resume it later.")


class LimitsForm(forms.Form):
    """Form for the limits of what a job that asks models may spend in all."""

    budget = forms.FloatField(min_value=0.000001, required=False, label=gettext_lazy("Budget (USD)"))
    max_calls = forms.IntegerField(min_value=1, required=False, label=gettext_lazy("Call limit"))


class ModelJobForm(LimitsForm):
    """Base of the forms that start a job: the fields of its kind, then its limits."""

    roles: ClassVar[dict[str, str]] = {}  # Of fields that name judges: what these are asked.

    def __init__(self, *args: Any, collection: Collection, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.collection = collection
        self.order_fields([name for name in self.fields if name not in LIMITS])
        self.fields["budget"].help_text = STOPS
        for name, role in self.roles.items():
            self.offer(name, judges_for(role))

    def offer(self, name: str, values: Iterable[Any]) -> None:
        """Set what can be chosen in a field: values, or pairs of a value and its words."""
        pairs = [one if isinstance(one, tuple) else (one, one) for one in values]
        self.fields[name].choices = pairs  # type: ignore[attr-defined]

    def options(self) -> dict[str, Any]:
        """Return the options of the job. Raises BadInput."""
        return dict(self.cleaned_data)

    @property
    def lacks(self) -> str:
        """Say what has to be there before a job can be started; "" where nothing is lacking."""
        return ""

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The filled-in values by label, for the page on which the start is confirmed."""
        return [(str(one.label), _tell(one.field, value)) for one in self if (value := self.cleaned_data.get(one.name))]


def _tell(field: forms.Field, value: Any) -> str:
    if value is True:
        return _("yes")
    words = dict(getattr(field, "choices", ()))
    return ", ".join(str(words.get(one, one)) for one in (value if isinstance(value, list) else [value]))
