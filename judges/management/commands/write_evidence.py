"""write_evidence NAME --writer J: let a judge write contribution and evidence of relevant pairs, measured (SPEC S6)."""

from typing import Any

from django.core.management.base import CommandParser

from corpus.errors import BadInput
from corpus.models import Collection
from judges.campaigns import forecasts
from judges.campaigns.configurations import Configuration
from judges.evidence import campaigns
from judges.evidence.quality import TEACHER
from judges.management.commands import judge
from judges.management.commands.status import collection_named


class Command(judge.Command):
    """Follows its campaign as `judge` does: the same progress, exit codes and interruptions."""

    name = "write_evidence"
    act = "evidence.started"
    help = "Write contribution and evidence of a collection's relevant pairs. Running the command again continues."

    def arguments(self, parser: CommandParser) -> None:
        """Who writes, who measures, and where it stops."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--writer", required=True, help="judge that writes the texts; offline-writer needs no API key"
        )
        parser.add_argument("--measure", default="", help="judge that measures the texts (default: none, only rules)")
        parser.add_argument("--limit", type=int, help="maximum number of pairs in the campaign")
        parser.add_argument("--budget", type=float, help="maximum cost of the campaign in USD")
        parser.add_argument("--max-calls", type=int, help="maximum number of calls of the campaign")
        parser.add_argument(
            "--workers", type=int, help="with --wait: number of worker processes (default: one per CPU)"
        )
        parser.add_argument("--wait", action="store_true", help="wait for the end of the campaign and show progress")
        parser.add_argument(
            "--again", action="store_true", help="rewrite texts that judges wrote; texts of people are kept"
        )
        parser.add_argument("--retry-failed", action="store_true", help="retry failed pairs")
        parser.add_argument("--yes", action="store_true", help="start a paid campaign without asking for confirmation")

    def run(self, **options: Any) -> object:
        """Start or join, and with --wait stay until the end; the status document of the campaign."""
        collection = collection_named(options["name"])
        if options["workers"] is not None and not 1 <= options["workers"] <= 64:
            raise BadInput(f"--workers {options['workers']}: give a number from 1 to 64")
        wanted = campaigns.writer_configuration(options["writer"], options["measure"])
        if campaigns.score_meaning(wanted) == TEACHER:
            self.note(f"{options['measure']} measures its own model's texts: scores mean fidelity to teacher")
        self.confirm_cost(collection, wanted, options)
        started = campaigns.start_campaign(
            collection=collection,
            wanted=wanted,
            limit=options["limit"],
            budget=options["budget"],
            max_calls=options["max_calls"],
            again=options["again"],
            retry=options["retry_failed"],
        )
        return self.follow(collection, started, options)

    def idle(self, collection: Collection) -> str:
        """Why there is nothing to do."""
        covered = campaigns.target_coverage(collection)
        if not covered.positives:
            return f"nothing to do: {collection.name} has no relevant pairs yet: judge it first"
        return (
            f"nothing to do: {covered.good:,} of {covered.positives:,} relevant pairs of {collection.name} have "
            "their texts, the others wait for people or failed (--retry-failed)"
        )

    def confirm_cost(self, collection: Collection, wanted: Configuration, options: dict[str, Any]) -> None:
        """Print what paid writing may cost, and ask on a terminal."""
        self.ask_about(collection, forecasts.forecast_writing(collection, wanted, limit=options["limit"]), options)
