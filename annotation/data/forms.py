"""Forms of the admin pages and of accounts. What they accept is checked here; what it does is in the services."""

from typing import Any

from django import forms
from django.contrib.auth.forms import BaseUserCreationForm
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Invitation, Membership, Role, User
from corpus.models import Collection


class SignUpForm(BaseUserCreationForm):  # type: ignore[type-arg]
    """User name and password of somebody who was invited."""

    class Meta:
        model = User
        fields = ("username",)

    def clean_username(self) -> str:
        """Free in any case: Alice and alice would sign in as one another."""
        username = str(self.cleaned_data["username"])
        if User.objects.filter(username__iexact=username).exists():
            raise forms.ValidationError(_("This user name is taken. Choose another, or sign in if it is yours."))
        return username


class CollectionForm(forms.ModelForm):  # type: ignore[type-arg]
    """A new collection."""

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
                "Stands in addresses and commands: lower-case letters, digits, - and _. It stays for ever."
            ),
            "title": gettext_lazy("What people read at the top of each page."),
            "instruction": gettext_lazy(
                "In a sentence or two: what makes a document relevant here, for people and judges alike. Empty: a "
                "built-in rubric holds; the settings say which."
            ),
            "grades": gettext_lazy("1 for relevant / not relevant; 3 for grades from 0 to 3."),
        }


class SettingsForm(forms.ModelForm):  # type: ignore[type-arg]
    """How people's work is handed out. Open items take the new values where that loses nothing."""

    class Meta:
        model = Collection
        fields = ("title", "rubric", "overlap", "order", "rounds", "lease_minutes", "min_judgment_ms", "relevant_from")
        labels = {
            "title": gettext_lazy("Title"),
            "rubric": gettext_lazy("Rubric"),
            "order": gettext_lazy("Order"),
            "rounds": gettext_lazy("What annotators read of a debate"),
            "overlap": gettext_lazy("People for each pair"),
            "lease_minutes": gettext_lazy("Lease (minutes)"),
            "min_judgment_ms": gettext_lazy("Shortest judgment (milliseconds)"),
            "relevant_from": gettext_lazy("Relevant from grade"),
        }
        help_texts = {
            "title": gettext_lazy("What people read at the top of each page."),
            "rubric": gettext_lazy(
                "What relevant means where no instruction says it. Another rubric is a new version of the guidelines "
                "and of the prompts; the next campaign asks anew."
            ),
            "overlap": gettext_lazy(
                "Usually 1 or 3. With more than one, the majority settles and a tie goes to an adjudicator."
            ),
            "order": gettext_lazy("What an annotator gets first."),
            "rounds": gettext_lazy("Kept with each judgment. Adjudicators read all rounds."),
            "lease_minutes": gettext_lazy("A pair that is not judged within this time goes back to the queue."),
            "min_judgment_ms": gettext_lazy(
                "A grade that comes sooner after its pair arrived is a second press on the pair before: it is refused. "
                "0: never."
            ),
            "relevant_from": gettext_lazy("Grades from here up count as relevant."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("rounds", "rubric", "min_judgment_ms"):
            self.fields[name].required = False  # a program that does not know it leaves it as it is
        self.fields["rubric"].widget.attrs["form"] = "settings"  # it stands beside the definition, outside the form

    def clean_rounds(self) -> str:
        """As it is where nothing was said."""
        return str(self.cleaned_data["rounds"] or self.instance.rounds)

    def clean_min_judgment_ms(self) -> int:
        """At most ten seconds; as it is where nothing was said."""
        given = self.cleaned_data["min_judgment_ms"]
        least = int(self.instance.min_judgment_ms if given is None else given)
        if least > 10_000:
            raise forms.ValidationError(_("Choose 0 to 10,000 milliseconds."))
        return least

    def clean_rubric(self) -> str:
        """As it is where nothing was said."""
        return str(self.cleaned_data["rubric"] or self.instance.rubric)

    def clean_relevant_from(self) -> int:
        """On the scale of the collection."""
        grade = int(self.cleaned_data["relevant_from"])
        if not 1 <= grade <= self.instance.grades:
            raise forms.ValidationError(
                _("The scale goes from 0 to %(grades)s: choose 1 to %(grades)s.") % {"grades": self.instance.grades}
            )
        return grade

    def clean_overlap(self) -> int:
        """What the database holds to, said before it refuses."""
        overlap = int(self.cleaned_data["overlap"])
        if not 1 <= overlap <= 25:
            raise forms.ValidationError(_("Choose 1 to 25 people."))
        return overlap

    def clean_lease_minutes(self) -> int:
        """At least a minute, at most a day."""
        minutes = int(self.cleaned_data["lease_minutes"])
        if not 1 <= minutes <= 1440:
            raise forms.ValidationError(_("Choose 1 to 1440 minutes."))
        return minutes


class TextForm(forms.Form):
    """The instruction or the guidelines, and which version the writer started from."""

    text = forms.CharField(widget=forms.Textarea(attrs={"rows": 18}), max_length=50_000)
    base = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, label: str, required: bool = True, rows: int = 18, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["text"].label = label
        self.fields["text"].required = required
        self.fields["text"].widget.attrs["rows"] = rows


class InvitationForm(forms.ModelForm):  # type: ignore[type-arg]
    """For whom a link is, and what they shall be."""

    role = forms.TypedChoiceField(
        label=gettext_lazy("Role"), choices=Role.choices, coerce=lambda value: Role(int(value)), initial=Role.ANNOTATOR
    )
    days = forms.IntegerField(min_value=1, max_value=90, initial=14, label=gettext_lazy("Valid for (days)"))

    class Meta:
        model = Invitation
        fields = ("note",)
        labels = {"note": gettext_lazy("For whom")}
        help_texts = {"note": gettext_lazy("A note to yourself. It is not part of the link.")}


class RoleForm(forms.Form):
    """Another role for a member."""

    role = forms.TypedChoiceField(
        label=gettext_lazy("Role"), choices=Role.choices, coerce=lambda value: Role(int(value))
    )

    @classmethod
    def of(cls, membership: Membership) -> "RoleForm":
        """Filled with the present role."""
        return cls(initial={"role": membership.role})


class ImportForm(forms.Form):
    """Files in the formats of `import_collection`, recognised by their content; gzip is fine."""

    FILES = ("corpus", "queries", "pairs", "qrels")

    corpus = forms.FileField(
        label=gettext_lazy("Documents"), help_text=gettext_lazy('JSON lines {"_id", "title", "text"}, or TREC.')
    )
    queries = forms.FileField(
        label=gettext_lazy("Queries"), help_text=gettext_lazy('JSON lines {"_id", "text", "answers"}, or TREC topics.')
    )
    pairs = forms.FileField(
        required=False,
        label=gettext_lazy("Pairs to judge"),
        help_text=gettext_lazy('JSON lines {"query_id", "doc_id"}. Optional.'),
    )
    qrels = forms.FileField(
        required=False,
        label=gettext_lazy("Reference grades"),
        help_text=gettext_lazy("Qrels of BEIR or TREC. They measure and never settle."),
    )
    bm25 = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=1000,
        label=gettext_lazy("BM25 candidates for each query"),
        help_text=gettext_lazy("Adds the best documents of each query as pairs, for example 10."),
    )
    keep_empty = forms.BooleanField(required=False, label=gettext_lazy("Keep documents without text"))
    update = forms.BooleanField(
        required=False, label=gettext_lazy("A changed text of a known id becomes a new version")
    )
