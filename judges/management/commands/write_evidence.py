"""write_evidence NAME --writer J: let a judge write contribution and evidence of relevant pairs, measured."""

from typing import Any

from django.core.management.base import CommandParser

from corpus.models import Collection
from judges.campaigns import forecasts
from judges.campaigns.configurations import Configuration
from judges.campaigns.estimates import Estimate
from judges.evidence import campaigns
from judges.evidence.quality import TEACHER
from judges.management.commands import judge


class Command(judge.Command):
    """The command that writes evidence, with the progress, exit codes and interruptions of `judge`."""

    name = "write_evidence"
    act = "evidence.started"
    help = "Write contribution and evidence of a collection's relevant pairs. Running the command again continues."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--writer", required=True, help="judge that writes the texts; offline-writer needs no API key"
        )
        parser.add_argument("--measure", default="", help="judge that measures the texts (default: none, only rules)")
        judge.add_limits(parser, again="rewrite texts that judges wrote; texts of people are kept")

    def configure(self, options: dict[str, Any]) -> Configuration:
        wanted = campaigns.writer_configuration(options["writer"], options["measure"])
        if campaigns.score_meaning(wanted) == TEACHER:
            self.note(f"{options['measure']} measures its own model's texts: scores mean fidelity to teacher")
        return wanted

    def forecast(self, collection: Collection, wanted: Configuration, options: dict[str, Any]) -> Estimate | None:
        """Return what the writing would cost; None where every relevant pair has its texts."""
        return forecasts.forecast_writing(collection, wanted, limit=options["limit"])

    def idle(self, collection: Collection) -> str:
        covered = campaigns.target_coverage(collection)
        if not covered["positives"]:
            return f"nothing to do: {collection.name} has no relevant pairs yet: judge it first"
        return (
            f"nothing to do: {covered['good']:,} of {covered['positives']:,} relevant pairs of {collection.name} have "
            "their texts, the others wait for people or failed (--retry-failed)"
        )
