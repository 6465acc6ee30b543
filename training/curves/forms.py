"""The form that starts a learning curve."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corpus.errors import BadInput
from training.jobs.forms import TrainForm
from training.models import LearningCurve

MOST_POINTS = 20


def parse_points(text: str) -> list[int]:
    """Return the numbers between commas, as written. Raises BadInput for what is no whole number, or too many."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if wrong := next((part for part in parts if not (part.isascii() and part.isdecimal() and len(part) < 10)), None):
        raise BadInput(_("%(part)s is not a whole number: write points such as 500,1000,2000") % {"part": repr(wrong)})
    if len(parts) > MOST_POINTS:
        raise BadInput(_("%(count)s points are too many: a curve has %(most)s at most") % {
            "count": len(parts), "most": MOST_POINTS,
        })  # fmt: skip
    return [int(part) for part in parts]


class CurveForm(TrainForm):
    """The form of a training, with the points of the curve and the order of its queries."""

    points = forms.CharField(
        max_length=200,
        label=gettext_lazy("Points (numbers of labels)"),
        help_text=gettext_lazy(
            "Numbers with commas between them, such as 500,1000,2000. Each is a training of its own."
        ),
    )
    order = forms.ChoiceField(
        choices=LearningCurve.Order.choices,
        initial=LearningCurve.Order.TIME,
        label=gettext_lazy("Order of the queries"),
        help_text=gettext_lazy("Each point takes the first queries of this order, always whole queries."),
    )

    def clean_points(self) -> list[int]:
        """Return the points as numbers."""
        try:
            return parse_points(self.cleaned_data["points"])
        except BadInput as error:
            raise forms.ValidationError(str(error)) from None

    def curve_options(self) -> dict[str, Any]:
        """Return what `services.begin_curve` takes of this form."""
        names = ("recipe", "base", "points", "order", "device")
        return {name: self.cleaned_data[name] for name in names} | {"given": self.options()}
