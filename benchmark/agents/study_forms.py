"""Forms of the study of reference answers."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from benchmark.agents.sampling import SEED
from benchmark.agents.study import LONGEST, QUERIES, Grades

SCALE = [(value, str(value)) for value in range(1, 6)]


class ReferenceStudyForm(forms.Form):
    """The form that starts a study: the number of queries and the seed of their draw."""

    queries = forms.IntegerField(label=gettext_lazy("Queries"), min_value=1, initial=QUERIES)
    seed = forms.IntegerField(label=gettext_lazy("Seed"), min_value=0, max_value=2**31 - 1, initial=SEED)

    def __init__(self, *args: Any, candidates: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["queries"].widget.attrs["max"] = candidates
        self.fields["queries"].initial = min(QUERIES, candidates)


class WritingForm(forms.Form):
    """The form for a person's own reference answer."""

    answer = forms.CharField(
        label=gettext_lazy("Your answer"),
        max_length=LONGEST,
        widget=forms.Textarea(attrs={"rows": 14}),
        help_text=gettext_lazy("Cover every aspect. Cite a passage by its id in square brackets, such as [d12]."),
    )


class RatingForm(forms.Form):
    """The form for completeness and quality of both answers, in the order shown."""

    query = forms.IntegerField(widget=forms.HiddenInput, min_value=1)
    first_completeness = forms.TypedChoiceField(coerce=int, choices=SCALE, label=gettext_lazy("Completeness"))
    first_quality = forms.TypedChoiceField(coerce=int, choices=SCALE, label=gettext_lazy("Quality"))
    second_completeness = forms.TypedChoiceField(coerce=int, choices=SCALE, label=gettext_lazy("Completeness"))
    second_quality = forms.TypedChoiceField(coerce=int, choices=SCALE, label=gettext_lazy("Quality"))

    @property
    def grades(self) -> tuple[Grades, Grades]:
        """The grades of both answers, in the order shown."""
        first, second = (
            (self.cleaned_data[f"{position}_completeness"], self.cleaned_data[f"{position}_quality"])
            for position in ("first", "second")
        )
        return first, second
