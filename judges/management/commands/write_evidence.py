"""`write_evidence NAME --writer J`: write and measure the contribution and evidence of relevant pairs."""

from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import collection_named
from corpus.models import Collection
from judges.campaigns import evidence_campaigns as campaigns
from judges.campaigns import lifecycle
from judges.campaigns.forecasts import forecast_writing
from judges.domain.evidence_quality import TEACHER_FIDELITY
from judges.management.judging_command import JudgingCommand, add_wait_options, check_workers_option


class Command(JudgingCommand):
    """The command that writes evidence, with the progress, exit codes and interruption of `judge`."""

    name = "write_evidence"
    act = "evidence.started"
    help = "Write contribution and evidence of a collection's relevant pairs. Running the command again continues."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--writer", required=True, help="judge that writes the texts; offline-writer needs no API key"
        )
        parser.add_argument("--measure", default="", help="judge that measures the texts (default: none, only rules)")
        parser.add_argument("--limit", type=int, help="maximum number of pairs in the campaign")
        parser.add_argument("--budget", type=float, help="maximum cost of the campaign in USD")
        parser.add_argument("--max-calls", type=int, help="maximum number of calls of the campaign")
        parser.add_argument(
            "--again", action="store_true", help="rewrite texts that judges wrote; texts of people are kept"
        )
        parser.add_argument("--retry-failed", action="store_true", help="retry failed pairs")
        add_wait_options(parser)

    def run(self, **options: Any) -> object:
        """Start or join the campaign, and with `--wait` wait for its end; return its status document."""
        collection = collection_named(options["name"])
        check_workers_option(options["workers"])
        configuration = campaigns.writer_configuration(options["writer"], options["measure"])
        if campaigns.score_meaning(configuration) == TEACHER_FIDELITY:
            self.note(f"{options['measure']} measures its own model's texts: scores mean fidelity to teacher")
        self.confirm_cost(collection, forecast_writing(collection, configuration, limit=options["limit"]), options)
        limits = {name: options[name] for name in ("limit", "budget", "max_calls", "again")}
        retry = options["retry_failed"]
        started = lifecycle.start_campaign(collection=collection, configuration=configuration, retry=retry, **limits)
        return self.follow(collection, started, options)

    def idle(self, collection: Collection) -> str:
        covered = campaigns.target_coverage(collection)
        if not covered["positives"]:
            return f"nothing to do: {collection.name} has no relevant pairs yet: judge it first"
        return (
            f"nothing to do: {covered['good']:,} of {covered['positives']:,} relevant pairs of {collection.name} have "
            "their texts, the others wait for people or failed (--retry-failed)"
        )
