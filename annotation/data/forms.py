"""Forms of a collection: its settings, texts, costs, experiment arms and files. What they do is in the services."""

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corpus.collections.arm_allocation import ARMS, HIGHEST, weights_of
from corpus.collections.configure import HIGHEST_BUDGET, HIGHEST_RATE, HIGHEST_TARGET, LONGEST_LEASE, scale_problem
from corpus.models import Collection


class CollectionForm(forms.ModelForm):  # type: ignore[type-arg]
    """Fields of a new collection."""

    class Meta:
        model = Collection
        fields = ("name", "title", "instruction", "grades")
        widgets = {"instruction": forms.Textarea(attrs={"rows": 4})}
        labels = {
            "name": gettext_lazy("Name"),
            "title": gettext_lazy("Title"),
            "instruction": gettext_lazy("Instruction"),
            "grades": gettext_lazy("Highest grade"),
        }
        help_texts = {
            "name": gettext_lazy(
                "Used in URLs and commands: lower-case letters, digits, - and _. Cannot be changed later."
            ),
            "title": gettext_lazy("Shown at the top of each page."),
            "instruction": gettext_lazy(
                "In one or two sentences: what makes a document relevant, for people and judges. Leave blank to use a "
                "built-in rubric, which you can choose in the settings."
            ),
            "grades": gettext_lazy("1 for relevant / not relevant; 3 for grades from 0 to 3."),
        }


OPTIONAL = ("rounds", "rubric", "min_judgment_ms", "daily_target", "markdown", "long_documents")
LIMITS: dict[str, tuple[int, int, Any]] = {
    "min_judgment_ms": (0, 10_000, gettext_lazy("Choose 0 to 10,000 milliseconds.")),
    "daily_target": (0, HIGHEST_TARGET, gettext_lazy("Choose 0 to 10,000 pairs.")),
    "overlap": (1, 25, gettext_lazy("Choose 1 to 25 people.")),
    "lease_minutes": (1, LONGEST_LEASE, gettext_lazy("Choose 1 to 1440 minutes.")),
}


