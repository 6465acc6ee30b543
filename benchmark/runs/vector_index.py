"""Search among many vectors by an index in a file that is mapped, not read: faiss's inverted lists (docs/adr/0032).

Up to LARGEST_EXACT documents every vector is compared. Above, only those in the lists nearest to
the query; how many lists is decided by the recall against an exact search, measured on the first
queries.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs.builders import Stopped, Tell
from benchmark.runs.vectors import Found, Places, Store, Vectors, nearest_vectors
from corpus.errors import BadInput
from corpus.models import Collection

LARGEST_EXACT = 200_000  # Documents.
RECALL = 0.99  # Of the documents of an exact search, on average; lists are added until it is reached.
SAMPLED = 50  # Queries that are searched exactly, too.
FIRST_PROBED = 8  # Lists of a query, to begin with.
HELD_BYTES = 1 << 28  # Of vectors, while lists are trained or filled.
ROWS = 8192  # Vectors added at once.
PER_LIST = 39  # Vectors for each list that faiss wants to train on.
KEPT = 2  # Indexes of a collection by one model: two runs may put different words before documents.
TIE = 1e-5  # Scores that differ by less are equal: sums of another order.
VERSION = 1


@dataclass(slots=True)
class ExactSearch:
    """A search that compares all vectors. `rows(begin, end)` gives them in documents' order."""

    documents: int
    rows: Callable[[int, int], Vectors]
    measuring_s: float = 0.0

    def search(self, queries: Vectors, depths: Sequence[int]) -> list[Found]:
        """Return positions and scores of each query's nearest documents, best first."""
        return nearest_vectors(queries, self.documents, self.rows, depths)

    def facts(self) -> dict[str, Any]:
        """Return what a run's page says of it: nothing."""
        return {}


class IndexedSearch:
    """A search in the lists nearest to each query; as many lists as the wanted recall takes on the first queries."""

    def __init__(self, index: Any, exact: ExactSearch, probed: int = FIRST_PROBED) -> None:
        self.index, self.exact = index, exact
        self.lists = int(index.nlist)
        self.probed = min(probed, self.lists)
        self.recalls: list[float] = []
        self.depth = 0
        self.measuring_s = 0.0

    def search(self, queries: Vectors, depths: Sequence[int]) -> list[Found]:
        """Return positions and scores of each query's nearest documents, best first."""
        begin = perf_counter()
        if (left := SAMPLED - len(self.recalls)) > 0:
            self._measure(queries[:left], depths[:left])
        self.measuring_s += perf_counter() - begin
        return self._probe(queries, depths)

    def _probe(self, queries: Vectors, depths: Sequence[int]) -> list[Found]:
        import faiss

        asked = faiss.SearchParametersIVF()
        asked.nprobe = self.probed
        most = min(max(depths), self.exact.documents)
        scores, places = self.index.search(np.ascontiguousarray(queries, dtype=np.float32), most, params=asked)
        found = []
        for own_scores, own_places, depth in zip(scores, places, depths, strict=True):
            there = own_places >= 0  # the lists that were looked at may hold fewer
            kept_scores, kept = own_scores[there], own_places[there].astype(np.int64)
            order = np.lexsort((kept, -kept_scores))[:depth]
            found.append((kept[order], kept_scores[order]))
        return found

    def _measure(self, queries: Vectors, depths: Sequence[int]) -> None:
        """Compare with an exact search, and look at more lists until the recall is as wanted."""
        wanted = self.exact.search(queries, depths)
        while True:
            recalls = list(self.recalls)
            for (_places, exact), (_found, scores) in zip(wanted, self._probe(queries, depths), strict=True):
                # Of equal scores at the end of an exact result any document counts.
                share = (scores >= exact[-1] - TIE).sum() / len(exact) if len(exact) else 1.0
                recalls.append(float(share))
            if float(np.mean(recalls)) >= RECALL or self.probed >= self.lists:
                break
            self.probed = min(2 * self.probed, self.lists)
        self.recalls, self.depth = recalls, max(self.depth, *depths)

    def facts(self) -> dict[str, Any]:
        """Return what a run's page says of it."""
        return {
            "documents": self.exact.documents,
            "lists": self.lists,
            "probed": self.probed,
            "recall": round(float(np.mean(self.recalls)), 4) if self.recalls else None,
            "queries": len(self.recalls),
            "depth": self.depth,
        }


