"""The form of a new collection."""

from django import forms
from django.utils.translation import gettext_lazy

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
