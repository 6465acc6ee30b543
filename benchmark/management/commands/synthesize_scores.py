"""`synthesize_scores NAME --judge J --out DIR`: have documents scored with reasoning, as training data (ERank)."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.synthesis import scores
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput, Incomplete
from judges.retrieval.synthesis import LONGEST

K = 3


class Command(QuorumCommand):
    name = "synthesize_scores"
    help = "Have a graded judge score each query's documents several times and write its reasoning as training data."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options; the defaults are the paper's: three generations, 20 documents per query."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--judge",
            required=True,
            help='a judge with scale = "0-10" that answers differently each time: not at '
            "temperature 0, and without a seed",
        )
        parser.add_argument("--run", type=Path, help="TREC run to draw documents from (default: BM25)")
        parser.add_argument(
            "--chains",
            action="store_true",
            help="ask for a chain of thought (prompt score-chain) and keep what the provider tells of the model's own",
        )
        parser.add_argument(
            "--out",
            type=Path,
            help="output folder; must be new or empty (default: none; export --format erank-sft writes the set)",
        )
        parser.add_argument("--k", type=int, default=K, help=f"generations for each pair (default {K})")
        parser.add_argument("--documents", type=int, default=20, help="number of documents per query (default: 20)")
        parser.add_argument(
            "--queries", type=int, help="number of queries with a relevant document, drawn at random (default: all)"
        )
        parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
        parser.add_argument("--budget", type=float, help="maximum cost in USD")
        parser.add_argument("--max-calls", type=int, help="maximum number of calls")

    def run(self, **options: Any) -> object:
        """Draw documents, ask the judge about each, and write the data."""
        collection = collection_named(options["name"])
        if not 1 <= options["k"] <= 10 or not 1 <= options["documents"] <= 100:
            raise BadInput("--k is a number from 1 to 10, --documents one from 1 to 100")
        out: Path | None = options["out"]
        if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadInput(f"{out} is not empty: name a new folder")
        draw_options: dict[str, Any] = {
            "number": options["documents"],
            "queries": options["queries"],
            "seed": options["seed"],
        }
        drawn = scores.draw_by_query(collection, options["run"], **draw_options)
        self.stderr.write(
            f"{len(drawn):,} queries, {sum(map(len, drawn.values())):,} documents, {options['k']} answers each"
        )
        score_options = {name: options[name] for name in ("judge", "k", "chains", "out", "budget", "max_calls")}
        document = scores.make_scores(collection, drawn, **score_options)
        long, short = document["dropped"]["too_long"], document["dropped"]["no_score"]
        location = f" in {out}" if out else ""
        self.say(
            f"{document['rows']:,} rows of {document['queries']:,} queries{location}; left out: {long:,} queries with "
            f"an answer of more than {LONGEST:,} tokens, {short:,} with a document that brought no score; "
            f"{document['calls']:,} calls, {document['calls_cached']:,} from the cache"
        )
        if document["lost"] or document["stopped"]:
            raise Incomplete(
                f"{document['lost']:,} pairs brought no score: the same command asks for them again", document
            )
        return document
