"""Forms of the page of models: the judges file plus a model, and who debates and votes here."""

import re
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from annotation.home.judge_setup.loading import FILE, LONGEST, OWN_KEY, may_name
from corpus.errors import BadInput
from judges.models import JudgeVersion, Panel
from judges.panels.file_text import append_judge
from judges.panels.offline_panel import OFFLINE_DEBATE, judges_that_vote
from judges.presets import PRESETS

# Presets in the order of their titles; the judges that need no model are built in.
PROVIDERS = sorted(
    (preset for preset in PRESETS.values() if preset.wire != "offline"),
    key=lambda preset: preset.title.lower(),
)


class JudgesFileForm(forms.Form):
    """The text of the judges file, an upload instead, and the keys of a model to append."""

    provider = forms.ChoiceField(
        label=_("Provider"),
        required=False,
        initial="openai",
        # With the variable that the key stands in.
        choices=[(one.name, f"{one.title} ({one.key_env})" if one.key_env else one.title) for one in PROVIDERS],
        widget=forms.Select(attrs={"lang": "en"}),  # names of providers, the same in every language
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
            "Name of the environment variable that holds the key, never the key itself. Leave blank for the "
            "provider's own."
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
        """Say at its field what a new model lacks; the rest is the judges file's matter."""
        given = super().clean() or {}
        if "add" not in self.data or self.errors:
            return given
        server, variable = given["base_url"].strip(), given["api_key_env"].strip()
        if not given["model"].strip():
            self.add_error("model", _("Enter the name of a model, as the provider calls it."))
        needs_server = "base_url" in PRESETS[given["provider"] or PROVIDERS[0].name].needs
        if needs_server and not server and "base_url" not in given["more"]:
            self.add_error("base_url", _("Enter the base URL, for example http://127.0.0.1:8001/v1."))
        if variable and not may_name(variable):
            self.add_error("api_key_env", _("Use a variable name that ends in %(suffix)s.") % {"suffix": OWN_KEY})
        return given

    def with_text(self, text: str) -> "JudgesFileForm":
        """The same form with another text in it: what a mistake is then looked for in."""
        # Without the upload: it was read, and its text is what is shown and mended now.
        form = JudgesFileForm({**dict(self.data.items()), "text": text})
        form.full_clean()
        return form

    def file_text(self) -> tuple[str, str]:
        """The text that was uploaded or else typed, and the name of its file. Raises BadInput."""
        upload: UploadedFile[bytes] | None = self.cleaned_data.get("file")
        if upload is None:
            return self.cleaned_data["text"].replace("\r\n", "\n"), FILE
        name = str(upload.name)
        # In bytes, of which a character has four at most in UTF-8.
        if (upload.size or 0) > 4 * LONGEST:
            raise BadInput(_("%(name)s is too large for a judges file") % {"name": name})
        try:
            return upload.read().decode("utf-8-sig").replace("\r\n", "\n"), name
        except UnicodeDecodeError:
            raise BadInput(_("%(name)s is no text in UTF-8") % {"name": name}) from None

    def append_to(self, text: str) -> str:
        """The text with the form's model at its end. BadInput for settings that are no TOML."""
        given = self.cleaned_data
        model = given["model"].strip()
        # Lists of judges are separated by commas, so that no name may hold one.
        name = given["judge_name"].strip() or re.sub(r"[\s,]+", "-", model.rsplit("/", 1)[-1])[:100]
        keys: dict[str, Any] = {
            "name": name,
            "provider": given["provider"] or PROVIDERS[0].name,
            "model": model,
        }
        keys |= {key: given[key].strip() for key in ("base_url", "api_key_env") if given[key].strip()}
        return append_judge(text, keys, given["more"].replace("\r\n", "\n"))


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
        # Those that can write a turn of a debate.
        write = [
            row.name for row in rows if PRESETS[row.provider].asks and row.parameters.get("endpoint") != "decisions"
        ]
        write += [row.name for row in rows if row.name in OFFLINE_DEBATE]
        debaters = [("", _("No debate")), *((name, name) for name in write)]
        self.fields["debate_for"].choices = self.fields["debate_against"].choices = debaters  # type: ignore[attr-defined]
        voters = [name for name in judges_that_vote() if name not in OFFLINE_DEBATE]
        self.fields["judge"].choices = [(name, name) for name in voters]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if bool(given.get("debate_for")) != bool(given.get("debate_against")):
            self.add_error("debate_against", _("Choose two debaters, or none."))
        return given

    @property
    def debate(self) -> list[str]:
        """The two debaters, or nobody."""
        return [name for name in (self.cleaned_data["debate_for"], self.cleaned_data["debate_against"]) if name]
