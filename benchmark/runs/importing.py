"""TREC runs from files into a collection: all of them, or nothing and every problem by its line."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from django.core.files.uploadedfile import UploadedFile
from django.db import connection, transaction
from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import builders, rankings
from benchmark.runs.files import RunFile
from benchmark.runs.rankings import RankedQuery
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing import staging
from corpus.importing.options import ImportOptions
from corpus.models import Collection, Query
from jobs.models import JobState

BATCH = 500  # Queries stored together.
ENDINGS = (".gz", ".run", ".txt", ".trec", ".tsv", ".res", ".out")
Keys = Mapping[str, int]
# A run with what --json says of it: lines stored and left out (`excluded`: their query excludes the
# document, as in BRIGHT), and `missing_queries` that it has nothing for: they count 0.
ImportedRun = tuple[Run, dict[str, Any]]


def name_of(path: Path) -> str:
    """The name that a run gets from its file: without the usual endings."""
    name = path.name
    # Several endings may follow each other: run.txt.gz.
    while (shorter := Path(name).stem) != name and name.lower().endswith(ENDINGS):
        name = shorter
    return name


def paths_by_name(files: Sequence[str]) -> dict[str, Path]:
    """Paths by run name, of `FILE` or `NAME=FILE`. BadInput when two runs share one."""
    paths: dict[str, Path] = {}
    for text in files:
        before, equals, after = text.partition("=")
        is_named = bool(equals) and not Path(text).exists()
        name, path = (before, Path(after)) if is_named else (name_of(Path(text)), Path(text))
        if name in paths:
            raise BadInput(f"Two runs would be called {name}: name one of them, as in other={path}")
        paths[name] = path
    return paths


def run_name(file: str) -> str:
    """Return a file's name as a run's name: without folder and endings, other letters as `-`."""
    stem = name_of(Path(file.replace("\\", "/")))
    fine = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._+-") else "-" for letter in stem)
    return fine.lstrip("._+-")[:100] or "run"


def import_runs(
    collection: Collection,
    files: Mapping[str, Path],
    by: str = "",
    *,
    instruction: str = "",
    skip_unknown: bool = False,
    keep_self: bool = False,
    columns: Mapping[str, str] | None = None,
    progress: staging.ImportProgress = staging.ignore_progress,
) -> list[ImportedRun]:
    """Import runs by their names. Raises BadInput with what is wrong in each file: its first 20 lines, and the total.

    `skip_unknown` leaves out, and counts, lines whose query or document the collection does not
    know. `columns`: what the columns of a table are, where their headers do not say so.
    """
    for name in files:
        builders.check_name(collection, name)
    current = Query.objects.filter(collection=collection, is_current=True)
    queries: dict[str, int] = dict(current.values_list("external_id", "pk"))
    read, wrong = {}, []
    for name, path in files.items():
        try:
            file = RunFile(path, columns)
        except BadInput as error:
            wrong.append(str(error))
            continue
        documents = _document_keys(collection, file.documents)
        known = np.array([name in documents for name in file.documents], dtype=bool)
        for query, of in file.queries.items() if not skip_unknown else ():
            if query not in queries:
                for line in of.lines:
                    file.problems.add(line, _('no query has the id "%(id)s"') % {"id": query})
                continue
            # The arrays of ids are int32: half the memory of a file of millions of lines.
            for at in np.flatnonzero(~known[np.frombuffer(of.documents, dtype=np.int32)]):
                told = _('no document has the id "%(id)s"') % {"id": file.documents[of.documents[at]]}
                file.problems.add(of.lines[at], told)
        if file.problems:
            wrong.append(file.problems.told(path))
        read[name] = (file, documents)
        progress("lines of runs", sum(one.lines for one, _ in read.values()))
    if wrong:
        raise BadInput("; ".join(wrong))
    # All runs or none: every file was read, and every problem of each told at once, before the first run is stored.
    with transaction.atomic():
        found = []
        for name, (file, documents) in read.items():
            run = Run(collection=collection, name=name, instruction=instruction, made_by=by)
            run.recipe = {rankings.KEEP_SELF: True} if keep_self else {}
            found.append(_store_run(run, files[name], file, queries, documents))
        return found


def keep_runs(collection: Collection, sources: Sequence[FileSource], options: ImportOptions) -> tuple[int, list[str]]:
    """Keep the runs of an import as runs, by the names of their files; return how many are new, and names taken.

    A name that has a run already is that run, whatever it holds. Lines of ranks below those that
    became pairs may name unknown texts.
    """
    current = Query.objects.filter(collection=collection, is_current=True)
    queries = dict(current.values_list("external_id", "pk"))
    new, taken = 0, []
    for source in sources:
        name = re.sub(r"[^A-Za-z0-9._+-]+", "-", name_of(Path(source.name))).strip("-.")[:60] or "run"
        if builders.find_run(collection, name) is not None:
            taken.append(name)
            continue
        builders.check_name(collection, name)
        file = RunFile(source)
        if file.problems:
            raise BadInput(file.problems.told(Path(source.name)))
        run = Run(collection=collection, name=name)
        run.recipe = {rankings.KEEP_SELF: True} if options.keep_self else {}
        _store_run(run, Path(source.name), file, queries, _document_keys(collection, file.documents))
        new += 1
    return new, taken


def _document_keys(collection: Collection, names: list[str]) -> dict[str, int]:
    """Primary keys of the documents that the collection knows."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT external_id, id FROM corpus_document
               WHERE collection_id = %s AND is_current AND external_id = ANY(%s)""",
            [collection.pk, names],
        )
        return dict(cursor.fetchall())


def _store_run(run: Run, path: Path, file: RunFile, queries: Keys, documents: Keys) -> ImportedRun:
    """Save the run, which is not in the database yet, with the rankings of its file."""
    # 0 stands for a document that the collection does not know; keys begin at 1.
    keys = np.array([documents.get(one, 0) for one in file.documents], dtype=np.int64)
    found, unknown_documents = {}, 0
    for query, of in file.queries.items():
        if query in queries:
            ranked = keys[np.frombuffer(of.documents, dtype=np.int32)]
            known = ranked > 0
            unknown_documents += int((~known).sum())
            found[queries[query]] = RankedQuery(ranked[known], np.frombuffer(of.scores, dtype=np.float32)[known])
    lines = sum(len(one.documents) for one in found.values())
    if not lines:
        words = _("%(file)s: no line names both a query and a document of %(name)s; is it another's run?")
        raise BadInput(words % {"file": path, "name": run.collection.name})
    names = {key: one for one, key in documents.items()}
    run.kind, run.state, run.total = Run.Kind.IMPORTED, JobState.READY, len(queries)
    run.save()
    # In parts, so that one statement does not hold a million rankings.
    waiting, stored = iter(found), 0
    while part := list(islice(waiting, BATCH)):
        stored += rankings.store(run, {query: found[query] for query in part}, names)
    unknown = {
        "unknown_queries": sum(len(of.lines) for query, of in file.queries.items() if query not in queries),
        "unknown_documents": unknown_documents,
    }
    run.depth = max(len(one.documents) for one in found.values())
    run.done, run.recipe = len(found), {**run.recipe, "file": path.name, "tag": file.tag, "lines": stored, **unknown}
    run.save()
    left_out = {**unknown, "excluded": lines - stored, "missing_queries": len(queries) - len(found)}
    return run, {"name": run.name, "queries": len(found), "lines": stored, **left_out, "depth": run.depth}


def format_imported(counts: Mapping[str, Any]) -> str:
    """A line for people on an imported run."""
    left = {
        "lines with an unknown query left out": counts["unknown_queries"],
        "lines with an unknown document left out": counts["unknown_documents"],
        "lines left out that their query excludes or is itself": counts["excluded"],
        "queries missing (they count 0)": counts["missing_queries"],
    }
    lines = f"{counts['name']}: {counts['lines']:,} lines of {counts['queries']:,} queries"
    return ", ".join([lines, *(f"{number:,} {what}" for what, number in left.items() if number)])


@contextmanager
def saved_uploads(uploads: Sequence["UploadedFile[Any]"]) -> Iterator[list[Path]]:
    """The uploads under their own names in the block; BadInput uses the uploaded names."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder, str(place), Path(one.name or "file").name) for place, one in enumerate(uploads)]
        for path, upload in zip(paths, uploads, strict=True):
            path.parent.mkdir()
            with path.open("wb") as file:
                file.writelines(upload.chunks())
        try:
            yield paths
        except BadInput as error:
            # Paths of the temporary folder would say nothing to whoever uploaded the file.
            raise BadInput(re.sub(rf"{re.escape(folder)}/\d+/", "", str(error))) from None
