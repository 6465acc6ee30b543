"""`rerank --model DIR --run IN --collection NAME --out OUT`: a run scored anew by a trained model."""

import fcntl
import json
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.runs.files import read_qrels, read_run, write_run
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput
from corpus.models import Collection, Document, Query
from training.jobs.folder import count_whole_lines, read_lines
from training.jobs.inputs import full_text
from training.recipes.rendering import PROMPT_NAMES
from training.serving.protocol import ServingRequest
from training.serving.scorer import PRECISIONS, Scorer, check_prompt

EVERY_S = 2.0  # Between two lines of progress.
BATCH = 5000  # Ids in one statement: PostgreSQL takes 65,535 parameters at most.


class Command(QuorumCommand):
    """Score the pairs of a run; write a run of raw fp32 margins, or of what the model ranks by."""

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
        parser.add_argument("--depth", type=int, default=100, help="number of documents per query (default: 100)")
        parser.add_argument(
            "--insert-positives", type=Path, metavar="QRELS", help="qrels whose relevant documents are added to the run"
        )
        parser.add_argument(
            "--device", choices=("cpu", "cuda"), default="cpu", help="where the model runs (default: cpu)"
        )
        precision = "number format (default: fp32 on a CPU, bf16 on a GPU)"
        parser.add_argument("--precision", choices=PRECISIONS, default="auto", help=precision)
        prompt = "how a model is asked that does not say so itself"
        size = "number of documents scored together at most (default: as many as fit by their tokens)"
        parser.add_argument("--batch-size", type=int, metavar="N", help=size)
        parser.add_argument("--prompt", choices=PROMPT_NAMES, default="", help=prompt)

    def run(self, **options: Any) -> object:
        """Check everything, then score query by query."""
        check_options(options)
        out: Path = options["out"]
        collection = collection_named(options["collection"])
        # A run is read with the best documents first.
        wanted = {query: list(found)[: options["depth"]] for query, found in read_run(options["ranking"]).items()}
        inserted = insert_relevant(wanted, options["insert_positives"]) if options["insert_positives"] else {}
        queries, documents = load_texts(collection, wanted)
        from training.serving.opening import open_scorer

        if (options["model"] / "config.json").exists():
            check_prompt(options["model"], options["prompt"])
        scorer = open_scorer(
            options["model"], options["device"], precision=options["precision"], prompt=options["prompt"]
        )
        requests = build_requests(collection, wanted, queries, documents)
        digest = fingerprint(options["model"], wanted, requests, scorer.precision, scorer.prompt_name)
        began = time.monotonic()
        with PartialRun(out, digest) as part:
            before = len(part.scored)
            self._score(part, scorer, wanted, requests, options["batch_size"] or 0)
            cut = sum(line["cut"] for line in part.scored)
            ranking = {
                line["query_id"]: dict(zip(line["doc_ids"], line["margins"], strict=True)) for line in part.scored
            }
            lines = write_run(out, ranking, options["model"].name)
            if inserted:
                out.with_name(out.name + ".inserted.json").write_text(json.dumps(inserted) + "\n")
            part.remove()
        seconds = time.monotonic() - began
        how = ", ".join(filter(None, (scorer.words, f"{cut:,} documents cut" if cut else "")))
        self.say(f"{out}: {lines:,} pairs of {len(ranking):,} queries in {seconds:.1f} s ({how})")
        note = scorer.describe_margins([margin for line in part.scored for margin in line["margins"]])
        if note:
            self.say(note)
        return {
            "out": str(out),
            "queries": len(ranking),
            "resumed_after": before,
            "pairs": lines,
            "cut": cut,
            "inserted": sum(map(len, inserted.values())),
            "seconds": round(seconds, 3),
            "model": scorer.words,
            "precision": scorer.precision,
            "prompt": scorer.prompt_name,
            "note": note,
        }

    def _score(
        self,
        part: "PartialRun",
        scorer: Scorer,
        wanted: Mapping[str, list[str]],
        requests: Mapping[str, ServingRequest],
        together: int,
    ) -> None:
        """Score the queries that are not scored yet."""
        before, told = len(part.scored), 0.0
        if before:
            self.stderr.write(f"{before:,} of {len(wanted):,} queries are scored already: going on after them")
        for query, ids in list(wanted.items())[before:]:
            (scores,) = scorer.score([requests[query]], together)
            margins, cut = [score.margin for score in scores], sum(score.is_cut for score in scores)
            part.add({"query_id": query, "doc_ids": ids, "margins": margins, "cut": cut})
            if time.monotonic() - told > EVERY_S:
                told = time.monotonic()
                self.stderr.write(f"{len(part.scored)} of {len(wanted)} queries")


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse, before anything is loaded, an output that exists and numbers out of range. Raises BadInput."""
    if options["out"].exists():
        raise BadInput(f"{options['out']} exists: name a new file")
    if options["depth"] < 1:
        raise BadInput("--depth must be 1 or more")
    if options["batch_size"] is not None and options["batch_size"] < 1:
        raise BadInput("--batch-size must be 1 or more")


def build_requests(
    collection: Collection,
    wanted: Mapping[str, list[str]],
    queries: Mapping[str, Query],
    documents: Mapping[str, str],
) -> dict[str, ServingRequest]:
    """Return each query's request: its text and documents, and what relevant means for it in this collection."""
    return {
        query: ServingRequest(
            queries[query].text,
            [documents[one] for one in ids],
            collection.relevance.of(queries[query]).statement,
        )
        for query, ids in wanted.items()
    }


class PartialRun:
    """The queries scored so far, a line each in OUT.part, so that an interrupted rerank goes on after them.

    The first line says what is scored by what: another model, run or text would make one ranking of two.
    """

    def __init__(self, out: Path, digest: str) -> None:
        self.path, self.digest = out.with_name(out.name + ".part"), digest
        self.scored: list[dict[str, Any]] = []

    def __enter__(self) -> "PartialRun":
        self.file = self.path.open("a", encoding="utf-8")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.file.close()
            raise BadInput(
                f"{self.path} is being written by another rerank: wait for it, or name another file"
            ) from None
        if count_whole_lines(self.path) == 0:
            self._write({"fingerprint": self.digest})
        else:
            first, *self.scored = read_lines(self.path)
            if first.get("fingerprint") != self.digest:
                self.file.close()
                raise BadInput(f"{self.path} was begun with another model, run, collection or option: remove it first")
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def add(self, line: dict[str, Any]) -> None:
        """Keep one query's scores."""
        self._write(line)
        self.scored.append(line)

    def _write(self, line: dict[str, Any]) -> None:
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def remove(self) -> None:
        """Remove the file once the run is written."""
        self.path.unlink()


def fingerprint(
    model: Path, wanted: Mapping[str, list[str]], requests: Mapping[str, ServingRequest], precision: str, prompt: str
) -> str:
    """Return the hash of all that decides the scores; of weights their size and time."""
    digest = sha256(f"{precision} {prompt}".encode())
    for path in sorted(model.glob("*")):
        if path.suffix == ".json" and path.is_file():
            digest.update(path.read_bytes())
        elif path.is_file():
            digest.update(f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
    for query, ids in wanted.items():
        one = requests[query]
        digest.update(json.dumps([query, ids, one.query, one.instruction, list(one.documents)]).encode())
    return digest.hexdigest()


def insert_relevant(wanted: dict[str, list[str]], path: Path) -> dict[str, list[str]]:
    """Add relevant documents that a query's list lacks; return them by query."""
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
        raise BadInput(f"Collection {collection.name} has no {unknown[0]}{more}: rerank a run over its own documents")
    return queries, documents
