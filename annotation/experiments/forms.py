"""The form of a paired study."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.experiments.studies import MOST, list_candidates
from corpus.models import Collection


class StudyForm(forms.Form):
    """Whom and how much a paired study asks."""

    pairs = forms.IntegerField(
        min_value=1, max_value=MOST, initial=50, label=_("Pairs"), help_text=_("Drawn from the escalated pairs by lot.")
    )
    overlap = forms.IntegerField(
        min_value=1,
        max_value=25,
        initial=3,
        label=_("People of each group for a pair"),
        help_text=_("Three, as usual: an odd number has a majority."),
    )
    people = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label=_("Who takes part"),
        help_text=_("They are divided into two groups by lot."),
    )
    gold = forms.BooleanField(
        required=False,
        initial=True,
        label=_("Only pairs with a reference grade: without one, nobody knows who is right"),
    )

    def __init__(self, data: Any = None, *, collection: Collection) -> None:
        super().__init__(data)
        names = list_candidates(collection).order_by("user__username").values_list("pk", "user__username")
        self.fields["people"].choices = [(str(pk), name) for pk, name in names]  # type: ignore[attr-defined]
