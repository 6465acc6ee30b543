"""Search among many vectors by an index in a memory-mapped file: faiss's inverted lists (docs/adr/0032).

Up to LARGEST_EXACT documents every vector is compared. Above that, only the vectors in the lists
nearest to the query are; the number of lists follows from the recall against an exact search,
measured on the first queries.
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
from benchmark.runs.builders import Progress, ShouldStop
from benchmark.runs.vectors import NearestDocuments, Positions, Store, Vectors, nearest_vectors
from corpus.errors import BadInput
from corpus.models import Collection

LARGEST_EXACT = 200_000  # The most documents that are searched exactly.
RECALL = 0.99  # Mean recall against an exact search; lists are added until it is reached.
SAMPLED = 50  # Queries on which the recall is measured.
FIRST_PROBED = 8  # Lists that are searched for a query at first.
HELD_BYTES = 1 << 28  # Vectors in memory while lists are trained or filled.
ROWS = 8192  # Vectors added at once.
PER_LIST = 39  # Vectors per list that faiss needs for training.
INDEXES_KEPT = 2  # Indexes per collection and model: two runs may have different prefixes of documents.
TIE = 1e-5  # Scores that differ by less are equal, except for the order of summation.
VERSION = 1


@dataclass(slots=True)
class ExactSearch:
    """A search that compares all vectors. `rows(begin, end)` returns them in the order of the documents."""

    documents: int
    rows: Callable[[int, int], Vectors]
    measuring_s: float = 0.0

    def search(self, queries: Vectors, depths: Sequence[int]) -> list[NearestDocuments]:
        """Return positions and scores of each query's nearest documents, best first."""
        return nearest_vectors(queries, self.documents, self.rows, depths)

    def facts(self) -> dict[str, Any]:
        """Return the facts for a run's page: none."""
        return {}


class IndexedSearch:
    """A search in the lists nearest to each query; their number is chosen for RECALL on the first queries."""

    def __init__(self, index: Any, exact: ExactSearch, probed: int = FIRST_PROBED) -> None:
        self.index, self.exact = index, exact
        self.lists = int(index.nlist)
        self.probed = min(probed, self.lists)
        self.recalls: list[float] = []
        self.depth = 0
        self.measuring_s = 0.0

    def search(self, queries: Vectors, depths: Sequence[int]) -> list[NearestDocuments]:
        """Return positions and scores of each query's nearest documents, best first."""
        started_at = perf_counter()
        if (missing_count := SAMPLED - len(self.recalls)) > 0:
            self._measure(queries[:missing_count], depths[:missing_count])
        self.measuring_s += perf_counter() - started_at
        return self._probe(queries, depths)

    def _probe(self, queries: Vectors, depths: Sequence[int]) -> list[NearestDocuments]:
        import faiss

        parameters = faiss.SearchParametersIVF()
        parameters.nprobe = self.probed
        largest_depth = min(max(depths), self.exact.documents)
        scores, positions = self.index.search(
            np.ascontiguousarray(queries, dtype=np.float32), largest_depth, params=parameters
        )
        results = []
        for own_scores, own_positions, depth in zip(scores, positions, depths, strict=True):
            is_filled = own_positions >= 0  # The searched lists may contain fewer documents.
            found_scores, found_positions = own_scores[is_filled], own_positions[is_filled].astype(np.int64)
            order = np.lexsort((found_positions, -found_scores))[:depth]
            results.append((found_positions[order], found_scores[order]))
        return results

    def _measure(self, queries: Vectors, depths: Sequence[int]) -> None:
        """Compare with an exact search, and search more lists until RECALL is reached."""
        exact_results = self.exact.search(queries, depths)
        while True:
            recalls = list(self.recalls)
            results = self._probe(queries, depths)
            for (_exact_positions, exact_scores), (_positions, scores) in zip(exact_results, results, strict=True):
                # Of documents with the same score as the last exact one, any counts.
                share = (scores >= exact_scores[-1] - TIE).sum() / len(exact_scores) if len(exact_scores) else 1.0
                recalls.append(float(share))
            if float(np.mean(recalls)) >= RECALL or self.probed >= self.lists:
                break
            self.probed = min(2 * self.probed, self.lists)
        self.recalls, self.depth = recalls, max(self.depth, *depths)

    def facts(self) -> dict[str, Any]:
        """Return the facts for a run's page."""
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
    store: Store,
    positions: Positions,
    collection: Collection,
    probed: int | None,
    progress: Progress,
    should_stop: ShouldStop,
) -> VectorSearcher | None:
    """Return a search over the vectors at `positions`, one per document; None when the work was stopped.

    `probed`: the number of lists that the same run searched before.
    """
    exact = ExactSearch(len(positions), lambda begin, end: store.rows(positions[begin:end]))
    if len(positions) <= LARGEST_EXACT:
        return exact
    import faiss  # loads libraries that small collections do not need

    # Folders whose names begin with a dot are neither backed up nor published.
    digest = sha256(f"{VERSION} {store.size} ".encode() + positions.tobytes()).hexdigest()[:20]
    folder = store.folder / ".indexes" / f"{collection.pk}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        # One process builds the index; the others wait and open it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists() and not _build_index(folder, store, positions, progress, should_stop):
            return None
        os.utime(folder)
        # Remove indexes of earlier versions of the collection, and of deleted collections.
        folders = [path for path in folder.parent.glob("*-*") if path.is_dir()]
        same_collection = [path for path in folders if path.name.partition("-")[0] == str(collection.pk)]
        same_collection.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        collection_keys = set(Collection.objects.values_list("pk", flat=True))
        orphans = [path for path in folders if int(path.name.partition("-")[0]) not in collection_keys]
        for path in [*same_collection[INDEXES_KEPT:], *orphans]:
            shutil.rmtree(path, ignore_errors=True)
    flags = faiss.IO_FLAG_ONDISK_SAME_DIR | faiss.IO_FLAG_READ_ONLY
    index = faiss.read_index(str(folder / "lists.index"), flags)
    return IndexedSearch(index, exact, probed or FIRST_PROBED)