VectorSearcher = ExactSearch | IndexedSearch
NOTHING = ExactSearch(0, lambda _begin, _end: np.empty((0, 0), np.float32))  # Before there are vectors.


def open_search(
    store: Store, places: Places, collection: Collection, probed: int | None, tell: Tell, stopped: Stopped
) -> VectorSearcher | None:
    """Return a search over the vectors at `places`, one a document; None when the work was stopped meanwhile.

    `probed`: how many lists the same run looked at before.
    """
    exact = ExactSearch(len(places), lambda begin, end: store.rows(places[begin:end]))
    if len(places) <= LARGEST_EXACT:
        return exact
    import faiss  # loads libraries that small collections do not need

    # Names that begin with a dot are neither backed up nor published.
    named = sha256(f"{VERSION} {store.size} ".encode() + places.tobytes()).hexdigest()[:20]
    folder = store.folder / ".indexes" / f"{collection.pk}-{named}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        # One process builds it; the others wait, and open it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists() and not _build_index(folder, store, places, tell, stopped):
            return None
        os.utime(folder)
        _remove_old_indexes(folder)
    flags = faiss.IO_FLAG_ONDISK_SAME_DIR | faiss.IO_FLAG_READ_ONLY
    index = faiss.read_index(str(folder / "lists.index"), flags)
    return IndexedSearch(index, exact, probed or FIRST_PROBED)


def _build_index(folder: Path, store: Store, places: Places, tell: Tell, stopped: Stopped) -> bool:
    """Train the lists, fill them in parts, join these on the disk. False when stopped."""
    import faiss
    from faiss.contrib.ondisk import merge_ondisk

    needed = 2 * len(places) * (store.size * 4 + 8)
    if shutil.disk_usage(folder.parent).free < needed:
        said = _("The search index needs %(needed)s GB on the disk of QUORUM_VAR for a while: free some space")
        raise BadInput(said % {"needed": f"{needed / 1e9:.1f}"})
    new = folder.parent / "new"
    shutil.rmtree(new, ignore_errors=True)  # of a process that was killed
    new.mkdir()
    try:
        tell(0, len(places), _("search index"))
        trained = _train_lists(store, places)
        faiss.write_index(trained, str(new / "empty.index"))
        parts = []
        held = max(ROWS, HELD_BYTES // (store.size * 4))
        for begin in range(0, len(places), held):
            part = faiss.read_index(str(new / "empty.index"))
            for at in range(begin, min(begin + held, len(places)), ROWS):
                if stopped():
                    return False
                rows = store.rows(places[at : min(at + ROWS, begin + held)])
                part.add_with_ids(np.ascontiguousarray(rows), np.arange(at, at + len(rows), dtype=np.int64))
                tell(at + len(rows), len(places), _("search index"))
            parts.append(str(new / f"part-{begin}.index"))
            faiss.write_index(part, parts[-1])
        merge_ondisk(trained, parts, str(new / "lists.ivfdata"))
        faiss.write_index(trained, str(new / "lists.index"))
        for name in (*parts, str(new / "empty.index")):
            Path(name).unlink()
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return True


def _train_lists(store: Store, places: Places) -> Any:
    """Return an index without vectors, its lists found on a sample of the collection."""
    import faiss

    sampled = max(1, min(len(places), HELD_BYTES // (store.size * 4)))
    lists = max(1, min(int(4 * len(places) ** 0.5), sampled // PER_LIST))
    chosen = places[(np.arange(sampled) * (len(places) / sampled)).astype(np.int64)]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(store.size), store.size, lists, faiss.METRIC_INNER_PRODUCT)
    index.cp.spherical = True
    index.train(np.ascontiguousarray(store.rows(np.sort(chosen))))
    return index


def _remove_old_indexes(newest: Path) -> None:
    """Remove what a collection that changed, or is gone, has left."""
    found = [one for one in newest.parent.glob("*-*") if one.is_dir()]
    known = set(Collection.objects.values_list("pk", flat=True))
    of_same = newest.name.partition("-")[0]
    same = [one for one in found if one.name.partition("-")[0] == of_same]
    same.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    gone = [one for one in found if int(one.name.partition("-")[0]) not in known]
    for one in [*same[KEPT:], *gone]:
        shutil.rmtree(one, ignore_errors=True)


def keep_facts(run: Run, search: VectorSearcher) -> None:
    """Store what a run's page says of its search, where that changed."""
    facts = search.facts()
    if facts and run.search != facts:
        run.search = facts
        Run.objects.filter(pk=run.pk).update(search=facts)
