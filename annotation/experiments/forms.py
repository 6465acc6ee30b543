"""The form of a paired study."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.experiments.studies import MOST, list_candidates
from corpus.models import Collection


class StudyForm(forms.Form):
    """The form that starts a debate effect study: its pairs, people and overlap."""

    pairs = forms.IntegerField(
        min_value=1,
        max_value=MOST,
        initial=50,
        label=_("Pairs"),
        help_text=_("Drawn at random from the escalated pairs."),
    )
    overlap = forms.IntegerField(
        min_value=1,
        max_value=25,
        initial=3,
        label=_("People per group and pair"),
        help_text=_("Usually three: an odd number always gives a majority."),
    )
    people = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label=_("Participants"),
        help_text=_("They are assigned to two groups at random."),
    )
    gold = forms.BooleanField(
        required=False,
        initial=True,
        label=_("Only pairs with a reference grade, so that correct votes can be counted"),
    )

    def __init__(self, data: Any = None, *, collection: Collection) -> None:
        super().__init__(data)
        names = list_candidates(collection).order_by("user__username").values_list("pk", "user__username")
        self.fields["people"].choices = [(str(pk), name) for pk, name in names]  # type: ignore[attr-defined]
