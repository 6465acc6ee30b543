"""`configure_judges F`: load a judges file, and make its panel the default of new campaigns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand
from judges.campaigns.configurations import Policy, describe_panel
from judges.domain.copies import copy_groups, number_names, why_alike
from judges.panels.configuration import has_key, store_judges_file
from judges.panels.judges_file import JudgesFile, read
from judges.panels.panel_table import PanelSettings
from judges.records import JudgeSettings


class Command(QuorumCommand):
    """The command that loads a judges file: all of it, or nothing if it has an error."""

    act = "judges.configured"
    help = "Load a judges file (TOML). A changed judge gets a new version; the file's panel becomes the default panel."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="judges file (TOML)")

    def run(self, **options: Any) -> object:
        file = read(options["file"])
        document = store_judges_file(file)
        for judge in document["judges"]:
            self.say(f"{judge['name']}: {judge['change']}, version {judge['version']}")
        for price in document.get("prices", ()):
            self.say(f"price of {price['provider']} {price['model']}: {price['change']}")
        optional = {judge.preset.key_env for judge in file.judges if not judge.preset.key_required}
        for variable in dict.fromkeys(judge.api_key_env for judge in file.judges if judge.api_key_env):
            if variable not in optional and not has_key(variable):
                self.say(
                    f"The environment variable {variable} is not set here: set it to the API key where judges run."
                )
        if file.panel:
            self.describe(file, file.panel, document["panel"]["change"])
        else:
            self.say("No judge of this file judges pairs, so that it makes no panel: the default panel stays as it is.")
        self.say("Try every judge with one call: manage.py check_judges")
        return document

    def describe(self, file: JudgesFile, panel: PanelSettings, change: str) -> None:
        """Say who is on the panel, and warn of voters that are one model."""
        judges = {judge.name: judge for judge in file.judges}
        self.say(f"Panel {panel.name}: {change}; it is the default of new campaigns. {_describe_panel(panel, judges)}")
        voters = [judges[name] for name in panel.ensemble]
        for indexes in copy_groups(voters):
            if reason := why_alike(voters[indexes[0]]):
                names = ", ".join(voters[index].name for index in indexes)
                self.say(
                    f"{names} are one model with the same parameters, and would answer alike: together they say no "
                    f"more than one of them ({reason})."
                )


def _describe_panel(panel: PanelSettings, judges: Mapping[str, JudgeSettings]) -> str:
    """Describe the panel's debaters and voters, and how many votes decide."""
    debate = f"{' and '.join(panel.debate)} debate" if panel.debate else "Nobody debates"
    if not panel.ensemble:
        return f"{debate}, nobody votes."
    if len(panel.ensemble) == 1:
        return f"{debate}; the one vote of {panel.ensemble[0]} decides."
    voters = [judges[name] for name in panel.ensemble]
    words = describe_panel(Policy.ENSEMBLE, voters, panel.majority, early_stop=panel.early_stop)
    return f"{debate}; {', '.join(number_names(panel.ensemble))} vote: {words}."