class SettingsForm(forms.ModelForm):  # type: ignore[type-arg]
    """Settings of how people's work is handed out. Open items take new values where that loses nothing."""

    markdown = forms.NullBooleanField(
        label=gettext_lazy("Document format"),
        help_text=gettext_lazy("Markdown is formatted on the judging page. Quotes and marks keep their positions."),
        widget=forms.Select(choices=[("False", gettext_lazy("Plain text")), ("True", gettext_lazy("Markdown"))]),
    )

    class Meta:
        model = Collection
        fields = (
            "title", "rubric", "overlap", "order", "rounds", "lease_minutes", "min_judgment_ms", "relevant_from",
            "daily_target", "markdown", "long_documents",
        )  # fmt: skip
        labels = {
            "title": gettext_lazy("Title"),
            "rubric": gettext_lazy("Rubric"),
            "order": gettext_lazy("Order"),
            "rounds": gettext_lazy("Debate rounds shown"),
            "overlap": gettext_lazy("People per pair"),
            "lease_minutes": gettext_lazy("Time limit per pair (minutes)"),
            "daily_target": gettext_lazy("Daily target (pairs)"),
            "long_documents": gettext_lazy("Documents above 24,000 characters"),
            "min_judgment_ms": gettext_lazy("Minimum judgment time (milliseconds)"),
            "relevant_from": gettext_lazy("Lowest grade that counts as relevant"),
        }
        help_texts = {
            "title": gettext_lazy("Shown at the top of each page."),
            "rubric": gettext_lazy(
                "Relevance definition used when there is no instruction. Changing it creates new versions of the "
                "guidelines and prompts; the next campaign calls the models again."
            ),
            "overlap": gettext_lazy(
                "Usually 1 or 3. With more than one, the majority decides and ties go to an adjudicator."
            ),
            "order": gettext_lazy("Which pairs annotators get first."),
            "rounds": gettext_lazy("Recorded with each judgment. Adjudicators always see all rounds."),
            "lease_minutes": gettext_lazy("After this time, an unjudged pair returns to the queue."),
            "min_judgment_ms": gettext_lazy(
                "Grades given sooner after a pair appears are refused as accidental double presses. 0 = never."
            ),
            "daily_target": gettext_lazy("Pairs each annotator is asked to judge per day. 0 = no target."),
            "long_documents": gettext_lazy(
                "Read whole, a document costs what it holds, and a model whose context is too short refuses it."
            ),
            "relevant_from": gettext_lazy("This grade and higher grades count as relevant."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in OPTIONAL:
            self.fields[name].required = False  # a program that does not know it leaves it as it is
        self.fields["rubric"].widget.attrs["form"] = "settings"  # it stands beside the definition, outside the form

    def clean(self) -> dict[str, Any]:
        """Keep the present value of each field left empty, and refuse numbers that the database would refuse."""
        found: dict[str, Any] = super().clean() or self.cleaned_data
        for name in OPTIONAL:
            if found.get(name) in (None, ""):
                found[name] = getattr(self.instance, name)
        for name, (low, high, words) in LIMITS.items():
            if name in found and not low <= found[name] <= high:
                self.add_error(name, words)
        scale = {name: found[name] for name in ("relevant_from",) if name in found}
        if refused := scale_problem(self.instance, scale):
            self.add_error(*refused)
        return found


class TextForm(forms.Form):
    """The instruction or the guidelines, and which version the writer started from."""

    text = forms.CharField(widget=forms.Textarea(attrs={"rows": 18}), max_length=50_000)
    base = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, label: str, required: bool = True, rows: int = 18, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["text"].label = label
        self.fields["text"].required = required
        self.fields["text"].widget.attrs["rows"] = rows


NAMES = ("hourly_rate", "budget", "daily_budget")
RATE: dict[str, Any] = {"required": False, "min_value": 0, "max_value": HIGHEST_RATE}
# As the command has them.
BUDGET: dict[str, Any] = {"required": False, "min_value": 0, "max_value": HIGHEST_BUDGET}


class CostSettingsForm(forms.Form):
    """Costs and budgets of a collection. An empty field removes the value."""

    hourly_rate = forms.FloatField(
        **RATE,
        label=gettext_lazy("Annotator hourly rate (USD)"),
        help_text=gettext_lazy("Leave blank if unknown."),
    )
    budget = forms.FloatField(
        **BUDGET,
        label=gettext_lazy("Collection budget (USD)"),
        help_text=gettext_lazy("Maximum cost of all campaigns together. Leave blank for no limit."),
    )
    daily_budget = forms.FloatField(
        **BUDGET,
        label=gettext_lazy("Daily budget (USD)"),
        help_text=gettext_lazy("Maximum cost per day (days start at midnight UTC). Leave blank for no limit."),
    )

    @classmethod
    def of(cls, collection: Collection) -> "CostSettingsForm":
        return cls(initial={name: getattr(collection, name) for name in NAMES})


def _weight_field(label: Any, help_text: Any) -> forms.IntegerField:
    return forms.IntegerField(min_value=0, max_value=HIGHEST, label=label, help_text=help_text)


class ArmWeightsForm(forms.Form):
    """Weights of the experiment arms: how often each is drawn."""

    shown = _weight_field(gettext_lazy("Debate shown"), gettext_lazy("The debate is shown from the start."))
    hidden = _weight_field(gettext_lazy("Debate hidden"), gettext_lazy("Only query and document are shown."))
    reveal = _weight_field(
        gettext_lazy("First judgment, then the debate"),
        gettext_lazy("A first judgment from query and document, then the debate, then the final judgment."),
    )

    NAMES: ClassVar = {"shown": shown.label, "hidden": hidden.label, "reveal": reveal.label}

    @classmethod
    def of(cls, collection: Collection) -> "ArmWeightsForm":
        return cls(initial={arm: collection.arms.get(arm, 0) for arm in ARMS})

    def clean(self) -> dict[str, Any]:
        """Require that at least one arm has a weight above 0."""
        found = {arm: self.cleaned_data.get(arm) for arm in ARMS}
        if None not in found.values():
            try:
                weights_of(found)
            except ValueError:
                raise forms.ValidationError(_("Give at least one arm a weight above 0.")) from None
        return self.cleaned_data

    @property
    def weights(self) -> dict[str, int]:
        """Return the arms' weights as the collection stores them."""
        return {arm: self.cleaned_data[arm] for arm in ARMS}
