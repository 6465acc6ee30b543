"""The form of a new collection."""

from django import forms
from django.utils.translation import gettext_lazy as _

from corpus.models import Collection


class CollectionForm(forms.ModelForm):  # type: ignore[type-arg]
    """Fields of a new collection."""

    class Meta:
        model = Collection
        fields = ("name", "title", "instruction", "grades")
        widgets = {"instruction": forms.Textarea(attrs={"rows": 4})}
        labels = {
            "name": _("Name"),
            "title": _("Title"),
            "instruction": _("Instruction"),
            "grades": _("Highest grade"),
        }
        help_texts = {
            "name": _("Used in URLs and commands: lower-case letters, digits, - and _. Cannot be changed later."),
            "title": _("Shown at the top of each page."),
            "instruction": _(
                "In one or two sentences: what makes a document relevant, for people and judges. Leave blank to use a "
                "built-in rubric, which you can choose in the settings."
            ),
            "grades": _("1 for relevant / not relevant; 3 for grades from 0 to 3."),
        }
