"""`rerank --model DIR --run IN --collection NAME --out OUT`: rerank a run with a model."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand, collection_named
from training.jobs.reranking import add_scoring, describe_rerank, rerank_run
from training.recipes.rendering import PROMPT_NAMES


class Command(QuorumCommand):
    """Score the pairs of a run, and write a run with the model's raw margins or ranking scores."""

    help = (
        "Rerank a TREC run with a model. Scores are raw fp32 margins. Running the command again after an interruption "
        "continues where it stopped."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="folder of the model")
        parser.add_argument("--run", type=Path, required=True, metavar="IN", dest="ranking", help="TREC run to rerank")
        parser.add_argument(
            "--collection", required=True, metavar="NAME", help="name of the collection that holds the texts"
        )
        parser.add_argument("--out", type=Path, required=True, metavar="OUT", help="output file; must not exist")
        add_scoring(parser)
        parser.add_argument(
            "--insert-positives", type=Path, metavar="QRELS", help="qrels whose relevant documents are added to the run"
        )
        prompt = "how a model is asked that does not say so itself"
        size = "number of documents scored together at most (default: as many as fit by their tokens)"
        parser.add_argument("--batch-size", type=int, metavar="N", help=size)
        parser.add_argument("--prompt", choices=PROMPT_NAMES, default="", help=prompt)

    def run(self, **options: Any) -> object:
        summary = rerank_run(
            options["model"],
            options["ranking"],
            collection_named(options["collection"]),
            options["out"],
            say=self.stderr.write,
            insert=options["insert_positives"],
            together=options["batch_size"],
            **{name: options[name] for name in ("depth", "device", "precision", "prompt")},
        )
        self.say(describe_rerank(summary))
        if summary["note"]:
            self.say(summary["note"])
        return summary
