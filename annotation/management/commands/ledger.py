"""`ledger NAME`: the cost of a campaign by judge, round and outcome, and per correct label."""

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from annotation.quality.costs.labels import PerLabel
from annotation.quality.costs.report import CostReport, build_json_document, cost_report
from corpus.commands import QuorumCommand, collection_named
from judges.campaigns.selectors import find_campaign
from judges.costs.accounting import format_cost
from judges.costs.ledger import Sum


class Command(QuorumCommand):
    help = (
        "Print the cost of a campaign by judge, round and outcome, with people's time and the cost per correct label."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("--campaign", type=int, metavar="N", help="number of the campaign (default: the newest)")

    def run(self, **options: Any) -> object:
        report = cost_report(find_campaign(collection_named(options["name"]), options["campaign"]))
        if not self.as_json:
            self.tell(report)
        return build_json_document(report)

    def tell(self, report: CostReport) -> None:
        campaign, wasted = report.campaign, report.wasted
        self.say(
            f"campaign {campaign.number} ({campaign.policy}) on {report.collection.name}: {report.status['state']}"
        )
        self.say(f"  judges   {report.machine}; {report.status['calls']:,} calls, {wasted.calls:,} without a verdict")
        self.say(f"  people   {report.people.paid}; {report.people.hours:,.1f} hours")
        self.say(f"  together {report.together}")
        for title, _, lines in report.groups:
            self.table(title, lines)
        if report.pairs:
            self.say("by what became of the pair")
            for part in report.pairs:
                self.say(f"  {part['name']:<28} {part['pairs']:>10,} pairs {part['calls']:>10,} calls   {part['paid']}")
        if len(report.days) > 1:
            self.say("by day (UTC)")
            for day in report.days:
                self.say(f"  {day['day'].isoformat():<28} {day['calls']:>10,} calls   {day['paid']}")
        self.say("cost per correct label")
        for label in report.labels:
            self.say(f"  {describe_label_cost(label)}")
        if line := report.caps.line():
            self.say(line)

    def table(self, title: str, lines: Sequence[Sum]) -> None:
        self.say(title.lower())
        for row in lines:
            tokens = f"{row.tokens_in:>12,} tokens in {row.tokens_out:>10,} out"
            self.say(f"  {row.name:<28} {row.calls:>10,} calls {tokens}   {row.paid}")


def describe_label_cost(label: PerLabel) -> str:
    """Return the cost of a correct label with its interval and population, or the reason why there is none."""
    head = f"{label.who}, by {label.truth}: "
    cost, share = label.cost, label.accuracy
    if cost.value is None:
        return head + (cost.reason or "not measured")
    least = "at least " if label.paid.at_least else ""
    low = format_cost(cost.low) if cost.low is not None else "?"
    high = format_cost(cost.high) if cost.high is not None else "no upper bound"
    return f"{head}{least}{format_cost(cost.value)} ({low} to {high}); {share.value:.1%} correct, {label.population}"
