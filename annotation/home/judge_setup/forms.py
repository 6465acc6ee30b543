"""Forms of the page of models: the judges file, a model to append, and the debaters and voters of a collection."""

import re
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from annotation.home.judge_setup.loading import FILE, LONGEST, OWN_KEY, may_name
from corpus.errors import BadInput
from judges.models import JudgeVersion, Panel
from judges.panels.file_text import render_keys
from judges.panels.offline_panel import OFFLINE_DEBATE, judges_that_vote
from judges.presets import PRESETS

# Presets by title, without the built-in offline judges.
PROVIDERS = sorted(
    (preset for preset in PRESETS.values() if preset.wire != "offline"),
    key=lambda preset: preset.title.lower(),
)


class JudgesFileForm(forms.Form):
    """The text of the judges file or an upload in its place, and the settings of a model to append."""

    provider = forms.ChoiceField(
        label=_("Provider"),
        required=False,
        initial="openai",
        # With the name of the variable that contains the API key.
        choices=[
            (preset.name, f"{preset.title} ({preset.key_env})" if preset.key_env else preset.title)
            for preset in PROVIDERS
        ],
        widget=forms.Select(attrs={"lang": "en"}),  # Names of providers are the same in every language.
    )
    model = forms.CharField(label=_("Model"), required=False, max_length=200, help_text=_("As the provider calls it."))
    judge_name = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=100,
        help_text=_("Leave blank to use the model's name."),
    )
    api_key_env = forms.CharField(
        label=_("API key variable"),
        required=False,
        max_length=200,
        help_text=_(
            "Name of the environment variable with the key, never the key itself. Leave blank for the provider's own."
        ),
    )
    base_url = forms.CharField(
        label=_("Base URL"),
        required=False,
        max_length=500,
        help_text=_("For compatible servers, such as http://127.0.0.1:8001/v1."),
    )
    more = forms.CharField(
        label=_("More settings"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
        help_text=_("One setting per line, as in the judges file."),
    )
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

    def clean(self) -> dict[str, Any]:
        """Check the required fields of a new model; the rest is checked with the judges file."""
        fields = super().clean() or {}
        if "add" not in self.data or self.errors:
            return fields
        server, variable = fields["base_url"].strip(), fields["api_key_env"].strip()
        if not fields["model"].strip():
            self.add_error("model", _("Enter the name of a model, as the provider calls it."))
        needs_server = "base_url" in PRESETS[fields["provider"] or PROVIDERS[0].name].needs
        if needs_server and not server and "base_url" not in fields["more"]:
            self.add_error("base_url", _("Enter the base URL, for example http://127.0.0.1:8001/v1."))
        if variable and not may_name(variable):
            self.add_error("api_key_env", _("Use a variable name that ends in %(suffix)s.") % {"suffix": OWN_KEY})
        return fields

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

    def append_to(self, text: str) -> str:
        """Return the text with the form's model appended. Raises BadInput for settings that are not TOML."""
        fields = self.cleaned_data
        model = fields["model"].strip()
        # Lists of judges are separated by commas, so a name must not contain one.
        name = fields["judge_name"].strip() or re.sub(r"[\s,]+", "-", model.rsplit("/", 1)[-1])[:100]
        keys: dict[str, Any] = {
            "name": name,
            "provider": fields["provider"] or PROVIDERS[0].name,
            "model": model,
        }
        keys |= {key: fields[key].strip() for key in ("base_url", "api_key_env") if fields[key].strip()}
        further_lines = fields["more"].replace("\r\n", "\n").strip()
        table = "\n".join(["[[judge]]", render_keys(keys).rstrip(), further_lines]).rstrip()
        return "\n\n".join([text.rstrip(), table]).lstrip() + "\n"


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
