"""Import of TREC runs from files: all of them, or none and a list of problems by line."""

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
# A run with counts for JSON output: lines stored and skipped (`excluded`: their query excludes the
# document, as in BRIGHT), and `missing_queries` without results, which count 0.
ImportedRun = tuple[Run, dict[str, Any]]


def name_of(path: Path) -> str:
    """Return the name of a run from its file, without the usual endings."""
    name = path.name
    # A name may have several endings: run.txt.gz.
    while (shorter := Path(name).stem) != name and name.lower().endswith(ENDINGS):
        name = shorter
    return name


def paths_by_name(files: Sequence[str]) -> dict[str, Path]:
    """Return paths by run name, from `FILE` or `NAME=FILE`. Raises BadInput when two runs share a name."""
    paths: dict[str, Path] = {}
    for text in files:
        before, equals, after = text.partition("=")
        is_named = bool(equals) and not Path(text).exists()
        name, path = (before, Path(after)) if is_named else (name_of(Path(text)), Path(text))
        if name in paths:
            raise BadInput(f"Two runs would be called {name}. Name one of them, as in other={path}.")
        paths[name] = path
    return paths


def run_name(file: str) -> str:
    """Return a run's name from a file's: without folder and endings, and with `-` for invalid characters."""
    stem = name_of(Path(file.replace("\\", "/")))
    name = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._+-") else "-" for letter in stem)
    return name.lstrip("._+-")[:100] or "run"


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

    `skip_unknown` skips and counts lines whose query or document is not in the collection.
    `columns`: the meaning of a table's columns without a known header.
    """
    for name in files:
        builders.check_name(collection, name)
    current = Query.objects.filter(collection=collection, is_current=True)
    queries: dict[str, int] = dict(current.values_list("external_id", "pk"))
    files_read, problems = {}, []
    for name, path in files.items():
        try:
            file = RunFile(path, columns)
        except BadInput as error:
            problems.append(str(error))
            continue
        documents = _document_keys(collection, file.documents)
        is_known = np.array([name in documents for name in file.documents], dtype=bool)
        for query, run_lines in file.queries.items() if not skip_unknown else ():
            if query not in queries:
                for line in run_lines.lines:
                    file.problems.add(line, _('no query has the id "%(id)s"') % {"id": query})
                continue
            # Positions are int32, which halves the memory for a file of millions of lines.
            for position in np.flatnonzero(~is_known[np.frombuffer(run_lines.documents, dtype=np.int32)]):
                message = _('no document has the id "%(id)s"') % {"id": file.documents[run_lines.documents[position]]}
                file.problems.add(run_lines.lines[position], message)
        if file.problems:
            problems.append(file.problems.describe(path))
        files_read[name] = (file, documents)
        progress("lines of runs", sum(run_file.lines for run_file, _ in files_read.values()))
    if problems:
        raise BadInput("; ".join(problems))
    # All runs or none: every file was read, and all problems were reported at once, before the first run is stored.
    with transaction.atomic():
        imported = []
        for name, (file, documents) in files_read.items():
            run = Run(collection=collection, name=name, instruction=instruction, made_by=by)
            run.recipe = {rankings.KEEP_SELF: True} if keep_self else {}
            imported.append(_store_run(run, files[name], file, queries, documents))
        return imported


def keep_runs(collection: Collection, sources: Sequence[FileSource], options: ImportOptions) -> tuple[int, list[str]]:
    """Store the run files of an import as runs named after their files; return the number stored, and taken names.

    A file whose name a run already has is skipped. Lines of ranks below those that became pairs may
    name unknown queries or documents.
    """
    current = Query.objects.filter(collection=collection, is_current=True)
    queries = dict(current.values_list("external_id", "pk"))
    new_count, taken_names = 0, []
    for source in sources:
        name = re.sub(r"[^A-Za-z0-9._+-]+", "-", name_of(Path(source.name))).strip("-.")[:60] or "run"
        if builders.find_run(collection, name) is not None:
            taken_names.append(name)
            continue
        builders.check_name(collection, name)
        file = RunFile(source)
        if file.problems:
            raise BadInput(file.problems.describe(Path(source.name)))
        run = Run(collection=collection, name=name)
        run.recipe = {rankings.KEEP_SELF: True} if options.keep_self else {}
        _store_run(run, Path(source.name), file, queries, _document_keys(collection, file.documents))
        new_count += 1
    return new_count, taken_names


def _document_keys(collection: Collection, names: list[str]) -> dict[str, int]:
    """Return primary keys of the collection's documents by their external ids."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT external_id, id FROM corpus_document
               WHERE collection_id = %s AND is_current AND external_id = ANY(%s)""",
            [collection.pk, names],
        )
        return dict(cursor.fetchall())


def _store_run(run: Run, path: Path, file: RunFile, queries: Keys, documents: Keys) -> ImportedRun:
    """Save a new run with the rankings of its file."""
    # 0 for a document that is not in the collection; keys begin at 1.
    keys = np.array([documents.get(name, 0) for name in file.documents], dtype=np.int64)
    rankings_by_query, unknown_documents = {}, 0
    for query, run_lines in file.queries.items():
        if query in queries:
            ranked = keys[np.frombuffer(run_lines.documents, dtype=np.int32)]
            is_known = ranked > 0
            unknown_documents += int((~is_known).sum())
            rankings_by_query[queries[query]] = RankedQuery(
                ranked[is_known], np.frombuffer(run_lines.scores, dtype=np.float32)[is_known]
            )
    lines = sum(len(ranking.documents) for ranking in rankings_by_query.values())
    if not lines:
        message = _("%(file)s: no line names both a query and a document of %(name)s; is it another's run?")
        raise BadInput(message % {"file": path, "name": run.collection.name})
    names = {key: name for name, key in documents.items()}
    run.kind, run.state, run.total = Run.Kind.IMPORTED, JobState.READY, len(queries)
    run.save()
    # In batches, so that no statement contains a million rankings.
    remaining_queries, stored_lines = iter(rankings_by_query), 0
    while batch := list(islice(remaining_queries, BATCH)):
        stored_lines += rankings.store(run, {query: rankings_by_query[query] for query in batch}, names)
    unknown = {
        "unknown_queries": sum(
            len(run_lines.lines) for query, run_lines in file.queries.items() if query not in queries
        ),
        "unknown_documents": unknown_documents,
    }
    run.depth = max(len(ranking.documents) for ranking in rankings_by_query.values())
    run.done = len(rankings_by_query)
    run.recipe = {**run.recipe, "file": path.name, "tag": file.tag, "lines": stored_lines, **unknown}
    run.save()
    return run, {
        "name": run.name,
        "queries": run.done,
        "lines": stored_lines,
        **unknown,
        "excluded": lines - stored_lines,
        "missing_queries": len(queries) - run.done,
        "depth": run.depth,
    }


def format_imported(counts: Mapping[str, Any]) -> str:
    """Return a line of text about an imported run."""
    omissions = {
        "lines with an unknown query left out": counts["unknown_queries"],
        "lines with an unknown document left out": counts["unknown_documents"],
        "lines left out that their query excludes or is itself": counts["excluded"],
        "queries missing (they count 0)": counts["missing_queries"],
    }
    lines = f"{counts['name']}: {counts['lines']:,} lines of {counts['queries']:,} queries"
    return ", ".join([lines, *(f"{count:,} {description}" for description, count in omissions.items() if count)])


@contextmanager
def saved_uploads(uploads: Sequence["UploadedFile[Any]"]) -> Iterator[list[Path]]:
    """Save uploads under their own names for the block; BadInput uses the uploaded names."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder, str(number), Path(upload.name or "file").name) for number, upload in enumerate(uploads)]
        for path, upload in zip(paths, uploads, strict=True):
            path.parent.mkdir()
            with path.open("wb") as file:
                file.writelines(upload.chunks())
        try:
            yield paths
        except BadInput as error:
            # Paths of the temporary folder would mean nothing to the person who uploaded the file.
            raise BadInput(re.sub(rf"{re.escape(folder)}/\d+/", "", str(error))) from None
