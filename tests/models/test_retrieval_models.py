"""A real embedding model over Cranfield: `retrieve --model DIR` ranks as its library does, also after a stop."""

from typing import Any

import ir_measures
import numpy as np
import pytest
from ir_measures import R, nDCG

pytest.importorskip("torch", reason="needs the training extra: make install-training")

from sentence_transformers import SentenceTransformer

from benchmark.runs import rankings
from benchmark.runs.embedding import FolderSearch
from benchmark.runs.vectors import text_digest
from corpus.importing.options import ImportOptions
from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Collection, Document, Query
from tests.benchmark.runs.test_static_runs import CRANFIELD
from tests.rankings import start_run, work_on

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not CRANFIELD.is_dir(), reason="shared/data/cranfield is not beside the checkout: 1 test not run"
    ),
]
COMPARED = 150  # Documents whose vectors are computed with the library, too.


def import_cranfield() -> tuple[Collection, dict[str, dict[str, int]]]:
    """Import Cranfield's texts; return the collection and the qrels, without grades below 0."""
    sources = {"corpus": [CRANFIELD / "cran.all.1400.xml"], "queries": [CRANFIELD / "cran.qry.xml"]}
    options = ImportOptions(query_ids="position", empty="keep")
    import_collection("cranfield", ImportFiles(**sources, options=options))
    qrels: dict[str, dict[str, int]] = {}
    for line in (CRANFIELD / "cranqrel.trec.txt").read_text().splitlines():
        query, _iteration, document, grade = line.split()
        qrels.setdefault(query, {})[document] = max(int(grade), 0)
    return Collection.objects.get(name="cranfield"), qrels


@pytest.mark.weekly
def test_minilm_over_cranfield(minilm_folder, settings, tmp_path, monkeypatch):
    """A script that joins title and text by a full stop has nDCG@10 0.402, R@100 0.779; fused with BM25 0.429."""
    settings.VAR = tmp_path
    collection, qrels = import_cranfield()
    embedded: list[str] = []
    opened = FolderSearch.__init__

    def count(self: FolderSearch, recipe: Any) -> None:
        opened(self, recipe)
        encode = self.model.encode
        monkeypatch.setattr(self.model, "encode", lambda texts: embedded.extend(texts) or encode(texts))

    monkeypatch.setattr(FolderSearch, "__init__", count)
    run = start_run(collection, "embedding", "minilm", depth=100, model=str(minilm_folder))
    assert not rankings.as_run(work_on(run, lambda: len(embedded) > 300))
    stopped_at = len(embedded)
    assert 300 < stopped_at < 1400
    assert work_on(run).state == "ready"
    queries = list(Query.objects.filter(collection=collection).order_by("pk").values_list("text", flat=True))
    rows = Document.objects.filter(collection=collection).order_by("pk").values_list("title", "text")
    documents = [f"{title}\n{text}" if title else text for title, text in rows]
    assert sorted(embedded) == sorted([*set(documents), *queries]), "no text is embedded twice"

    work_on(start_run(collection, "bm25", "bm25", depth=100))
    work_on(start_run(collection, "hybrid", "rrf", depth=100, method="rrf", runs=("bm25", "minilm")))
    stored = {name: rankings.as_run(collection.runs.get(name=name)) for name in ("minilm", "rrf")}
    figures = {name: ir_measures.calc_aggregate([nDCG @ 10, R @ 100], qrels, run) for name, run in stored.items()}
    assert figures["minilm"][nDCG @ 10] == pytest.approx(0.402, abs=0.01)
    assert figures["minilm"][R @ 100] == pytest.approx(0.779, abs=0.01)
    assert figures["rrf"][nDCG @ 10] == pytest.approx(0.429, abs=0.01)

    library = SentenceTransformer(str(minilm_folder), device="cpu")
    sample = documents[:: len(documents) // COMPARED]
    store = FolderSearch(run.recipe).store
    kept = store.rows(store.find(map(text_digest, sample)))
    assert np.abs(kept - library.encode(sample, normalize_embeddings=True)).max() < 1e-5
    assert sorted(stored["minilm"]) == sorted(Query.objects.values_list("external_id", flat=True))
