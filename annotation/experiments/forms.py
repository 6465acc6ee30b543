"""Forms of the arms: their weights, and a paired study."""

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.experiments.studies import MOST
from annotation.models import Membership
from corpus.collections.arms import ARMS, HIGHEST, weights_of
from corpus.models import Collection


def _weight(label: Any, help_text: Any) -> forms.IntegerField:
    return forms.IntegerField(min_value=0, max_value=HIGHEST, label=label, help_text=help_text)


class ArmsForm(forms.Form):
    """How often each arm comes."""

    shown = _weight(_("Debate shown"), _("The debate stands beside the text from the start."))
    hidden = _weight(_("Debate hidden"), _("Query and document alone."))
    reveal = _weight(
        _("First vote, then the debate"), _("A vote on query and document alone, then the debate, then the final vote.")
    )

    NAMES: ClassVar = {"shown": shown.label, "hidden": hidden.label, "reveal": reveal.label}

    @classmethod
    def of(cls, collection: Collection) -> "ArmsForm":
        """Filled with what holds."""
        return cls(initial={arm: collection.arms.get(arm, 0) for arm in ARMS})

    def clean(self) -> dict[str, Any]:
        """At least one arm has a weight."""
        found = {arm: self.cleaned_data.get(arm) for arm in ARMS}
        if None not in found.values():
            try:
                weights_of(found)
            except ValueError:
                raise forms.ValidationError(_("Give at least one arm a weight above 0.")) from None
        return self.cleaned_data

    @property
    def arms(self) -> dict[str, int]:
        """As the collection keeps them."""
        return {arm: self.cleaned_data[arm] for arm in ARMS}


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
        members = Membership.objects.filter(collection=collection, is_active=True, user__is_active=True, paused_at=None)
        names = members.order_by("user__username").values_list("pk", "user__username")
        self.fields["people"].choices = [(str(pk), name) for pk, name in names]  # type: ignore[attr-defined]
