"""`retrieve NAME --system KIND`: make a run for a collection's queries with one of our systems."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from actions.options import add_arguments, read_arguments
from benchmark.models import Run
from benchmark.runs import services
from benchmark.runs.answer_counts import describe_answers
from benchmark.runs.builders import RUNS
from benchmark.runs.costs import run_cost
from benchmark.runs.hybrid import describe_scores
from benchmark.runs.model_folders import fits
from benchmark.runs.options import RunOptions
from benchmark.runs.rankings import KEEP_SELF, SYNTHETIC, current_queries
from corpus.errors import BadInput
from corpus.formats.files import read_text
from corpus.models import Collection
from corpus.search.selves import find_selves
from jobs.models import JobState
from judges.campaigns.estimates import Estimate
from judges.management.job_command import JobCommand


class Command(JobCommand):
    name, kind = "retrieve", RUNS
    start = staticmethod(services.make_run)
    help = "Rank a collection's queries with a built-in system. Running the command again continues where it stopped."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options of a run, of agreement and of waiting."""
        parser.add_argument("collection", help="name of the collection")
        add_arguments(parser, RunOptions)
        parser.add_argument(
            "--instructions",
            type=Path,
            metavar="F",
            help="Instructions by query, in place of the queries' own: JSON Lines of {query_id, instruction}",
        )
        self.add_agreement(parser)
        self.add_wait(parser)

    def run(self, **arguments: Any) -> object:
        """Start or resume the run once its cost is agreed to; with --wait stay until the end."""
        # Here --name is the run's name, and `collection` has the name that JobCommand expects as `name`.
        return super().run(**arguments | {"name": arguments["collection"], "run_arguments": arguments})

    def wanted(self, arguments: dict[str, Any]) -> RunOptions:
        """Return the options of the run; without a system, that of the model folder. Raises BadInput."""
        run_arguments, derived = arguments["run_arguments"], dict[str, Any]()
        if run_arguments["instructions"]:
            derived["instructions"] = read_instructions(run_arguments["instructions"])
        if run_arguments["model"] and not run_arguments["system"]:
            # A folder with a run to rerank is a reranker.
            if run_arguments["run"]:
                system = Run.Kind.RERANK_FOLDER
            else:
                is_sparse = fits(Run.Kind.SPARSE, Path(run_arguments["model"]))
                system = Run.Kind.SPARSE if is_sparse else Run.Kind.EMBEDDING
            derived["system"] = str(system)
        return read_arguments(RunOptions, run_arguments, **derived)

    def begin(self, collection: Collection, options: RunOptions) -> Run:
        """Start or resume the run; say which where the day has several runs from the endpoint."""
        run: Run = super().begin(collection, options)
        if options.is_dated and run.fencing_token:
            self.note(f"run {run.name} was not finished: resumed")
        elif options.is_dated and run.name != options.run_name:
            self.note(f"run {run.name}: today has an earlier run from {options.endpoint}, which stays as it is")
        return run

    def tell_estimate(
        self, collection: Collection, expected: Estimate | None, options: dict[str, Any]
    ) -> dict[str, str] | None:
        """Return the document of --estimate, with the system."""
        document = super().tell_estimate(collection, expected, options)
        return document and {**document, "system": self.wanted(options).system}

    def summarise(self, run: Run) -> tuple[str, dict[str, Any]]:
        """Return the contents and the cost of the run, as text and as a document."""
        cost, queries = run_cost(run), current_queries(run.collection, {SYNTHETIC: True})
        paid, _timed = cost.pop("paid"), cost.pop("timed")
        document = {
            "collection": run.collection.name,
            "run": run.name,
            "system": run.kind,
            "state": run.state,
            "depth": run.depth,
            "instruction": run.instruction,
            "own_document": 0 if run.recipe.get(KEEP_SELF) else len(find_selves(run.collection)),
            "synthetic_left_out": len(queries) - len(current_queries(run.collection, run.recipe)),
            **cost,
            "cost": paid.usd if paid else 0.0,
        }
        if run.kind == Run.Kind.HYBRID:
            document["scores"] = run.recipe.get("scores")
        if run.kind == Run.Kind.SEARCH:
            document |= {"endpoint": run.recipe["endpoint"], "counts": run.counts}
        if run.state != JobState.READY:
            return f"run {run.name}: {run.state}", document
        seconds, tokens = cost["seconds_per_query"], cost["tokens_in"] + cost["tokens_out"]
        own_documents, synthetic = document["own_document"], document["synthetic_left_out"]
        parts = [
            f"{run.name}: {cost['queries']:,} queries, {cost['documents']:,} documents",
            f"{own_documents:,} without the query itself" if own_documents else "",
            f"{synthetic:,} that models wrote left out (--synthetic ranks them)" if synthetic else "",
            f"{cost['empty']:,} without a document" if cost["empty"] else "",
            "" if seconds is None else f"{seconds * 1000:,.1f} ms a query",
            f"{tokens:,} tokens" if tokens else "",
            f"{cost['calls']:,} calls, {paid}" if cost["calls"] else "",
        ]
        lines = [", ".join(filter(None, parts)), describe_scores(run), *describe_answers(run)]
        return "; ".join(filter(None, lines)), document


def read_instructions(file: Path) -> dict[str, str]:
    """Read instructions by query id. Raises BadInput with the line."""
    instructions: dict[str, str] = {}
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            query, instruction = fields["query_id"], fields["instruction"]
        except (ValueError, TypeError, KeyError):
            raise BadInput(f"{file}:{number}: not a JSON object with query_id and instruction") from None
        if not isinstance(query, str) or not isinstance(instruction, str) or query in instructions:
            raise BadInput(f"{file}:{number}: query_id and instruction must be texts, and each query may appear once")
        instructions[query] = instruction
    if not instructions:
        raise BadInput(f"{file}: there is no line; each is {{query_id, instruction}}")
    return instructions