def _build_index(folder: Path, store: Store, positions: Positions, progress: Progress, should_stop: ShouldStop) -> bool:
    """Train the lists, fill them in parts, and join the parts on the disk. Return False when stopped."""
    import faiss
    from faiss.contrib.ondisk import merge_ondisk

    needed_bytes = 2 * len(positions) * (store.size * 4 + 8)
    if shutil.disk_usage(folder.parent).free < needed_bytes:
        message = _("The search index needs %(needed)s GB on the disk of QUORUM_VAR for a while: free some space")
        raise BadInput(message % {"needed": f"{needed_bytes / 1e9:.1f}"})
    new_folder = folder.parent / "new"
    shutil.rmtree(new_folder, ignore_errors=True)  # Left by a process that was killed.
    new_folder.mkdir()
    try:
        progress(0, len(positions), _("search index"))
        # The lists are trained on a sample of the collection.
        sample_size = max(1, min(len(positions), HELD_BYTES // (store.size * 4)))
        sample = positions[(np.arange(sample_size) * (len(positions) / sample_size)).astype(np.int64)]
        lists = max(1, min(int(4 * len(positions) ** 0.5), sample_size // PER_LIST))
        quantizer = faiss.IndexFlatIP(store.size)
        empty_index: Any = faiss.IndexIVFFlat(quantizer, store.size, lists, faiss.METRIC_INNER_PRODUCT)
        empty_index.cp.spherical = True
        empty_index.train(np.ascontiguousarray(store.rows(np.sort(sample))))
        faiss.write_index(empty_index, str(new_folder / "empty.index"))
        parts = []
        rows_per_part = max(ROWS, HELD_BYTES // (store.size * 4))
        for begin in range(0, len(positions), rows_per_part):
            part = faiss.read_index(str(new_folder / "empty.index"))
            for start in range(begin, min(begin + rows_per_part, len(positions)), ROWS):
                if should_stop():
                    return False
                rows = store.rows(positions[start : min(start + ROWS, begin + rows_per_part)])
                part.add_with_ids(np.ascontiguousarray(rows), np.arange(start, start + len(rows), dtype=np.int64))
                progress(start + len(rows), len(positions), _("search index"))
            parts.append(str(new_folder / f"part-{begin}.index"))
            faiss.write_index(part, parts[-1])
        merge_ondisk(empty_index, parts, str(new_folder / "lists.ivfdata"))
        faiss.write_index(empty_index, str(new_folder / "lists.index"))
        for name in (*parts, str(new_folder / "empty.index")):
            Path(name).unlink()
        new_folder.rename(folder)
    finally:
        shutil.rmtree(new_folder, ignore_errors=True)
    return True


def keep_facts(run: Run, search: VectorSearcher) -> None:
    """Store the facts of a run's search, if they changed."""
    facts = search.facts()
    if facts and run.search != facts:
        run.search = facts
        Run.objects.filter(pk=run.pk).update(search=facts)
