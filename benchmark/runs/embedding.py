"""Runs by an embedding model in a folder: its vectors, kept in VAR, are searched exactly (RTriever 5.2).

settings.LOCAL_EMBEDDERS, a module of the app above, opens the model. Vectors are kept by the hash of its weights.
"""

from collections.abc import Mapping, Sequence
from hashlib import file_digest, sha256
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from django.conf import settings
from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs.builders import Stopped, Tell
from benchmark.runs.dense import AHEAD, SEARCHED, document_keys, texts_of
from benchmark.runs.rankings import RankedQuery
from benchmark.runs.vectors import Found, Places, Store, Vectors, nearest_vectors, text_digest
from corpus.errors import BadInput
from corpus.models import Collection, Query
from judges.records import Judge

KEYS = ("model", "query_prefix", "document_prefix", "device")


class TextEncoder(Protocol):
    """A model that turns texts into vectors."""

    def encode(self, texts: Sequence[str]) -> tuple[Vectors, int]:
        """Return vectors (n, size), and how many tokens were read."""


def check(collection: Collection, recipe: dict[str, Any], depth: int) -> dict[str, Any]:
    """`model` (a folder), `query_prefix` (else the model's own), `document_prefix`, `device`. Raises BadInput."""
    if unknown := sorted(recipe.keys() - set(KEYS)):
        values = {"unknown": unknown[0], "known": ", ".join(KEYS)}
        raise BadInput(_("the recipe contains unknown settings: %(unknown)s. Accepted settings: %(known)s") % values)
    folder = Path(str(recipe.get("model") or "")).expanduser().resolve()
    embedders = import_module(settings.LOCAL_EMBEDDERS)
    if not recipe.get("model") or not (folder / "config.json").exists() or not embedders.is_embedder(folder):
        raise BadInput(_("%(folder)s is not the folder of an embedding model") % {"folder": folder})
    return {
        "model": str(folder),
        "weights": hash_weights(folder),
        "query_prefix": str(recipe.get("query_prefix") or embedders.read_query_prefix(folder)),
        "document_prefix": str(recipe.get("document_prefix") or ""),
        "device": str(recipe.get("device") or "cpu"),
    }


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Embed the documents that VAR lacks, then rank the queries that have no ranking yet."""
    folder = Path(run.recipe["model"])
    if hash_weights(folder) != run.recipe["weights"]:
        raise BadInput(_("%(folder)s changed since the run was started: start another run") % {"folder": folder})
    search = FolderSearch(run.recipe)
    if not search.embed_documents(run.collection, progress, stopped):
        return
    left_out = rankings.excluded_documents(run.collection)
    waiting, total = rankings.unranked_queries(run), len(rankings.current_queries(run.collection))
    for at in range(0, len(waiting), SEARCHED):
        if stopped():
            return
        batch = waiting[at : at + SEARCHED]
        progress(total - len(waiting) + at, total, _("searching"))
        rankings.store(run, search.rank(batch, [run.depth + len(left_out.get(query.pk, ())) for query in batch]))
    progress(total, total, _("searching"))


class FolderSearch:
    """An exact search over the vectors of all documents of a collection, by the model of a folder."""

    def __init__(self, recipe: Mapping[str, Any]) -> None:
        self.recipe = recipe
        folder = Path(recipe["model"])
        self.model: TextEncoder = import_module(settings.LOCAL_EMBEDDERS).open_embedder(folder, recipe["device"])
        # Named as a judge's vectors are; what decides them is the weights.
        named = Judge(name=folder.name, provider="folder", model=recipe["weights"], id=0)
        self.store = Store(Path(settings.VAR) / "vectors", named)
        self.keys, self.places = np.empty(0, np.int64), np.empty(0, np.int64)

    def embed_documents(self, collection: Collection, progress: Tell, stopped: Stopped) -> bool:
        """Compute the vectors that VAR lacks. False when the run was stopped meanwhile."""
        self.keys, digests = document_keys(collection), list[bytes]()
        for begin in range(0, len(self.keys), AHEAD):
            if stopped():
                return False
            part = self.keys[begin : begin + AHEAD].tolist()
            known = texts_of(part)
            texts = [self.recipe["document_prefix"] + known[key] for key in part]
            missing = list(dict.fromkeys(text for text in texts if text_digest(text) not in self.store.places))
            if missing:
                self.store.add([text_digest(text) for text in missing], self.model.encode(missing)[0])
            digests += map(text_digest, texts)
            progress(len(digests), len(self.keys), _("document embeddings"))
        self.places = self.store.find(digests)
        return True

    def rank(self, queries: Sequence[Query], depths: Sequence[int]) -> dict[int, RankedQuery]:
        """Rank documents by cosine. The seconds of a batch are shared by its queries."""
        begin = perf_counter()
        found = self.rank_texts([query.text for query in queries], depths)
        seconds = (perf_counter() - begin) / len(queries)
        return {
            query.pk: RankedQuery(documents, scores, seconds)
            for query, (documents, scores) in zip(queries, found, strict=True)
        }

    def rank_texts(self, texts: Sequence[str], depths: Sequence[int]) -> list[Found]:
        """Rank documents (primary keys) for any texts."""
        vectors, _tokens = self.model.encode([self.recipe["query_prefix"] + text for text in texts])
        found = nearest_vectors(vectors, len(self.keys), self._rows, depths)
        return [(self.keys[places], scores) for places, scores in found]

    def _rows(self, begin: int, end: int) -> Vectors:
        rows: Places = self.places[begin:end]
        return self.store.rows(rows)


def hash_weights(folder: Path) -> str:
    """Return the hash of all files beside the card that decide a model's vectors."""
    digest = sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in (".safetensors", ".bin", ".json") and path.name != "reranker.json":
            with path.open("rb") as file:
                digest.update(f"{path.relative_to(folder)}\0{file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()
