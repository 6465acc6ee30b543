"""`evaluate_policies NAME`: every policy, replayed on stored turns and votes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.quality.policies.report import evaluate_policies, named_campaign
from annotation.quality.policies.tables import RESOLVERS, policies_table
from corpus.commands import QuorumCommand, collection_named, write_tables

RECALLS = ("recall_relevant", "recall_not_relevant", "balanced_accuracy")


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
        settings = {name: options[name] for name in ("reference", "guard", "seconds")}
        document = evaluate_policies(collection, named_campaign(collection, options["campaign"]), **settings)
        if not self.as_json:
            self.say(document["population"])
            for policy in document["policies"]:
                self.say(f"  {policy['name']}: {policy['reason'] or _format_policy(policy)}")
        if options["out"] is not None:
            write_tables(options["out"], [policies_table(document)])
        return document


def _format_policy(policy: Mapping[str, Any]) -> str:
    costs = f"machine {_usd(policy['machine'])}, people {_usd(policy['people'])}"
    load = f"escalated {policy['escalation']:.1%}; calls {policy['calls']:,}; {costs}"
    relevant, other, balanced = (policy["own"][name] for name in RECALLS)
    if relevant["value"] is None and other["value"] is None:
        return f"{balanced['reason']}; {load}"
    with_people = [
        f"{_text(measured['balanced_accuracy'])} by {RESOLVERS[settler]}"
        for settler, measured in policy["after"].items()
        if measured["balanced_accuracy"]["value"] is not None
    ]
    overall = f" (all pairs: {', '.join(with_people)})" if policy["escalated"] and with_people else ""
    return f"recall {_text(relevant)} relevant, {_text(other)} not; bAcc {_text(balanced)}{overall}; {load}"


def _text(statistic: Mapping[str, Any]) -> str:
    return "undefined" if statistic["value"] is None else f"{statistic['value']:.1%}"


def _usd(value: float | None) -> str:
    return "unknown" if value is None else f"${value:,.4f}"
