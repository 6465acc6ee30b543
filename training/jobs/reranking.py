"""Reranking of a run by a trained model, resumed where an earlier process stopped."""

import fcntl
import json
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.core.validators import MinValueValidator

from benchmark.runs.files import read_qrels, read_run, write_run
from corpus.errors import BadInput, BadOption
from corpus.models import Collection, Document, Query
from training.jobs.inputs import full_text
from training.published.protocol import ServingRequest
from training.published.scorer import PRECISIONS, check_prompt
from training.recipes.job_folder import count_whole_lines, read_lines

EVERY_S = 2.0  # Seconds between two lines of progress.
BATCH = 5000  # Ids in one statement: PostgreSQL's limit is 65,535 parameters.


def add_scoring(parser: CommandParser) -> None:
    """Add the options of a command that reranks runs."""
    parser.add_argument("--depth", type=int, default=100, help="number of documents per query (default: 100)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where models run (default: cpu)")
    precision = "number format (default: fp32 on a CPU, bf16 on a GPU)"
    parser.add_argument("--precision", choices=PRECISIONS, default="auto", help=precision)


def rerank_run(
    model: Path,
    run: Path,
    collection: Collection,
    out: Path,
    *,
    say: Callable[[str], Any],
    depth: int,
    insert: Path | None = None,
    device: str = "cpu",
    precision: str = "auto",
    prompt: str = "",
    together: int | None = None,
) -> dict[str, Any]:
    """Write a run of the model's raw fp32 margins, or of the scores it ranks by, and return a summary.

    1. Read the first `depth` documents of each query, and add the relevant documents of the qrels `insert`.
    2. Score the queries that an earlier process has not scored, `together` documents at a time.
    3. Write the run, and remove the file of partial scores.

    Raises BadInput.
    """
    if out.exists():
        raise BadInput(f"{out} exists: name a new file")
    if depth < 1:
        raise BadOption("depth", MinValueValidator.message % {"limit_value": 1})
    if together is not None and together < 1:
        raise BadOption("batch_size", MinValueValidator.message % {"limit_value": 1})
    # `read_run` returns the best documents of each query first.
    rankings = {query: list(ranked)[:depth] for query, ranked in read_run(run).items()}
    inserted: dict[str, list[str]] = {}
    for query, grades in read_qrels(insert).items() if insert else ():
        ranked = set(rankings.get(query, ()))
        missing = [doc_id for doc_id, grade in grades.items() if grade > 0 and doc_id not in ranked]
        if query in rankings and missing:
            rankings[query] += missing
            inserted[query] = missing
    queries, documents = load_texts(collection, rankings)
    from training.published.opening import open_scorer

    if (model / "config.json").exists():
        check_prompt(model, prompt)
    scorer = open_scorer(model, device, precision=precision, prompt=prompt)
    requests = {
        query: ServingRequest(
            queries[query].text,
            [documents[doc_id] for doc_id in ids],
            collection.relevance.of(queries[query]).statement,
        )
        for query, ids in rankings.items()
    }
    digest = fingerprint(model, rankings, requests, scorer.precision, scorer.prompt_name)
    started_at, reported_at = time.monotonic(), 0.0
    with PartialRun(out, digest) as part:
        resumed_after = len(part.scored)
        if resumed_after:
            say(f"{resumed_after:,} of {len(rankings):,} queries are scored already: going on after them")
        for query, ids in list(rankings.items())[resumed_after:]:
            (scores,) = scorer.score([requests[query]], together or 0)
            margins, cut = [score.margin for score in scores], sum(score.is_cut for score in scores)
            part.add({"query_id": query, "doc_ids": ids, "margins": margins, "cut": cut})
            if time.monotonic() - reported_at > EVERY_S:
                reported_at = time.monotonic()
                say(f"{len(part.scored)} of {len(rankings)} queries")
        ranking = {line["query_id"]: dict(zip(line["doc_ids"], line["margins"], strict=True)) for line in part.scored}
        lines = write_run(out, ranking, model.name)
        if inserted:
            out.with_name(out.name + ".inserted.json").write_text(json.dumps(inserted) + "\n")
        part.remove()
    return {
        "out": str(out),
        "queries": len(ranking),
        "resumed_after": resumed_after,
        "pairs": lines,
        "cut": sum(line["cut"] for line in part.scored),
        "inserted": sum(map(len, inserted.values())),
        "seconds": round(time.monotonic() - started_at, 3),
        "model": scorer.words,
        "precision": scorer.precision,
        "prompt": scorer.prompt_name,
        "note": scorer.describe_margins([margin for line in part.scored for margin in line["margins"]]),
    }


def describe_rerank(summary: Mapping[str, Any]) -> str:
    """Return the summary of rerank_run as one line."""
    notes = ", ".join(filter(None, (summary["model"], f"{summary['cut']:,} documents cut" if summary["cut"] else "")))
    size = f"{summary['pairs']:,} pairs of {summary['queries']:,} queries"
    return f"{summary['out']}: {size} in {summary['seconds']:.1f} s ({notes})"


class PartialRun:
    """The queries scored so far, one line each in OUT.part, from which an interrupted rerank resumes.

    The first line is a fingerprint of model, run and texts, so that scores of different ones are not mixed.
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
        """Store one query's scores."""
        self._write(line)
        self.scored.append(line)

    def _write(self, line: dict[str, Any]) -> None:
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def remove(self) -> None:
        """Remove the file after the run was written."""
        self.path.unlink()


def fingerprint(
    model: Path, rankings: Mapping[str, list[str]], requests: Mapping[str, ServingRequest], precision: str, prompt: str
) -> str:
    """Return a hash of everything that determines the scores, with the size and time of weight files."""
    digest = sha256(f"{precision} {prompt}".encode())
    for path in sorted(model.glob("*")):
        if path.suffix == ".json" and path.is_file():
            digest.update(path.read_bytes())
        elif path.is_file():
            digest.update(f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
    for query, ids in rankings.items():
        request = requests[query]
        digest.update(json.dumps([query, ids, request.query, request.instruction, list(request.documents)]).encode())
    return digest.hexdigest()


def load_texts(collection: Collection, rankings: dict[str, list[str]]) -> tuple[dict[str, Query], dict[str, str]]:
    """Return the queries and the documents' texts by id. Raises BadInput for ids that the collection does not have."""
    query_rows = Query.objects.filter(collection=collection, is_current=True, external_id__in=list(rankings))
    queries = {query.external_id: query for query in query_rows}
    doc_ids = sorted({doc_id for ids in rankings.values() for doc_id in ids})
    documents: dict[str, str] = {}
    for start in range(0, len(doc_ids), BATCH):
        batch = doc_ids[start : start + BATCH]
        document_rows = Document.objects.filter(collection=collection, is_current=True, external_id__in=batch)
        documents |= {document.external_id: full_text(document) for document in document_rows.iterator()}
    unknown = [f"query {query!r}" for query in rankings if query not in queries]
    unknown += [f"document {doc_id!r}" for doc_id in doc_ids if doc_id not in documents]
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise BadInput(f"Collection {collection.name} has no {unknown[0]}{more}: rerank a run over its own documents")
    return queries, documents
