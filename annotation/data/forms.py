"""The form with which people create a collection."""

import itertools
from typing import Any

from django import forms
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

from corpus.models import Collection


class CollectionForm(forms.ModelForm):  # type: ignore[type-arg]  # ModelForm is generic only in Django's stubs.
    """Form of a new collection. Settings of the collection that are not fields of the form keep their defaults."""

    class Meta:
        model = Collection
        fields = ("title", "name", "instruction", "grades")  # `grades` is the highest grade; the lowest is 0.
        widgets = {"instruction": forms.Textarea(attrs={"rows": 4})}
        labels = {
            "name": _("Name"),
            "title": _("Title"),
            "instruction": _("Instruction"),
            "grades": _("Highest grade"),
        }
        help_texts = {
            "name": _(
                "Used in URLs and commands: lower-case letters, digits, - and _. Cannot be changed later. "
                "Leave blank to make it from the title."
            ),
            "title": _("Shown at the top of each page."),
            # The rubric that a blank instruction selects is a setting of the collection, not a field of this form.
            "instruction": _(
                "What makes a document relevant, in one or two sentences; people and judges both read it. "
                "Leave blank to use a built-in rubric, which you can choose in the settings."
            ),
            "grades": _("1 to distinguish only relevant from not relevant, 3 for grades from 0 to 3."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].required = False
        self.fields["title"].widget.attrs["autofocus"] = True

    def clean(self) -> dict[str, Any]:
        """Make the name from the title where it is blank."""
        fields = super().clean() or {}
        if "name" in fields and not fields["name"]:
            if not fields.get("title"):
                self.add_error("title", _("Enter a title."))
                return fields
            # Letters without a form in ASCII are dropped, of a Chinese title all of them.
            base = slugify(fields["title"])[:50].strip("-_") or "collection"
            taken = set(Collection.objects.filter(name__startswith=base).values_list("name", flat=True))
            numbered = (f"{base}-{number}" for number in itertools.count(2))
            fields["name"] = next(name for name in itertools.chain([base], numbered) if name not in taken)
        return fields
