"""Forms of care: shares of checks, the qualification test, consent, gold, setting aside."""

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
            "batch": _("Pairs in a batch"),
            "qualification": _("Annotators pass a test first"),
            "pass_mark": _("Pass mark (percent)"),
        }
        help_texts = {
            "checks": _(
                "0 to 0.5; 0.1 is one pair in ten of each batch, one at least. They come where checks were made."
            ),
            "repeats": _("0 to 0.5. The same pair once more, after 20 others at the least; it changes no label."),
            "batch": _(
                "5 to 1,000. A batch is accepted when all its checks are passed; its pairs go back when one is missed."
            ),
            "qualification": _("Below the pass mark nobody gets pairs. Adjudicators and admins take no test."),
            "pass_mark": _("Of the test; the practice before it counts for nothing."),
        }

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        for name, low, high in (("checks", 0, 0.5), ("repeats", 0, 0.5), ("batch", 5, 1000), ("pass_mark", 0, 100)):
            field = self.fields[name]
            field.validators += [MinValueValidator(low), MaxValueValidator(high)]
            field.widget.attrs |= {"min": low, "max": high, "step": "0.01" if high < 1 else "1"}


class SizeForm(forms.Form):
    """The size of a draw, and its seed."""

    size = forms.IntegerField(min_value=1, max_value=10_000, label=_("How many"))
    seed = forms.IntegerField(min_value=0, max_value=2**31 - 1, initial=0, label=_("Seed"))


class ChecksForm(SizeForm):
    """The number of checks to make, and their form."""

    form = forms.ChoiceField(
        choices=[
            ("own", _("arguments about the pair itself")),
            ("dream", _("as in DREAM: relevant pairs, arguments about something else")),
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
        label=_("Share for the senior"),
        help_text=_("A random share of the pairs is looked at by an adjudicator or admin who did not grade them."),
    )


class ConsentForm(forms.Form):
    """The text that annotators agree to."""

    text = forms.CharField(
        max_length=20_000, label=_("What annotators agree to"), widget=forms.Textarea(attrs={"rows": 14})
    )


class NoteForm(forms.Form):
    """A reason, in a sentence, and from which moment on judgments are excluded."""

    note = forms.CharField(max_length=1000, required=False)
    since = forms.DateTimeField(required=False)
