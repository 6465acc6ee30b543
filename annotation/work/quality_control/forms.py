"""Forms of quality control: shares of checks, the qualification test, consent, gold, exclusion."""

from django import forms
from django.utils.translation import gettext_lazy as _


class SizeForm(forms.Form):
    """The size of a random sample, and its seed."""

    size = forms.IntegerField(min_value=1, max_value=10_000, label=_("Count"))
    seed = forms.IntegerField(min_value=0, max_value=2**31 - 1, initial=0, label=_("Seed"))


class ChecksForm(SizeForm):
    """The number of attention checks to make, and their form."""

    form = forms.ChoiceField(
        choices=[
            ("own", _("arguments about the same pair")),
            ("dream", _("as in DREAM: relevant pairs with arguments about something else")),
        ],
        initial="own",
        label=_("Form"),
    )


class GoldForm(SizeForm):
    """The size of a gold sample, and its share for a second review."""

    spot = forms.FloatField(
        min_value=0,
        max_value=1,
        initial=0.2,
        label=_("Share for second review"),
        help_text=_("A random share of pairs is reviewed by an adjudicator or admin who did not grade them."),
    )


class ConsentForm(forms.Form):
    """The consent text for annotators."""

    text = forms.CharField(
        max_length=20_000, label=_("Consent text for annotators"), widget=forms.Textarea(attrs={"rows": 14})
    )


class ExplanationsForm(forms.Form):
    """A CSV file of explanations of gold pairs."""

    file = forms.FileField(
        label=_("Explanations (CSV)"),
        help_text=_(
            "Columns query_id, doc_id and explanation; grade and written_by may be there. An explanation in the file "
            "replaces the one that newcomers read; an empty one removes what an earlier file brought."
        ),
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv"}),
    )


class NoteForm(forms.Form):
    """The reason of an exclusion, and the time from which on judgments are excluded."""

    note = forms.CharField(max_length=1000, required=False)
    since = forms.DateTimeField(required=False)
