"""`teacher_scores NAME --api A --model M`: scores of a rerank API for a collection's pairs."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from annotation.exports.reranker_scores.client import Teacher
from annotation.exports.reranker_scores.formats import APIS
from annotation.exports.reranker_scores.scoring import score_pairs
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput, Incomplete


class Command(QuorumCommand):
    help = (
        "Fetch scores from a rerank API for all pairs that have none. Every answer is stored, so it is paid for once."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("--api", required=True, help=f"whose format: {', '.join(APIS)}")
        parser.add_argument("--model", required=True, help="name of the model in the API")
        parser.add_argument("--url", default="", help="base URL of the API (default: the provider's own)")
        parser.add_argument(
            "--key-env", default="", metavar="K", help="name of the environment variable that holds the API key"
        )
        parser.add_argument("--limit", type=int, metavar="N", help="maximum number of pairs")
        parser.add_argument("--labelled", action="store_true", help="score only pairs that have a label")
        parser.add_argument("--replace", action="store_true", help="also score pairs that have an imported score")

    def run(self, **options: Any) -> object:
        api = APIS.get(options["api"])
        if api is None:
            raise BadInput(f"--api must be one of {', '.join(APIS)}, not {options['api']}")
        if options["limit"] is not None and options["limit"] < 1:
            raise BadInput(f"--limit must be 1 or more, not {options['limit']}")
        collection = collection_named(options["name"])
        url = options["url"]
        if url and not url.startswith(("http://", "https://")):
            raise BadInput(f"--url must begin with http:// or https://, not {url}")
        teacher = Teacher(api, api.address(url), options["model"], options["key_env"] or api.key_env)
        report = score_pairs(
            collection,
            teacher,
            labelled=options["labelled"],
            replace=options["replace"],
            limit=options["limit"],
        )
        document = {"collection": collection.name, "api": api.name, "model": teacher.model, **asdict(report)}
        if not report.pairs:
            self.say("nothing to do: every pair has a score")
        else:
            self.say(f"{report.scored} of {report.pairs} pairs scored in {report.calls} calls")
        if report.failed:
            errors = "; ".join(report.errors[:3])
            raise Incomplete(f"{report.failed} pairs have no score ({errors}); run it again to ask for them", document)
        return document
