"""`retrieve NAME --model FOLDER` with a sparse encoder (SPLADE): the library's order, by hand, resumed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the training extra: make install-training")

from scipy.sparse import csr_array  # noqa: E402
from sentence_transformers import SparseEncoder  # noqa: E402
from transformers import AutoModelForMaskedLM, AutoTokenizer  # noqa: E402

from benchmark.models import Run  # noqa: E402
from benchmark.runs import rankings, sparse  # noqa: E402
from benchmark.runs.vectors import text_digest  # noqa: E402
from corpus.errors import BadInput  # noqa: E402
from judges.records import Judge  # noqa: E402
from tests.called import call  # noqa: E402
from tests.rankings import make_wings, start_run, work_on  # noqa: E402
from tests.tiny_models import sparse_encoder, tiny  # noqa: E402

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = ["A wing has lift.", "Heat flows through a plate.", "A list holds names.", "The boundary layer is thin."]
QUERIES = ["wing lift", "heated plate", "names"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sparse_encoder(tmp_path_factory.mktemp("splade"))


@pytest.fixture
def wings(tmp_path: Path, settings: Any) -> Any:
    settings.VAR = tmp_path / "var"
    return make_wings(TEXTS, QUERIES)


def weights_by_hand(model: Path, text: str) -> Any:
    """SPLADE: of each word the largest log(1 + relu(logit)) over the text's tokens (Formal et al. 2021)."""
    tokens = AutoTokenizer.from_pretrained(model)(text, return_tensors="pt")
    with torch.inference_mode():
        logits = AutoModelForMaskedLM.from_pretrained(model)(**tokens).logits[0]
    return torch.log1p(torch.relu(logits)).max(dim=0).values


def test_a_pairs_score_is_the_product_of_weights_computed_by_hand(model: Path, wings: Any) -> None:
    score = rankings.as_run(work_on(start_run(wings, "sparse", model=str(model))))["q0"]["d0"]
    query, document = weights_by_hand(model, QUERIES[0]), weights_by_hand(model, TEXTS[0])
    assert 0 < int((document > 0).sum()) < len(document) / 2, "these weights are not sparse: the test says nothing"
    assert score == pytest.approx(float(query @ document), rel=1e-4) and score > 0


@pytest.mark.slow
def test_the_run_is_the_librarys_order(model: Path, wings: Any) -> None:
    done = call("retrieve", "wings", "--model", model, "--depth", "3", "--batch-size", "1")
    assert done.code == 0, done.err
    run = work_on(Run.objects.get(name="sparse-model"))
    assert (run.kind, run.state, run.error, run.recipe["batch_size"]) == ("sparse", "ready", "", 1)
    theirs = SparseEncoder(str(model), device="cpu")
    queries, documents = (
        encode(texts, convert_to_sparse_tensor=False)
        for encode, texts in ((theirs.encode_query, QUERIES), (theirs.encode_document, TEXTS))
    )
    wanted = theirs.similarity(queries, documents).numpy()
    for place, scores in enumerate(wanted):
        found = rankings.as_run(run)[f"q{place}"]
        best = sorted(range(4), key=lambda at, scores=scores: -scores[at])[:3]
        assert list(found) == [f"d{at}" for at in best]
        assert list(found.values()) == pytest.approx([scores[at] for at in best], rel=1e-4)


def test_a_stopped_run_goes_on_with_the_weights_that_are_there(
    model: Path, wings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse.SparseSearch, "ahead", 2)
    run = start_run(wings, "sparse", "sparse", model=str(model))
    asked = iter([False, True])
    assert not rankings.as_run(work_on(run, lambda: next(asked, True)))
    counts: list[int] = []
    add = sparse.SparseSearch.add
    monkeypatch.setattr(sparse.SparseSearch, "add", lambda self, texts: counts.append(len(texts)) or add(self, texts))
    assert work_on(run).state == "ready" and counts == [2]  # The other two documents.
    assert len(rankings.as_run(run)) == 3


def test_weights_that_a_kill_left_half_are_cut_away_and_a_shared_term_is_needed(tmp_path: Path) -> None:
    def opened() -> sparse.SparseStore:
        return sparse.SparseStore(tmp_path, Judge(name="m", provider="sparse-folder", model="w", id=0))

    def digests(*texts: str) -> list[bytes]:
        return [text_digest(text) for text in texts]

    first = csr_array(np.array([[0, 2, 0, 1], [0, 0, 0, 0]], dtype=np.float32))
    opened().add(digests("a", "empty"), first)
    for name in ("terms", "weights", "ends"):  # Written, and killed before their hash.
        with (opened().folder / name).open("ab") as file:
            file.write(b"\1" * 24)
    store = opened()
    assert len(store) == 2
    store.add(digests("a", "b"), csr_array(np.array([[9, 9, 9, 9], [3, 0, 0, 5]], dtype=np.float32)))
    again = opened()
    rows = again.rows(again.find(digests("b", "empty", "a"))).toarray()
    assert rows.tolist() == [[3, 0, 0, 5], [0, 0, 0, 0], [0, 2, 0, 1]]
    assert again.rows(again.find(digests("empty"))).toarray().tolist() == [[0, 0, 0, 0]]
    with pytest.raises(BadInput, match="3 numbers and returned 4"):
        again.add(digests("c"), csr_array(np.ones((1, 3), dtype=np.float32)))

    class Encoder:
        def encode_queries(self, texts: Any) -> Any:
            return csr_array(np.array([[1, 0, 0, 0]], dtype=np.float32))

    search = sparse.SparseSearch.__new__(sparse.SparseSearch)
    search.store, search.model, search.keys = again, Encoder(), np.array([7, 8, 9])  # type: ignore[assignment]
    search.positions = again.find(digests("a", "b", "empty"))
    ((keys, scores),) = search.rank_texts(["q"], [3])
    assert (keys.tolist(), scores.tolist()) == ([8], [3.0])


def test_what_is_no_sparse_encoder_is_refused_in_one_line(model: Path, wings: Any, tmp_path: Path) -> None:
    reranker = tiny(tmp_path / "reranker", "qwen3")[0]
    refused = call("retrieve", "wings", "--system", "sparse", "--model", reranker)
    assert refused.code == 2 and refused.err.startswith("--model: ") and "not the folder" in refused.err
    assert not Run.objects.exists()


def test_a_batch_that_memory_does_not_hold_is_halved(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from training.published import sparse as serving

    opened = serving.open_sparse_encoder(model, "cpu", 4)
    wanted, sizes, encode = opened.encode_documents(TEXTS).toarray(), list[int](), opened.model.encode_document

    def short(texts: Any, *, batch_size: int, **options: Any) -> Any:
        sizes.append(batch_size)
        if batch_size > most:
            raise RuntimeError("CUDA error: out of memory")
        return encode(texts, batch_size=batch_size, **options)

    monkeypatch.setattr(opened.model, "encode_document", short)
    most = 1
    assert np.allclose(opened.encode_documents(TEXTS).toarray(), wanted, atol=1e-5) and sizes == [4, 2, 1]
    most = 0
    with pytest.raises(BadInput, match="more memory"):
        opened.encode_documents(TEXTS)
