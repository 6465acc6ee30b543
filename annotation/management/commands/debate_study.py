"""`debate_study NAME`: effects of stance order, agents, model families, temperature and rounds on debates."""

import json
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandParser

from actions.options import split_names
from annotation.quality.policies.debates import study_debates
from annotation.quality.policies.tables import RESOLVERS, study_tables
from corpus.commands import QuorumCommand, collection_named, write_tables
from corpus.errors import BadOption
from judges.campaigns import configurations

# Settings of debates by axis, as options of `judge` (DREAM B.1, B.4.1, B.4.3, B.3); `families` depends on the debaters.
AXES = {
    "order": [["--stance-order", "relevant-first"], ["--stance-order", "irrelevant-first"]],
    "agents": [["--agents", "2"], ["--agents", "4"]],
    "temperature": [["--temperature", "0"], ["--temperature", "0.6"], ["--temperature", "1.0"]],
    "rounds": [["--rounds", "5", "--play-on"]],
}

RECALLS = ("recall_relevant", "recall_not_relevant", "balanced_accuracy")
# Options that are passed on to each campaign.
PASSED = {"panel": "--panel", "limit": "--limit", "budget": "--budget", "max_calls": "--max-calls"}


class Command(QuorumCommand):
    help = (
        "Compare debate settings (DREAM appendix B) by the stored turns of campaigns. --run AXIS judges first: "
        f"{', '.join(AXES)} or families; existing equal campaigns are continued, not repeated."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--campaigns", default="", help="numbers of campaigns, separated by commas (default: all with debates)"
        )
        parser.add_argument("--run", default="", metavar="AXIS", help="axes to judge first, separated by commas")
        parser.add_argument("--panel", help="with --run: panel whose debaters are used (default: the default panel)")
        parser.add_argument("--debaters", default="", help="with --run: two judges that debate in place of the panel's")
        parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write every table to, as CSV and LaTeX")
        parser.add_argument("--limit", type=int, help="with --run: maximum number of pairs in each campaign")
        parser.add_argument("--budget", type=float, help="with --run: maximum cost of each campaign in USD")
        parser.add_argument("--max-calls", type=int, help="with --run: maximum number of calls in each campaign")
        parser.add_argument(
            "--yes", action="store_true", help="with --run: start paid campaigns without asking for confirmation"
        )

    def run(self, **options: Any) -> object:
        collection = collection_named(options["name"])
        numbers = split_names(options["campaigns"])
        if invalid := [number for number in numbers if not number.isdecimal()]:
            raise BadOption("campaigns", f"Give numbers of campaigns, separated by commas, not {invalid[0]}.")
        settings = list(_list_settings(options))
        campaigns = [*map(int, numbers), *(self.judge(setting, options) for setting in settings)]
        document = study_debates(collection, list(dict.fromkeys(campaigns)))
        if not self.as_json:
            for campaign in document["campaigns"]:
                self.show(campaign)
            for table in document["orders"]:
                (no_no, no_yes), (yes_no, yes_yes) = (row.values() for row in table["counts"].values())
                self.say(
                    f"order of the stances, campaign {table['relevant_first']} against "
                    f"{table['irrelevant_first']}: both not relevant {no_no:,}, both relevant {yes_yes:,}, "
                    f"relevant only with relevant first {yes_no:,}, only with irrelevant first {no_yes:,}; "
                    f"same {_format_share(table['same'])} of {table['pairs']:,}"
                )
        if options["out"] is not None:
            write_tables(options["out"], study_tables(document))
        return document

    def judge(self, setting: list[str], options: dict[str, Any]) -> int:
        """Run the campaign of one setting to its end, or continue it; return its number. Exits as `judge` does."""
        limits = [[flag, str(options[name])] for name, flag in PASSED.items() if options[name] is not None]
        arguments = [*setting, *(part for pair in limits for part in pair), *(["--yes"] if options["yes"] else [])]
        if options["debaters"] and "--debaters" not in arguments:
            arguments += ["--debaters", options["debaters"]]
        out = StringIO()
        self.stderr.write(f"judge {options['name']} --policy debate {' '.join(arguments)}")
        # Through the command, which asks for confirmation of the cost as for any campaign.
        call_command(
            "judge",
            options["name"],
            "--policy",
            "debate",
            *arguments,
            "--wait",
            "--json",
            stdout=out,
            stderr=self.stderr,
        )
        return int(json.loads(out.getvalue())["campaign"])

    def show(self, campaign: Mapping[str, Any]) -> None:
        """Print a line for each number of rounds, then how agreements of round 1 ended."""
        self.say(f"campaign {campaign['campaign']}: {campaign['name']}")
        for row in campaign["rounds"]:
            share = f"escalated {_format_share(row['escalation'])} of {row['pairs']:,}"
            self.say(f"  R = {row['rounds']}: {_format_recalls(row)}; {share}")
        for settler, measured in campaign["after"].items():
            if measured["balanced_accuracy"]["value"] is not None:
                self.say(f"  all pairs, the rest by {RESOLVERS[settler]}: {_format_recalls(measured)}")
        for last in campaign["persistence"] or ():
            self.say(
                f"  round {last['round']}: {last['agreed']:,} of {last['cases']:,} agreements of round 1 agree "
                f"({_format_share(last['persistence'])}), {last['kept']:,} on the same label; "
                f"wrong {last['spurious']:,} of {last['known']:,} ({_format_share(last['spurious_rate'])})"
            )


def _list_settings(options: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the settings of the axes to run. Raises BadOption."""
    debaters = list(split_names(options["debaters"]))
    for axis in split_names(options["run"]):
        if axis not in (*AXES, "families"):
            raise BadOption("run", f"The axes are {', '.join(AXES)} and families, not {axis}.")
        for setting in AXES[axis] if axis in AXES else _family_settings(options["panel"], debaters):
            if axis == "temperature":
                configuration = configurations.build_configuration(
                    panel=options["panel"], policy="debate", debaters=debaters
                )
                configurations.check_temperature(configuration.debaters, float(setting[1]))
            yield setting


def _family_settings(panel: str | None, debaters: list[str]) -> Iterator[list[str]]:
    """Yield each of two judges against itself, and against the other on either side (DREAM B.4.2)."""
    if not debaters:
        configuration = configurations.build_configuration(panel=panel, policy="debate")
        debaters = [judge.name for judge in configuration.debaters]
    if len(set(debaters)) != 2 or len(debaters) != 2:
        raise BadOption("debaters", f"Families are two different judges, as a,b: not {', '.join(debaters) or 'none'}.")
    first, second = debaters
    for pair in ((first, first), (second, second), (first, second), (second, first)):
        yield ["--debaters", ",".join(pair)]


def _format_recalls(measured: Mapping[str, Any]) -> str:
    relevant, other, balanced = (_format_share(measured[name]["value"]) for name in RECALLS)
    return f"recall {relevant} relevant, {other} not; bAcc {balanced}"


def _format_share(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.1%}"
