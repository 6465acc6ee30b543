"""Forms of the page of models: the judges file, one model, and the debaters and voters of a collection."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, QueryDict
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from actions.options import ActionForm
from actions.pages import form_of
from annotation.home.judge_setup.loading import FILE, LONGEST
from corpus.errors import BadInput
from judges.models import JudgeVersion, Panel
from judges.panels.offline_panel import OFFLINE_DEBATE, judges_that_vote
from judges.presets import PRESETS
from judges.stored_keys import can_store

# Presets by title, without the built-in offline judges.
PROVIDERS = sorted(
    (preset for preset in PRESETS.values() if preset.wire != "offline"),
    key=lambda preset: preset.title.lower(),
)


MAIN = ("provider", "model", "base_url")  # Fields that are not folded away.


def model_form(service: Callable[..., Any], request: HttpRequest | None = None, **options: Any) -> ActionForm:
    """Return the form of a model that is added or edited; without the key where the site stores none."""
    # With the name of the variable that contains the API key.
    providers = [
        (preset.name, f"{preset.title} ({preset.key_env})" if preset.key_env else preset.title) for preset in PROVIDERS
    ]
    form = form_of(service, request, choices={"provider": providers}, **options)
    if not can_store():
        del form.fields["key"]
        variable = form.fields["api_key_env"]
        way = _("To enter keys here instead, start the site with QUORUM_STORED_KEYS_SECRET.")
        variable.help_text = format_lazy("{} {}", variable.help_text, way)
    for name, classes in {"more": "mono", "api_key_env": "mono"}.items():
        form.fields[name].widget.attrs |= {"class": classes, "spellcheck": "false"}
    form.fields["provider"].widget.attrs["lang"] = "en"  # Names of providers are the same in every language.
    return form


class JudgesFileForm(forms.Form):
    """The text of the judges file, or an upload in its place."""

    text = forms.CharField(
        label=_("Judges file"),
        required=False,
        strip=False,
        max_length=LONGEST,
        widget=forms.Textarea(attrs={"rows": 14, "class": "mono", "spellcheck": "false", "wrap": "off"}),
    )
    file = forms.FileField(
        label=_("Upload a file"),
        required=False,
        help_text=_("Replaces the text above."),
        widget=forms.FileInput(attrs={"accept": ".toml,text/plain"}),
    )

    def with_text(self, text: str) -> "JudgesFileForm":
        """Return the same form with another text, in which an error can then be shown."""
        # Without the upload, whose text is now in the form to be corrected.
        form = JudgesFileForm({**dict(self.data.items()), "text": text})
        form.full_clean()
        return form

    def file_text(self) -> tuple[str, str]:
        """Return the uploaded text, else the typed one, and its file name. Raises BadInput."""
        upload: UploadedFile[bytes] | None = self.cleaned_data.get("file")
        if upload is None:
            return self.cleaned_data["text"].replace("\r\n", "\n"), FILE
        name = str(upload.name)
        # In bytes: a character has at most four in UTF-8.
        if (upload.size or 0) > 4 * LONGEST:
            raise BadInput(_("%(name)s is too large for a judges file") % {"name": name})
        try:
            return upload.read().decode("utf-8-sig").replace("\r\n", "\n"), name
        except UnicodeDecodeError:
            raise BadInput(_("%(name)s is not UTF-8 text") % {"name": name}) from None


class MembersForm(forms.Form):
    """The form that chooses a collection's panel: who debates and who votes in new campaigns."""

    debate_for = forms.ChoiceField(label=_("Debater: relevant"), required=False)
    debate_against = forms.ChoiceField(label=_("Debater: not relevant"), required=False)
    judge = forms.MultipleChoiceField(
        label=_("Panel"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("1, 3, 5, 7 or 9 judges: an even number could tie."),
        error_messages={"required": _("Choose at least one judge.")},
    )

    def __init__(self, data: QueryDict | None = None, *, panel: Panel) -> None:
        sides = dict(zip(("debate_for", "debate_against"), panel.debate, strict=False))
        super().__init__(data, initial={**sides, "judge": panel.ensemble})
        rows = JudgeVersion.objects.filter(is_current=True).order_by("name")
        # Judges that can write a turn of a debate.
        debaters = [
            row.name for row in rows if PRESETS[row.provider].asks and row.parameters.get("endpoint") != "decisions"
        ]
        debaters += [row.name for row in rows if row.name in OFFLINE_DEBATE]
        choices = [("", _("No debate")), *((name, name) for name in debaters)]
        self.fields["debate_for"].choices = self.fields["debate_against"].choices = choices  # type: ignore[attr-defined]
        voters = [name for name in judges_that_vote() if name not in OFFLINE_DEBATE]
        self.fields["judge"].choices = [(name, name) for name in voters]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        fields = super().clean() or {}
        if bool(fields.get("debate_for")) != bool(fields.get("debate_against")):
            self.add_error("debate_against", _("Choose two debaters, or none."))
        return fields

    @property
    def debate(self) -> list[str]:
        """Names of the two debaters; empty for no debate."""
        return [name for name in (self.cleaned_data["debate_for"], self.cleaned_data["debate_against"]) if name]
