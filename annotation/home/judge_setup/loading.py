"""Loading a judges file from the browser: as `configure_judges` does, with three more checks.

Anyone who can run the command already has access to the machine and its keys. An owner at a browser does
not, and a stolen session must not gain it: no command is started, and a provider's key is sent only to that
provider (docs/operators.md).
"""

from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from corpus.errors import BadInput, BadOption
from judges.models import JudgeVersion
from judges.panels.configuration import store_judges_file
from judges.panels.judges_file import JudgesFile, parse
from judges.presets import PRESETS, Preset
from judges.records import JudgeSettings
from judges.stored_keys import STORED

FILE = "judges.toml"  # Name of a typed file in errors.
LONGEST = 200_000  # Characters of a file.
OWN_KEY = "_API_KEY"  # Suffix of the variables that may be named from a browser.
# Clients that send the machine's cloud credentials, and the hosts that may receive them.
CLOUDS = {"azure": ".azure.com", "bedrock": ".amazonaws.com", "vertex": ".googleapis.com"}


def load_judges_text(text: str, name: str = FILE) -> tuple[JudgesFile, dict[str, Any]]:
    """Store the judges and panel of a file, all or none; return the file and its changes. Raises BadInput."""
    if len(text) > LONGEST:
        raise BadInput(_("%(name)s has more than %(most)s characters") % {"name": name, "most": f"{LONGEST:,}"})
    file = parse(text, name)
    names = [judge.name for judge in file.judges]
    stored = {row.name: row for row in JudgeVersion.objects.filter(name__in=names, is_current=True)}
    for judge in file.judges:
        row = stored.get(judge.name)
        # A judge that is already stored with exactly these settings needs no check.
        fields = JudgeSettings.__dataclass_fields__
        if row is None or any(getattr(row, field) != getattr(judge, field) for field in fields):
            try:
                check_from_browser(judge)
            except BadInput as error:
                raise BadInput(f"{name}: {judge.name}: {error}") from None
    return file, store_judges_file(file)


def _owners_of(variable: str) -> list[Preset]:
    """Return the providers whose API key is in this variable."""
    return [preset for preset in PRESETS.values() if preset.key_env and preset.key_env == variable]


def check_from_browser(judge: JudgeSettings) -> None:
    """Raise BadOption for a judge that would run a command, or send a secret to another host than its own."""
    values = {"variable": judge.api_key_env, "suffix": OWN_KEY}
    if "token_command" in judge.parameters:
        raise BadOption(
            "more",
            _("token_command runs a command on the server. Load such a model there, with manage.py configure_judges."),
        )
    owners = _owners_of(judge.api_key_env)
    may_be_named = bool(owners) or judge.api_key_env.endswith(OWN_KEY) or judge.api_key_env.startswith(STORED)
    if judge.api_key_env and not may_be_named:
        raise BadOption("api_key_env", _("Use a variable name that ends in %(suffix)s.") % values)
    if not judge.base_url:
        return
    values["host"] = host = str(urlsplit(judge.base_url).hostname)
    cloud = CLOUDS.get(judge.preset.client)
    homes = {urlsplit(home).hostname for preset in owners for home in (preset.base_url, *preset.homes.values())}
    if cloud and not host.endswith(cloud):
        values["provider"] = judge.preset.title
        sentence = _("Credentials of %(provider)s would be sent to %(host)s. Leave the base URL blank.")
        raise BadOption("base_url", sentence % values)
    if owners and not cloud and host not in homes:
        sentence = _(
            "%(variable)s would be sent to %(host)s. Name a variable of that server's own, such as MY_SERVER%(suffix)s."
        )
        raise BadOption("api_key_env", sentence % values)
