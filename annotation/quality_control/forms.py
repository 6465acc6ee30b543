"""Forms of quality control: shares of checks, the qualification test, consent, gold, exclusion."""

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext_lazy as _

from corpus.models import Collection


class QualityControlForm(forms.ModelForm):  # type: ignore[type-arg]
    """The settings of quality control: how much of an annotator's work measures."""

    class Meta:
        model = Collection
        fields = ("checks", "repeats", "batch", "qualification", "pass_mark")
        labels = {
            "checks": _("Share of attention checks"),
            "repeats": _("Share of repeats"),
            "batch": _("Pairs per batch"),
            "qualification": _("Require a qualification test"),
            "pass_mark": _("Pass mark (percent)"),
        }
        help_texts = {
            "checks": _(
                "0 to 0.5. For example, 0.1 is one pair in ten of each batch, with at least one "
                "per batch. Takes effect once checks exist."
            ),
            "repeats": _(
                "0 to 0.5. The same pair appears again after at least 20 others. Repeats do not change labels."
            ),
            "batch": _(
                "5 to 1,000. A batch is accepted if all its checks are passed. If one is missed, "
                "its pairs return to the queue."
            ),
            "qualification": _(
                "Annotators below the pass mark receive no pairs. Adjudicators and admins take no test."
            ),
            "pass_mark": _("Practice items are not scored."),
        }

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        for name, low, high in (("checks", 0, 0.5), ("repeats", 0, 0.5), ("batch", 5, 1000), ("pass_mark", 0, 100)):
            field = self.fields[name]
            field.validators += [MinValueValidator(low), MaxValueValidator(high)]
            field.widget.attrs |= {"min": low, "max": high, "step": "0.01" if high < 1 else "1"}


class SizeForm(forms.Form):
    """The size of a draw, and its seed."""

    size = forms.IntegerField(min_value=1, max_value=10_000, label=_("Count"))
    seed = forms.IntegerField(min_value=0, max_value=2**31 - 1, initial=0, label=_("Seed"))


class ChecksForm(SizeForm):
    """The number of checks to make, and their form."""

    form = forms.ChoiceField(
        choices=[
            ("own", _("arguments about the same pair")),
            ("dream", _("as in DREAM: relevant pairs with arguments about something else")),
        ],
        initial="own",
        label=_("Form"),
    )


class GoldForm(SizeForm):
    """The gold sample to draw."""

    spot = forms.FloatField(
        min_value=0,
        max_value=1,
        initial=0.2,
        label=_("Share for second review"),
        help_text=_("A random share of pairs is reviewed by an adjudicator or admin who did not grade them."),
    )


class ConsentForm(forms.Form):
    """The text that annotators agree to."""

    text = forms.CharField(
        max_length=20_000, label=_("Consent text for annotators"), widget=forms.Textarea(attrs={"rows": 14})
    )


class NoteForm(forms.Form):
    """A reason, in a sentence, and from which moment on judgments are excluded."""

    note = forms.CharField(max_length=1000, required=False)
    since = forms.DateTimeField(required=False)
