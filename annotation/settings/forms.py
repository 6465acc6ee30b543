"""The form of a collection's texts."""

from typing import Any

from django import forms


class TextForm(forms.Form):
    """The instruction or the guidelines, and which version the writer started from."""

    text = forms.CharField(widget=forms.Textarea(attrs={"rows": 18}), max_length=50_000)
    base = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, label: str, required: bool = True, rows: int = 18, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["text"].label = label
        self.fields["text"].required = required
        self.fields["text"].widget.attrs["rows"] = rows
