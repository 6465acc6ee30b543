"""evaluate_policies NAME: every policy, replayed on stored turns and votes."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.agreement.measures import Statistic
from annotation.policies.replay import Replayed
from annotation.policies.report import PolicyReport, build_json_document, evaluate_policies
from annotation.policies.tables import SETTLERS, policies_table
from corpus.commands import QuorumCommand, collection_named, write_tables
from corpus.errors import BadInput
from corpus.models import Collection
from corpus.numbered import find_numbered
from judges.models import Campaign


class Command(QuorumCommand):
    help = "Compare judging policies by replaying a campaign's stored turns and votes, without new calls."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--campaign", type=int, metavar="N", help="number of the campaign (default: the newest that judges pairs)"
        )
        parser.add_argument(
            "--reference",
            choices=["gold", "people"],
            help="labels to compare with (default: gold where there is any, else people)",
        )
        parser.add_argument(
            "--guard", action="store_true", help="count an agreement without new evidence as disagreement"
        )
        parser.add_argument(
            "--seconds", type=float, metavar="S", help="seconds that one human judgment takes (default: as measured)"
        )
        parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write the table to, as CSV and LaTeX")

    def run(self, **options: Any) -> object:
        collection = collection_named(options["name"])
        report = evaluate_policies(
            collection,
            find_campaign(collection, options["campaign"]),
            reference=options["reference"],
            guard=options["guard"],
            seconds=options["seconds"],
        )
        if not self.as_json:
            self.show(report)
        document = build_json_document(report)
        if options["out"] is not None:
            write_tables(options["out"], [policies_table(document)])
        return document

    def show(self, report: PolicyReport) -> None:
        """Print a line for each policy."""
        self.say(report.population)
        for one in report.policies:
            self.say(f"  {one.rule.name}: {one.reason or _format_policy(one, report)}")


def find_campaign(collection: Collection, wanted: int | None) -> Campaign | None:
    """Return the judging campaign with the number that --campaign gives, None without one. Raises BadInput."""
    if wanted is None:
        return None
    found = find_numbered(Campaign.judging, collection, wanted)
    if found is None:
        raise BadInput(f"--campaign {wanted}: {collection.name} has no such campaign that judges")
    return found


def _format_policy(one: Replayed, report: PolicyReport) -> str:
    machine, people = one.spent.cost, report.people.cost(one.judgments)
    load = f"escalated {one.escalation:.1%}; calls {one.spent.calls:,}; machine {_usd(machine)}, people {_usd(people)}"
    own = one.own
    if own.relevant.value is None and own.not_relevant.value is None:
        return f"{own.balanced.reason}; {load}"
    recalls = f"recall {_text(own.relevant)} relevant, {_text(own.not_relevant)} not"
    every = [
        f"{_text(measured.balanced)} by {SETTLERS[settler]}"
        for settler, measured in one.after.items()
        if measured.balanced.value is not None
    ]
    settled = f" (all pairs: {', '.join(every)})" if one.escalated and every else ""
    return f"{recalls}; bAcc {_text(own.balanced)}{settled}; {load}"


def _text(statistic: Statistic) -> str:
    return "undefined" if statistic.value is None else f"{statistic.value:.1%}"


def _usd(value: float | None) -> str:
    return "unknown" if value is None else f"${value:,.4f}"
