"""A qrels file as a version of its own: it measures, and is not mixed with the collection's reference grades."""

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
    """A version from TREC or BEIR qrels, or CSV, noted as its file. Grades below 0 are not judged: left out, counted.

    Raises BadInput, and stores nothing, for rows that cannot be read, unknown ids, and a pair that
    stands twice: the first 20 lines and the total.
    """
    source = FileSource(path)
    found = list(reading.read_grades(source, collection.grades))
    if not found:
        raise BadInput(_("%(file)s contains no grades") % {"file": path})
    queries = _primary_keys(Query, collection, {row.query for row in found})
    documents = _primary_keys(Document, collection, {row.document for row in found})
    bad: list[str] = []
    graded: dict[int, dict[int, int]] = {}
    for row in found:
        problem = row.problem
        if not problem and row.query not in queries:
            problem = _('no query has the id "%(id)s"') % {"id": row.query}
        elif not problem and row.document not in documents:
            problem = _('no document has the id "%(id)s"') % {"id": row.document}
        elif not problem:
            of_query = graded.setdefault(queries[row.query], {})
            if documents[row.document] in of_query:
                twice = _('document "%(document)s" is listed twice for query "%(query)s"')
                problem = twice % {"document": row.document, "query": row.query}
            of_query[documents[row.document]] = row.grade
        if problem:
            bad.append(describe_line(row.line, problem))
    if bad:
        raise BadInput(list_problems(path, bad))
    # trec_eval takes a grade below 0 for a pair in the pool that nobody judged.
    unjudged = sum(row.grade < 0 for row in found)
    if unjudged == len(found):
        words = _("%(file)s contains no grades: all of them are below 0, which means not judged")
        raise BadInput(words % {"file": path})
    rows = {}
    for query, of_query in graded.items():
        kept = sorted((document, grade) for document, grade in of_query.items() if grade >= 0)
        keys, grades = np.array(kept, dtype=np.int64).reshape(-1, 2).T
        rows[query] = ReadQrel(keys, grades.astype(np.int16), [ORIGINAL] * len(kept))
    return store_version(collection, Qrels.Kind.IMPORTED, rows, note=note or path.name, by=by, unjudged=unjudged)


def _primary_keys(model: type[Query] | type[Document], collection: Collection, names: set[str]) -> dict[str, int]:
    """Primary keys of the current rows by their ids."""
    rows = model._default_manager.filter(collection=collection, is_current=True, external_id__in=list(names))
    return dict(rows.values_list("external_id", "pk"))
