"""`rerank --model DIR --run IN --collection NAME --out OUT`: a run scored anew by a trained model."""

import json
import time
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.runs.files import read_qrels, read_run, write_run
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput
from corpus.models import Collection, Document, Query
from training.jobs.inputs import full_text

EVERY_S = 2.0  # Between two lines of progress.
BATCH = 5000  # Ids in one statement: PostgreSQL takes 65,535 parameters at most.


class Command(QuorumCommand):
    """Score the pairs of a run; write a run of raw fp32 margins."""

    help = "Rerank a TREC run with a model. Scores are raw fp32 margins."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="folder of the model")
        parser.add_argument("--run", type=Path, required=True, metavar="IN", dest="ranking", help="TREC run to rerank")
        parser.add_argument(
            "--collection", required=True, metavar="NAME", help="name of the collection that holds the texts"
        )
        parser.add_argument("--out", type=Path, required=True, metavar="OUT", help="output file; must not exist")
        parser.add_argument("--depth", type=int, default=100, help="number of documents per query (default: 100)")
        parser.add_argument(
            "--insert-positives", type=Path, metavar="QRELS", help="qrels whose relevant documents are added to the run"
        )
        parser.add_argument(
            "--device", choices=("cpu", "cuda"), default="cpu", help="where the model runs (default: cpu)"
        )

    def run(self, **options: Any) -> object:
        """Check everything, then score query by query."""
        if options["out"].exists():
            raise BadInput(f"{options['out']} exists: name a new file")
        if options["depth"] < 1:
            raise BadInput("--depth must be 1 or more")
        collection = collection_named(options["collection"])
        # A run is read with the best documents first.
        wanted = {query: list(found)[: options["depth"]] for query, found in read_run(options["ranking"]).items()}
        inserted = insert_relevant(wanted, options["insert_positives"]) if options["insert_positives"] else {}
        queries, documents = load_texts(collection, wanted)
        from training.serving.scorer import open_scorer

        scorer = open_scorer(options["model"], options["device"])
        began, told, found = time.monotonic(), 0.0, {}
        for number, (query_id, ids) in enumerate(wanted.items(), 1):
            query = queries[query_id]
            instruction = collection.relevance.of(query).statement
            margins = scorer.margins(query.text, [documents[one] for one in ids], instruction)
            found[query_id] = dict(zip(ids, margins, strict=True))
            if time.monotonic() - told > EVERY_S:
                told = time.monotonic()
                self.stderr.write(f"{number} of {len(wanted)} queries")
        lines = write_run(options["out"], found, options["model"].name)
        if inserted:
            mark = options["out"].with_name(options["out"].name + ".inserted.json")
            mark.write_text(json.dumps(inserted) + "\n")
        seconds = time.monotonic() - began
        self.say(f"{options['out']}: {lines:,} pairs of {len(found):,} queries in {seconds:.1f} s ({scorer.words})")
        return {
            "out": str(options["out"]),
            "queries": len(found),
            "pairs": lines,
            "inserted": sum(map(len, inserted.values())),
            "seconds": round(seconds, 3),
            "model": scorer.words,
        }


def insert_relevant(wanted: dict[str, list[str]], path: Path) -> dict[str, list[str]]:
    """Add relevant documents that a query's list lacks (SPEC S9, the ablation); return them by query."""
    found: dict[str, list[str]] = {}
    for query, graded in read_qrels(path).items():
        if query in wanted:
            missing = [one for one, grade in graded.items() if grade > 0 and one not in set(wanted[query])]
            wanted[query] += missing
            if missing:
                found[query] = missing
    return found


def load_texts(collection: Collection, wanted: dict[str, list[str]]) -> tuple[dict[str, Query], dict[str, str]]:
    """Return the queries and the documents' texts. Raises BadInput for ids that the collection does not know."""
    rows = Query.objects.filter(collection=collection, is_current=True, external_id__in=list(wanted))
    queries = {one.external_id: one for one in rows}
    names = sorted({one for ids in wanted.values() for one in ids})
    documents: dict[str, str] = {}
    for start in range(0, len(names), BATCH):
        chosen = names[start : start + BATCH]
        found = Document.objects.filter(collection=collection, is_current=True, external_id__in=chosen)
        documents |= {one.external_id: full_text(one) for one in found.iterator()}
    unknown = [f"query {one!r}" for one in wanted if one not in queries]
    unknown += [f"document {one!r}" for one in names if one not in documents]
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise BadInput(f"collection {collection.name} has no {unknown[0]}{more}: rerank a run over its own documents")
    return queries, documents
