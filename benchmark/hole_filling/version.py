"""The filled version: what stood before, and every settled pair with the origin of its label."""

import numpy as np

from benchmark import qrels
from benchmark.hole_filling.funnel import labels_of
from benchmark.models import Filling, Qrels
from benchmark.qrels.reading import ReadQrel


def filled_rows(filling: Filling) -> dict[int, ReadQrel]:
    """By query: the rows before, with what is settled now."""
    rows = qrels.load_rows(filling.before)
    added: dict[int, list[tuple[int, int, str]]] = {}
    for query, document, grade, origin in labels_of(filling):
        added.setdefault(query, []).append((document, grade, origin))
    for query, new in added.items():
        old = rows.get(query, ReadQrel(np.empty(0, np.int64), np.empty(0, np.int16), []))
        documents = np.concatenate([old.documents, np.array([one[0] for one in new], dtype=np.int64)])
        grades = np.concatenate([old.grades, np.array([one[1] for one in new], dtype=np.int16)])
        origins = [*old.origins, *(one[2] for one in new)]
        order = np.argsort(documents)
        rows[query] = ReadQrel(documents[order], grades[order], [origins[at] for at in order])
    return rows


def is_current(filling: Filling) -> bool:
    """Whether its filled version is what would come of it now."""
    return filling.after is not None and qrels.content_hash(filled_rows(filling)) == filling.after.content_hash


def make_version(filling: Filling, by: str) -> Qrels:
    """A version of its own for each filling."""
    kind, rows = Qrels.Kind.FILLED, filled_rows(filling)
    return qrels.store_version(filling.collection, kind, rows, parent=filling.before, by=by, once=False)
