"""A run scored anew by a trained model, going on where a process stopped."""

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
from training.jobs.folder import count_whole_lines, read_lines
from training.jobs.inputs import full_text
from training.serving.protocol import ServingRequest
from training.serving.scorer import PRECISIONS, check_prompt

EVERY_S = 2.0  # Between two lines of progress.
BATCH = 5000  # Ids in one statement: PostgreSQL takes 65,535 parameters at most.


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
    """Write a run of raw fp32 margins, or of what the model ranks by; return what is said of it. Raises BadInput.

    `insert`: qrels whose relevant documents are added; `together`: documents scored at a time.
    """
    if out.exists():
        raise BadInput(f"{out} exists: name a new file")
    if depth < 1:
        raise BadOption("depth", MinValueValidator.message % {"limit_value": 1})
    if together is not None and together < 1:
        raise BadOption("batch_size", MinValueValidator.message % {"limit_value": 1})
    # A run is read with the best documents first.
    wanted = {query: list(ranked)[:depth] for query, ranked in read_run(run).items()}
    inserted: dict[str, list[str]] = {}
    for query, graded in read_qrels(insert).items() if insert else ():
        missing = [one for one, grade in graded.items() if grade > 0 and one not in set(wanted.get(query, ()))]
        if query in wanted and missing:
            wanted[query] += missing
            inserted[query] = missing
    queries, documents = load_texts(collection, wanted)
    from training.serving.opening import open_scorer

    if (model / "config.json").exists():
        check_prompt(model, prompt)
    scorer = open_scorer(model, device, precision=precision, prompt=prompt)
    requests = {
        query: ServingRequest(
            queries[query].text,
            [documents[one] for one in ids],
            collection.relevance.of(queries[query]).statement,
        )
        for query, ids in wanted.items()
    }
    digest = fingerprint(model, wanted, requests, scorer.precision, scorer.prompt_name)
    began, said = time.monotonic(), 0.0
    with PartialRun(out, digest) as part:
        before = len(part.scored)
        if before:
            say(f"{before:,} of {len(wanted):,} queries are scored already: going on after them")
        for query, ids in list(wanted.items())[before:]:
            (scores,) = scorer.score([requests[query]], together or 0)
            margins, cut = [score.margin for score in scores], sum(score.is_cut for score in scores)
            part.add({"query_id": query, "doc_ids": ids, "margins": margins, "cut": cut})
            if time.monotonic() - said > EVERY_S:
                said = time.monotonic()
                say(f"{len(part.scored)} of {len(wanted)} queries")
        ranking = {line["query_id"]: dict(zip(line["doc_ids"], line["margins"], strict=True)) for line in part.scored}
        lines = write_run(out, ranking, model.name)
        if inserted:
            out.with_name(out.name + ".inserted.json").write_text(json.dumps(inserted) + "\n")
        part.remove()
    return {
        "out": str(out),
        "queries": len(ranking),
        "resumed_after": before,
        "pairs": lines,
        "cut": sum(line["cut"] for line in part.scored),
        "inserted": sum(map(len, inserted.values())),
        "seconds": round(time.monotonic() - began, 3),
        "model": scorer.words,
        "precision": scorer.precision,
        "prompt": scorer.prompt_name,
        "note": scorer.describe_margins([margin for line in part.scored for margin in line["margins"]]),
    }


def describe_rerank(done: Mapping[str, Any]) -> str:
    """Return what rerank_run did, in a line."""
    how = ", ".join(filter(None, (done["model"], f"{done['cut']:,} documents cut" if done["cut"] else "")))
    return f"{done['out']}: {done['pairs']:,} pairs of {done['queries']:,} queries in {done['seconds']:.1f} s ({how})"


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
