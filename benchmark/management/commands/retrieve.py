"""`retrieve NAME --system KIND`: make a run for a collection's queries with one of our systems."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from actions.options import split_names
from benchmark.models import Run
from benchmark.runs import builders
from benchmark.runs.builders import RUNS
from benchmark.runs.costs import run_cost
from benchmark.runs.hybrid import SCORES, scores_told
from benchmark.runs.rankings import KEEP_SELF, SYNTHETIC, current_queries
from benchmark.runs.searching import BM25
from benchmark.runs.sparse import is_sparse
from corpus.collections.audit_log import shell_user
from corpus.errors import BadInput
from corpus.formats.files import read_text
from corpus.models import Collection
from corpus.search.selves import find_selves
from jobs.models import JobState
from judges.campaigns.estimates import Estimate
from judges.management.job_command import JobCommand

# Options that go into the recipe as they are; the system says which of them it takes.
RECIPE = (
    *("model", "device", "k1", "b", "method", "judge", "samples", "run", "top", "scores"),
    *("instruction", "query_prefix", "document_prefix", "budget", "max_calls", "prompt", "batch_size"),
    "keep_self",
    "synthetic",
)


class Command(JobCommand):
    name = "retrieve"
    act = RUNS.started
    kind = RUNS
    help = "Rank a collection's queries with a built-in system. Running the command again continues where it stopped."

    def arguments(self, parser: CommandParser) -> None:
        """Add the system, the options of its recipe, and those of the work."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--system",
            choices=[str(kind) for kind in builders.KINDS],
            help="kind of system (with --model: what the folder is; else it is required)",
        )
        parser.add_argument("--model", metavar="FOLDER", help="for embedding, sparse and rerank-folder: model folder")
        parser.add_argument("--device", choices=("cpu", "cuda"), help="where the model runs (default: cpu)")
        parser.add_argument(
            "--batch-size", type=int, metavar="N", help="for sparse and rerank-folder: texts per batch (default: 32)"
        )
        parser.add_argument("--prompt", help="for rerank-folder: how a model is asked that does not say so itself")
        parser.add_argument(
            "--name", dest="as_name", metavar="RUN", help="name of the run (default: named after its system)"
        )
        parser.add_argument(
            "--depth", type=int, default=builders.DEPTH, help="number of documents per query (default: 100)"
        )
        parser.add_argument("--k1", type=float, help="BM25's k1 (default: 1.5; pyserini uses 0.9)")
        parser.add_argument("--b", type=float, help="BM25's b (default: 0.75; pyserini uses 0.4)")
        parser.add_argument(
            "--method", help="method; for hybrid: minmax, zscore or sum; for rewrite: hyde, query2doc or mugi"
        )
        parser.add_argument(
            "--runs",
            type=split_names,
            default=(),
            help="for hybrid: the BM25 run (whose k1 and b are used) and the reranked run, separated by a comma",
        )
        parser.add_argument(
            "--weights",
            type=split_names,
            default=(),
            help="for hybrid: weights of BM25 and of the reranked run, for example 0.1,0.9",
        )
        parser.add_argument("--judge", help="for rewrite, reasoning, dense and rerank: judge whose model is called")
        parser.add_argument("--samples", type=int, help="for rewrite: number of texts per query")
        parser.add_argument(
            "--over", metavar="bm25|dense:JUDGE", help="for rewrite and reasoning: system that searches"
        )
        parser.add_argument("--run", help="for rerank and rerank-folder: run to rerank; for hybrid: the reranked run")
        parser.add_argument(
            "--scores", choices=SCORES, help="for hybrid: kind of the run's scores (default: as its model writes them)"
        )
        parser.add_argument("--top", type=int, help="for rerank and rerank-folder: documents per query")
        parser.add_argument("--instruction", help="for dense, rerank and rerank-folder: instruction for the model")
        parser.add_argument(
            "--instructions",
            type=Path,
            metavar="F",
            help="for rerank and rerank-folder: JSON Lines of {query_id, instruction}, in place of the queries' own",
        )
        parser.add_argument("--query-prefix", help="of dense and embedding")
        parser.add_argument("--document-prefix", help="of dense and embedding")
        parser.add_argument("--budget", type=float, help="maximum cost in USD")
        parser.add_argument("--max-calls", type=int, help="maximum number of calls")
        parser.add_argument(
            "--keep-self",
            action="store_true",
            default=None,
            help="keep a query that is a document in its own ranking (default: it is left out)",
        )
        parser.add_argument(
            "--synthetic",
            action="store_true",
            default=None,
            help="rank queries that models wrote, too: synthetic ones and keyword forms (default: left out)",
        )
        parser.add_argument("--estimate", action="store_true", help="print the expected cost and create nothing")
        parser.add_argument("--yes", action="store_true", help="start a paid run without asking for confirmation")
        parser.add_argument("--wait", action="store_true", help="wait for the run and show progress")

    def wanted(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the run's name, kind, depth and recipe. Raises BadInput."""
        options["system"] = options["system"] or (system_of_folder(options) if options["model"] else None)
        if options["system"] is None:
            raise BadInput(f"--system is required: choose one of {', '.join(map(str, builders.KINDS))}")
        named = {"name": options["as_name"] or name_for(options), "kind": options["system"], "depth": options["depth"]}
        return recipe_from_options(options) | named

    def begin(self, collection: Collection, options: Any) -> Run:
        """Start the run, or join it."""
        return RUNS.start_or_join(collection, options, shell_user())

    def tell_estimate(
        self, collection: Collection, expected: Estimate | None, options: dict[str, Any]
    ) -> dict[str, str] | None:
        """Return the document of --estimate, with the system."""
        told = super().tell_estimate(collection, expected, options)
        return told and {**told, "system": options["system"]}

    def summarise(self, run: Run) -> tuple[str, dict[str, Any]]:
        """Say what the run has and what it cost."""
        cost = run_cost(run)
        paid, _timed = cost.pop("paid"), cost.pop("timed")
        document = {
            "collection": run.collection.name,
            "run": run.name,
            "system": run.kind,
            "state": run.state,
            "depth": run.depth,
            "instruction": run.instruction,
            "own_document": 0 if run.recipe.get(KEEP_SELF) else len(find_selves(run.collection)),
            "synthetic_left_out": count_left_out(run),
            **cost,
            "cost": paid.usd if paid else 0.0,
        }
        if run.kind == Run.Kind.HYBRID:
            document["scores"] = run.recipe.get("scores")
        told = f", {cost['calls']:,} calls, {paid}" if cost["calls"] else ""
        line = summarise_run(run, document, told) if run.state == JobState.READY else f"run {run.name}: {run.state}"
        return line, document


def recipe_from_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the run's recipe, with only the options that were given."""
    given = {key: options[key] for key in RECIPE if options[key] is not None}
    given |= {key: list(options[key]) for key in ("runs", "weights") if options[key]}
    if options["instructions"]:
        given["instructions"] = read_instructions(options["instructions"])
    if options["over"]:
        kind, _, judge = options["over"].partition(":")
        given["over"] = {"kind": kind, **({"judge": judge} if judge else {})}
    of_bm25 = {key: given[key] for key in ("k1", "b") if key in given}
    if of_bm25 and options["system"] in (Run.Kind.REWRITE, Run.Kind.REASONING):
        given = {key: value for key, value in given.items() if key not in of_bm25}
        given["over"] = {**given.get("over", BM25), **of_bm25}
    return given


def read_instructions(file: Path) -> dict[str, str]:
    """Return instructions by query id. Raises BadInput with the line."""
    found: dict[str, str] = {}
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            query, instruction = fields["query_id"], fields["instruction"]
        except (ValueError, TypeError, KeyError):
            raise BadInput(f"{file}:{number}: not a JSON object with query_id and instruction") from None
        if not isinstance(query, str) or not isinstance(instruction, str) or query in found:
            raise BadInput(f"{file}:{number}: query_id and instruction are texts, and a query stands once")
        found[query] = instruction
    if not found:
        raise BadInput(f"{file}: there is no line; each is {{query_id, instruction}}")
    return found


def system_of_folder(options: dict[str, Any]) -> str:
    """Return the kind of system that a model folder is of: with a run to rerank, a reranker."""
    if options["run"]:
        return str(Run.Kind.RERANK_FOLDER)
    return str(Run.Kind.SPARSE if is_sparse(Path(options["model"])) else Run.Kind.EMBEDDING)


def name_for(options: dict[str, Any]) -> str:
    """Return the default name of a run: bm25, hybrid-zscore, hyde-JUDGE, RUN+JUDGE, sparse-FOLDER, RUN+FOLDER."""
    system, method, judge = options["system"], options["method"], options["judge"]
    if system == Run.Kind.RERANK:
        return f"{options['run']}+{judge}"
    folder = Path(options["model"] or "model").name
    if system == Run.Kind.RERANK_FOLDER:
        return f"{options['run']}+{folder}"
    if system in (Run.Kind.EMBEDDING, Run.Kind.SPARSE):
        return f"{'dense' if system == Run.Kind.EMBEDDING else 'sparse'}-{folder}"
    parts = {Run.Kind.HYBRID: (system, method or "minmax"), Run.Kind.REWRITE: (method or "hyde", judge)}
    return "-".join(part for part in parts.get(system, (system, judge)) if part)


def count_left_out(run: Run) -> int:
    """Return how many of the collection's queries models wrote and the run leaves out."""
    every = current_queries(run.collection, {SYNTHETIC: True})
    return len(every) - len(current_queries(run.collection, run.recipe))


def summarise_run(run: Run, document: dict[str, Any], paid: str = "") -> str:
    """A line for people on a run that is ready."""
    seconds = document["seconds_per_query"]
    took = "" if seconds is None else f", {seconds * 1000:,.1f} ms a query"
    tokens = document["tokens_in"] + document["tokens_out"]
    own = f", {document['own_document']:,} without the query itself" if document["own_document"] else ""
    left = document["synthetic_left_out"]
    own += f", {left:,} that models wrote left out (--synthetic ranks them)" if left else ""
    missing = own + (f", {document['empty']:,} without a document" if document["empty"] else "")
    asked = (f", {tokens:,} tokens" if tokens else "") + paid
    found = f"{run.name}: {document['queries']:,} queries, {document['documents']:,} documents{missing}{took}{asked}"
    return "; ".join(filter(None, [found, scores_told(run)]))
