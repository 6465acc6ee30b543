"""The form with which people create a collection."""

from django import forms
from django.utils.translation import gettext_lazy as _

from corpus.models import Collection


class CollectionForm(forms.ModelForm):  # type: ignore[type-arg]  # ModelForm is generic only in Django's stubs.
    """Form of a new collection. Settings of the collection that are not fields of the form keep their defaults."""

    class Meta:
        model = Collection
        fields = ("name", "title", "instruction", "grades")  # `grades` is the highest grade; the lowest is 0.
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
            # The rubric that a blank instruction selects is a setting of the collection, not a field of this form.
            "instruction": _(
                "What makes a document relevant, in one or two sentences; people and judges both read it. "
                "Leave blank to use a built-in rubric, which you can choose in the settings."
            ),
            "grades": _("1 to distinguish only relevant from not relevant, 3 for grades from 0 to 3."),
        }
