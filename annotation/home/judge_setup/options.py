"""Options of a model that is added or edited in the browser or by the API: the keys of a [[judge]] table, and a key."""

import re
from typing import Any, Literal

from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr, ValidationError

from actions.options import Options, option
from corpus.errors import BadInput, BadOption
from corpus.importing.toml_files import read_tables
from judges.panels.judge_keys import JudgeTable
from judges.presets.record import SchemaMode
from judges.records import JudgeSettings
from judges.stored_keys import STORED

SCALE_TITLES = {"binary": _("relevant or not"), "0-3": _("grades 0 to 3"), "0-10": _("grades 0 to 10")}
MODE_TITLES = {
    "json_schema": _("JSON by a schema"),
    "json_object": _("JSON"),
    "tool": _("call of a tool"),
    "text": _("plain text"),
}


class ModelOptions(Options):
    """A model: where it is, by which key it is called, and what it costs. The judges file checks the values."""

    provider: str = option(_("Provider"), default="openai")
    model: str = option(_("Model"), _("As the provider calls it."), default="")
    base_url: str = option(_("Base URL"), _("For compatible servers, such as http://127.0.0.1:8001/v1."), default="")
    name: str = option(_("Name"), _("Leave blank to use the model's name."), default="", at_most=100)
    api_key_env: str = option(
        _("API key variable"),
        _("Name of the environment variable with the key. Leave blank for the provider's own."),
        default="",
    )
    key: SecretStr | None = option(
        _("API key to store"),
        _("Stored encrypted, for this base URL only, and never shown again. Leave blank to use a variable."),
        default=None,
        at_most=2000,
        secret=True,
    )
    input_price: float | None = option(_("Input price"), _("USD per million tokens."), default=None)
    output_price: float | None = option(_("Output price"), default=None)
    cached_input_price: float | None = option(_("Price of cached input"), default=None)
    max_concurrency: int | None = option(_("Calls at a time"), default=None)
    requests_per_minute: int | None = option(_("Requests per minute"), default=None)
    tokens_per_minute: int | None = option(_("Tokens per minute"), default=None)
    schema_mode: SchemaMode | None = option(
        _("Answer format"), _("Leave blank for what suits the provider."), default=None, choices=MODE_TITLES
    )
    scale: Literal["binary", "0-3", "0-10"] | None = option(
        _("Scale of its grades"), _("Leave blank for yes or no."), default=None, choices=SCALE_TITLES
    )
    more: str = option(
        _("More settings"), _("One setting per line, as in the judges file."), default="", at_most=20_000, long=True
    )

    @property
    def judge_name(self) -> str:
        """The name of a new model. Lists of judges are separated by commas, so none contains one."""
        return self.name.strip() or re.sub(r"[\s,]+", "-", self.model.strip().rsplit("/", 1)[-1])[:100]

    def read_settings(self, name: str, *, stored: bool) -> JudgeSettings:
        """Return the settings of the judge of this name; `stored`: its key is a stored one. Raises BadOption."""
        keys = self.model_dump(exclude={"name", "key", "more"}, exclude_none=True)
        keys = {key: value.strip() if isinstance(value, str) else value for key, value in keys.items()}
        keys = {"name": name, **{key: value for key, value in keys.items() if value != ""}}
        if stored:
            keys["api_key_env"] = STORED + name
        try:
            further_keys: dict[str, Any] = read_tables(self.more.replace("\r\n", "\n"), "TOML") if self.more else {}
        except BadInput as error:
            raise BadOption("more", f"{error}.") from None
        if repeated := sorted(further_keys.keys() & {*type(self).model_fields}):
            raise BadOption("more", gettext("%(key)s has a field of its own.") % {"key": repeated[0]})
        if not keys.get("model"):
            raise BadOption("model", gettext("Enter the name of a model, as the provider calls it."))
        try:
            return JudgeTable.model_validate(keys | further_keys).entry()
        except ValidationError as error:
            raise _refusal(error, has_address="base_url" in keys) from None


def _refusal(error: ValidationError, *, has_address: bool) -> BadOption:
    """Return the problems of a [[judge]] table as those of the options."""
    problems: dict[str, str] = {}
    for details in error.errors(include_input=False):
        path = (*details["loc"], *details.get("ctx", {}).get("place", ()))
        key = str(path[0]) if path else ""
        if key == "base_url" and not has_address:
            problems[key] = gettext("Enter the base URL, for example http://127.0.0.1:8001/v1.")
        elif key in ModelOptions.model_fields:
            problems.setdefault(key, f"{capfirst(details['msg'])}.")
        else:
            problems.setdefault("more", f"{key} {details['msg']}.".strip())
    (first, sentence), *others = problems.items()
    return BadOption(first, sentence, others=others)
