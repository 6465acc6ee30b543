"""`retrieve NAME --model FOLDER`: a run by an embedding model of a folder, stopped and continued."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the training extra: make install-training")

from sentence_transformers import SentenceTransformer  # noqa: E402

from benchmark.models import Run  # noqa: E402
from benchmark.runs import embedding, rankings  # noqa: E402
from tests.called import call  # noqa: E402
from tests.rankings import make_wings, start_run, work_on  # noqa: E402
from tests.tiny_models import tiny  # noqa: E402
from training.recipes.table import recipe_options  # noqa: E402
from training.trainers.rtriever import load_embedder  # noqa: E402

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = ["A wing has lift.", "Heat flows through a plate.", "A list holds names.", "The boundary layer is thin."]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of sentence-transformers, with a prompt for queries."""
    folder = tmp_path_factory.mktemp("embedder")
    base = tiny(folder / "base", "qwen3")[0]
    options: Any = recipe_options("rtriever", {"preset": "tiny"})
    load_embedder(base, options, "cpu").save_pretrained(str(folder / "model"), create_model_card=False)
    return folder / "model"


@pytest.fixture
def wings(tmp_path: Path, settings: Any) -> Any:
    settings.VAR = tmp_path / "var"
    return make_wings(TEXTS, ["wing lift", "heated plate", "names"])


@pytest.mark.slow
def test_the_run_is_the_librarys_order_and_evaluate_reads_it(model: Path, wings: Any, tmp_path: Path) -> None:
    done = call("retrieve", "wings", "--model", model, "--depth", "3", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out) | {"run": "dense-model", "system": "embedding"} == json.loads(done.out)
    run = work_on(Run.objects.get(name="dense-model"))
    assert run.state == "ready" and run.recipe["query_prefix"].startswith("Instruct: ")
    theirs = SentenceTransformer(str(model))
    queries = theirs.encode(["wing lift", "heated plate", "names"], prompt_name="query")
    wanted = queries @ theirs.encode(TEXTS).T
    for place, scores in enumerate(wanted):
        found = rankings.as_run(run)[f"q{place}"]
        best = sorted(range(4), key=lambda at, scores=scores: -scores[at])[:3]
        assert list(found) == [f"d{at}" for at in best]
        assert list(found.values()) == pytest.approx([scores[at] for at in best], abs=1e-5)
    path, qrels = tmp_path / "dense.run", tmp_path / "qrels.txt"
    qrels.write_text("q0 0 d0 1\nq1 0 d1 1\nq2 0 d2 1\n")
    assert call("runs", "wings", "export", "dense-model", path).code == 0
    measured = call("evaluate", "--qrels", qrels, "--run", path, "--measures", "nDCG@10", "--json")
    assert measured.code == 0 and json.loads(measured.out)["queries"] == 3


@pytest.mark.slow
def test_a_stopped_run_goes_on_with_the_vectors_that_are_there(
    model: Path, wings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding.FolderSearch, "ahead", 2)
    run = start_run(wings, "embedding", "dense", model=str(model))
    asked = iter([False, True, True, True])
    assert not rankings.as_run(work_on(run, lambda: next(asked, True)))
    counts: list[int] = []
    opened = embedding.FolderSearch.__init__

    def count(self: Any, recipe: Any) -> None:
        opened(self, recipe)
        encode = self.model.encode
        self.model.encode = lambda texts: counts.append(len(texts)) or encode(texts)

    monkeypatch.setattr(embedding.FolderSearch, "__init__", count)
    assert work_on(run).state == "ready" and counts == [2, 3]  # The other two documents, and the queries.
    assert len(rankings.as_run(run)) == 3


def test_what_is_no_embedding_model_is_refused_and_so_is_one_that_changed(
    model: Path, wings: Any, tmp_path: Path
) -> None:
    reranker = tiny(tmp_path / "reranker", "qwen3")[0]
    refused = call("retrieve", "wings", "--model", reranker)
    assert refused.code == 2 and refused.err.startswith("--model: ") and "not the folder" in refused.err
    missing = call("retrieve", "wings", "--model", tmp_path / "nowhere")
    assert missing.code == 2 and missing.err.startswith("--model: ") and "does not exist" in missing.err
    run = start_run(wings, "embedding", "dense", model=str(model))
    Run.objects.filter(pk=run.pk).update(recipe=run.recipe | {"weights": "0"})
    assert "changed since" in work_on(run).error
