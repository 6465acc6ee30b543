"""Recipe `rtriever` from a set to a published folder, read by the serving code and by sentence-transformers alike."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from sentence_transformers import SentenceTransformer  # noqa: E402

from corpus.errors import BadInput  # noqa: E402
from tests.training.recipes.test_bundles import row, write  # noqa: E402
from tests.training.serving.test_embeddings_service import ask as send  # noqa: E402
from tests.training_sets import ask  # noqa: E402
from training.published.embedder import open_embedder, read_query_prefix  # noqa: E402
from training.published.opening import open_scorer  # noqa: E402
from training.serving.served_model import ServedModel  # noqa: E402
from training.trainers.training import train_model  # noqa: E402

torch.set_num_threads(1)


@pytest.mark.slow
@pytest.mark.parametrize("base", ["tiny:qwen3", "tiny:encoder"])
def test_it_trains_and_publishes_an_embedder_that_both_read_alike(tmp_path: Path, base: str) -> None:
    rows = write(tmp_path / "set", [row(n) for n in range(20)], tuple(row(n) for n in range(100, 104)))
    out = tmp_path / "out"
    found = train_model(ask(tmp_path, "rtriever", rows, base, epochs=2, batch=8), lambda: False)
    assert found["merge_difference"] < 1e-5 and found["loss_last"] < found["loss_first"]
    texts, prefix = ["a question", "another one " * 200], read_query_prefix(out)
    assert bool(prefix) == (base == "tiny:qwen3")
    ours, _ = open_embedder(out).encode([prefix + text for text in texts])
    theirs = SentenceTransformer(str(out)).encode(texts, prompt_name="query")
    assert ours == pytest.approx(theirs, abs=1e-5)
    body = {"input": [prefix + text for text in texts]}
    status, answer = send(ServedModel("out", open_embedder(out)), body)
    assert status == 200 and [one["embedding"] for one in answer["data"]] == pytest.approx(theirs, abs=1e-5)
    with pytest.raises(BadInput, match=r"out .* embedding model"):
        open_scorer(out)
    card = (out / "README.md").read_text()
    assert "An embedding model" in card and "CrossEncoder" not in card
