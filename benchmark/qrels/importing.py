"""Import of a qrels file as a version: it is used to measure, and not mixed with the collection's reference grades."""

from pathlib import Path

import numpy as np
from django.utils.translation import gettext as _

from benchmark.models import Qrels
from benchmark.qrels.reading import ReadQrel
from benchmark.qrels.versions import ORIGINAL, store_version
from benchmark.runs.files import describe_line, list_problems
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing import grades as reading
from corpus.models import Collection, Document, Query


def import_version(collection: Collection, path: Path, *, note: str = "", by: str = "") -> Qrels:
    """Store a version from TREC or BEIR qrels or CSV. Grades below 0 mean "not judged": they are skipped and counted.

    Raises BadInput, and stores nothing, for rows that cannot be read, unknown ids, and pairs listed
    twice: the first 20 lines and the total.
    """
    source = FileSource(path)
    file_rows = list(reading.read_grades(source, collection.grades))
    if not file_rows:
        raise BadInput(_("%(file)s contains no grades") % {"file": path})
    queries = _primary_keys(Query, collection, {row.query for row in file_rows})
    documents = _primary_keys(Document, collection, {row.document for row in file_rows})
    problems: list[str] = []
    graded: dict[int, dict[int, int]] = {}
    for row in file_rows:
        problem = row.problem
        if not problem and row.query not in queries:
            problem = _('no query has the id "%(id)s"') % {"id": row.query}
        elif not problem and row.document not in documents:
            problem = _('no document has the id "%(id)s"') % {"id": row.document}
        elif not problem:
            query_grades = graded.setdefault(queries[row.query], {})
            if documents[row.document] in query_grades:
                twice = _('document "%(document)s" is listed twice for query "%(query)s"')
                problem = twice % {"document": row.document, "query": row.query}
            query_grades[documents[row.document]] = row.grade
        if problem:
            problems.append(describe_line(row.line, problem))
    if problems:
        raise BadInput(list_problems(path, problems))
    # trec_eval takes a grade below 0 for a pair in the pool that nobody judged.
    unjudged = sum(row.grade < 0 for row in file_rows)
    if unjudged == len(file_rows):
        message = _("%(file)s contains no grades: all of them are below 0, which means not judged")
        raise BadInput(message % {"file": path})
    rows = {}
    for query, query_grades in graded.items():
        judged_pairs = sorted((document, grade) for document, grade in query_grades.items() if grade >= 0)
        keys, grades = np.array(judged_pairs, dtype=np.int64).reshape(-1, 2).T
        rows[query] = ReadQrel(keys, grades.astype(np.int16), [ORIGINAL] * len(judged_pairs))
    return store_version(collection, Qrels.Kind.IMPORTED, rows, note=note or path.name, by=by, unjudged=unjudged)


def _primary_keys(model: type[Query] | type[Document], collection: Collection, names: set[str]) -> dict[str, int]:
    """Return primary keys of the current rows by their external ids."""
    rows = model._default_manager.filter(collection=collection, is_current=True, external_id__in=list(names))
    return dict(rows.values_list("external_id", "pk"))
