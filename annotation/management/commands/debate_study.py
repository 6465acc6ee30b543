"""debate_study NAME: what stance order, agents, temperature and rounds make of a debate, from stored campaigns."""

from typing import Any

from django.core.management.base import CommandParser

from annotation.policies.debates import Orders, Studied, document, study
from corpus.commands import QuorumCommand
from corpus.errors import BadInput
from corpus.models import Collection


class Command(QuorumCommand):
    help = (
        "Compare ways to debate (DREAM appendix B) by the turns of stored campaigns. Run each first, for example with "
        "`judge NAME --policy debate --play-on --stance-order irrelevant-first`."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the collection")
        parser.add_argument("--campaigns", default="", help="ids, separated by commas; default: all that debate")

    def run(self, **options: Any) -> object:
        collection = Collection.objects.filter(name=options["name"]).first()
        if collection is None:
            raise BadInput(f"no collection named {options['name']}")
        studied, swapped = study(collection, [_id(part) for part in options["campaigns"].split(",") if part.strip()])
        if not self.as_json:
            for one in studied:
                self.show(one)
            for two in swapped:
                self.show_orders(two)
        return document(collection, studied, swapped)

    def show(self, one: Studied) -> None:
        """For people: a line for each number of rounds, then what became of the agreements of round 1."""
        self.say(f"campaign {one.campaign.pk}: {one.name}")
        for row in one.by_round:
            measured = row.measured
            self.say(
                f"  {row.name}: recall {_share(measured.relevant.value)} relevant, "
                f"{_share(measured.not_relevant.value)} not; bAcc {_share(measured.balanced.value)}; "
                f"escalated {_share(row.escalation)} of {row.pairs:,}"
            )
        for last in one.lasting:
            self.say(
                f"  round {last.round}: {last.agreed:,} of {last.cases:,} agreements of round 1 agree "
                f"({_share(last.persistence)}), {last.kept:,} on the same label; "
                f"wrong {last.spurious:,} of {last.known:,} ({_share(last.spurious_rate)})"
            )

    def show_orders(self, two: Orders) -> None:
        """For people: the table of labels, relevant first against not relevant first."""
        (no_no, no_yes), (yes_no, yes_yes) = two.table.counts
        self.say(
            f"order of the stances, campaign {two.relevant_first.campaign.pk} against "
            f"{two.irrelevant_first.campaign.pk}: both not relevant {no_no:,}, both relevant {yes_yes:,}, "
            f"relevant only with relevant first {yes_no:,}, only with irrelevant first {no_yes:,}; "
            f"same {_share(two.table.same)} of {two.table.pairs:,}"
        )


def _id(text: str) -> int:
    if not text.strip().isdecimal():
        raise BadInput(f"--campaigns {text.strip()}: give ids of campaigns, separated by commas")
    return int(text)


def _share(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.1%}"
