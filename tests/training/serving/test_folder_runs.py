"""`retrieve NAME --model FOLDER`: embedding models, sparse encoders (SPLADE), monoT5, as their libraries; resumed."""

import json
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the training extra: make install-training")

import torch
from django.urls import reverse
from scipy.sparse import csr_array
from sentence_transformers import SentenceTransformer, SparseEncoder
from transformers import AutoModelForMaskedLM, AutoTokenizer, T5ForConditionalGeneration

from annotation.models import Role
from benchmark.models import Run
from benchmark.runs import embedding, rankings, sparse
from benchmark.runs.vectors import text_digest
from corpus.errors import BadInput
from judges.records import Judge
from tests.called import call
from tests.factories import client_of, make_member
from tests.rankings import make_run, make_wings, start_run, work_on
from tests.tiny_models import seq2seq, sparse_encoder, tiny
from training.published.opening import open_scorer
from training.published.protocol import ServingRequest
from training.published.scorer import check_prompt
from training.published.sparse import open_sparse_encoder
from training.recipes.table import recipe_options
from training.trainers.rtriever import load_embedder

TEXTS = ["A wing has lift.", "Heat flows through a plate.", "A list holds names.", "The boundary layer is thin."]
QUERIES = ["wing lift", "heated plate", "names"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of sentence-transformers, with a prompt for queries."""
    folder = tmp_path_factory.mktemp("embedder")
    base = tiny(folder / "base", "qwen3")[0]
    options: Any = recipe_options("rtriever", {"preset": "tiny"})
    load_embedder(base, options, "cpu").save_pretrained(str(folder / "model"), create_model_card=False)
    return folder / "model"


@pytest.fixture
def wings(transactional_db: None, tmp_path: Path, settings: Any) -> Any:
    settings.VAR = tmp_path / "var"
    return make_wings(TEXTS, QUERIES)


def check_order(run: Run, wanted: Any, **tolerance: float) -> None:
    """The three best of each query are those of its row of scores."""
    for place, scores in enumerate(wanted):
        ranked = rankings.as_run(run)[f"q{place}"]
        best = sorted(range(4), key=lambda at, scores=scores: -scores[at])[:3]
        assert list(ranked) == [f"d{at}" for at in best]
        assert list(ranked.values()) == pytest.approx([scores[at] for at in best], **tolerance)


@pytest.mark.slow
def test_the_run_is_the_librarys_order_and_evaluate_reads_it(model, wings, tmp_path):
    done = call("retrieve", "wings", "--model", model, "--depth", "3", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out) | {"run": "dense-model", "system": "embedding"} == json.loads(done.out)
    run = work_on(Run.objects.get(name="dense-model"))
    assert run.state == "ready" and run.recipe["query_prefix"].startswith("Instruct: ")
    theirs = SentenceTransformer(str(model))
    check_order(run, theirs.encode(QUERIES, prompt_name="query") @ theirs.encode(TEXTS).T, abs=1e-5)
    path, qrels = tmp_path / "dense.run", tmp_path / "qrels.txt"
    qrels.write_text("q0 0 d0 1\nq1 0 d1 1\nq2 0 d2 1\n")
    assert call("runs", "wings", "export", "dense-model", path).code == 0
    measured = call("evaluate", "--qrels", qrels, "--run", path, "--measures", "nDCG@10", "--json")
    assert measured.code == 0 and json.loads(measured.out)["queries"] == 3


@pytest.mark.slow
def test_a_stopped_run_goes_on_with_the_vectors_that_are_there(model, wings, monkeypatch):
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


def test_what_is_no_embedding_model_is_refused_and_so_is_one_that_changed(model, wings, tmp_path):
    reranker = tiny(tmp_path / "reranker", "qwen3")[0]
    for options, words in (
        ((reranker,), "not the folder"), ((reranker, "--system", "sparse"), "not the folder"),
        ((tmp_path / "nowhere",), "does not exist"),
    ):  # fmt: skip
        refused = call("retrieve", "wings", "--model", *options)
        assert refused.code == 2 and refused.err.startswith("--model: ") and words in refused.err
    assert not Run.objects.exists()
    run = start_run(wings, "embedding", "dense", model=str(model))
    Run.objects.filter(pk=run.pk).update(recipe=run.recipe | {"weights": "0"})
    assert "changed since" in work_on(run).error


@pytest.fixture(scope="module")
def splade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sparse_encoder(tmp_path_factory.mktemp("splade"))


def weights_by_hand(model: Path, text: str) -> Any:
    """SPLADE: of each word the largest log(1 + relu(logit)) over the text's tokens (Formal et al. 2021)."""
    tokens = AutoTokenizer.from_pretrained(model)(text, return_tensors="pt")
    with torch.inference_mode():
        logits = AutoModelForMaskedLM.from_pretrained(model)(**tokens).logits[0]
    return torch.log1p(torch.relu(logits)).max(dim=0).values


def test_a_pairs_score_is_the_product_of_weights_computed_by_hand(splade, wings):
    score = rankings.as_run(work_on(start_run(wings, "sparse", model=str(splade))))["q0"]["d0"]
    query, document = weights_by_hand(splade, QUERIES[0]), weights_by_hand(splade, TEXTS[0])
    assert 0 < int((document > 0).sum()) < len(document) / 2, "these weights are not sparse: the test says nothing"
    assert score == pytest.approx(float(query @ document), rel=1e-4) and score > 0


@pytest.mark.slow
def test_a_sparse_run_is_the_librarys_order(splade, wings):
    done = call("retrieve", "wings", "--model", splade, "--depth", "3", "--batch-size", "1")
    assert done.code == 0, done.err
    run = work_on(Run.objects.get(name="sparse-model"))
    assert (run.kind, run.state, run.error, run.recipe["batch_size"]) == ("sparse", "ready", "", 1)
    theirs = SparseEncoder(str(splade), device="cpu")
    queries, documents = (
        encode(texts, convert_to_sparse_tensor=False)
        for encode, texts in ((theirs.encode_query, QUERIES), (theirs.encode_document, TEXTS))
    )
    check_order(run, theirs.similarity(queries, documents).numpy(), rel=1e-4)


def test_a_stopped_sparse_run_goes_on_with_the_weights_that_are_there(splade, wings, monkeypatch):
    monkeypatch.setattr(sparse.SparseSearch, "ahead", 2)
    run = start_run(wings, "sparse", "sparse", model=str(splade))
    asked = iter([False, True])
    assert not rankings.as_run(work_on(run, lambda: next(asked, True)))
    counts: list[int] = []
    add = sparse.SparseSearch.add
    monkeypatch.setattr(sparse.SparseSearch, "add", lambda self, texts: counts.append(len(texts)) or add(self, texts))
    assert work_on(run).state == "ready" and counts == [2]  # The other two documents.
    assert len(rankings.as_run(run)) == 3


def test_weights_that_a_kill_left_half_are_cut_away_and_a_shared_term_is_needed(tmp_path):
    def opened() -> sparse.SparseStore:
        return sparse.SparseStore(tmp_path, Judge(name="m", provider="sparse-folder", model="w", id=0))

    def digests(*texts: str) -> list[bytes]:
        return [*map(text_digest, texts)]

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


def test_a_batch_that_memory_does_not_hold_is_halved(splade, monkeypatch):
    opened = open_sparse_encoder(splade, "cpu", 4)
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


WORDS = ["a wing has lift", "heat flows through a plate", "a plate has names"]


@pytest.fixture(scope="module")
def mono(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return seq2seq(tmp_path_factory.mktemp("t5") / "mono")


@pytest.fixture
def ranked_wings(transactional_db: None) -> Any:
    wings = make_wings(WORDS, ["wing lift", "names"])
    make_run(wings, "first", {"q0": ["d2", "d1", "d0"], "q1": ["d0", "d1", "d2"]})
    return wings


def probability_by_hand(model: Path, query: str, document: str, words: tuple[str, str]) -> float:
    """Softmax over two words of the vocabulary, of what the decoder would write first."""
    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    ids = tokenizer(f"Query: {query} Document: {document} Relevant:", return_tensors="pt")
    assert ids["input_ids"][0, -1] == tokenizer.eos_token_id
    start = torch.tensor([[tokenizer.pad_token_id]])  # T5's decoder begins with it.
    with torch.inference_mode():
        logits = T5ForConditionalGeneration.from_pretrained(model)(**ids, decoder_input_ids=start).logits[0, 0]
    true, false = (tokenizer.convert_tokens_to_ids(word) for word in words)
    return float(torch.softmax(logits[[true, false]], dim=0)[0])


@pytest.mark.parametrize(("prompt", "words"), [("monot5", ("true", "false")), ("mmonot5", ("yes", "no"))])
def test_the_margins_sigmoid_is_p_true_by_hand(mono, prompt, words):
    scorer = open_scorer(mono, prompt=prompt)
    margins = scorer.margins("wing lift", WORDS)
    by_hand = [probability_by_hand(mono, "wing lift", text, words) for text in WORDS]
    assert [1 / (1 + exp(-one)) for one in margins] == pytest.approx(by_hand, abs=1e-6)
    assert len({round(one, 6) for one in by_hand}) == 3, "all pairs score alike: the test says nothing"
    assert scorer.margins("wing lift", WORDS, together=2) == pytest.approx(margins, abs=1e-5)


def test_a_long_document_loses_its_end_and_without_its_prompt_the_model_is_refused(mono, tmp_path):
    scorer = open_scorer(mono, prompt="monot5")
    short, long = scorer.encode(ServingRequest("wing", [WORDS[0], "heat " * 600]))
    assert (short.is_cut, long.is_cut, len(long.ids)) == (False, True, 512)
    assert long.ids[-3:] == short.ids[-3:]  # "Relevant", ":" and the end.
    with pytest.raises(BadInput, match=r"sequence-to-sequence .* mmonot5"):
        open_scorer(mono)
    with pytest.raises(BadInput, match="monot5 or mmonot5"):
        open_scorer(mono, prompt="prism")
    causal = tiny(tmp_path / "causal", "qwen3")[0]
    with pytest.raises(BadInput, match=r"causal .* quorum: "):
        check_prompt(causal, "monot5")


def test_the_rerank_command_scores_in_batches(mono, ranked_wings, tmp_path):
    ranking, out = tmp_path / "first.run", tmp_path / "out.run"
    ranking.write_text("".join(f"q0 Q0 d{place} {place + 1} {3 - place} x\n" for place in range(3)))
    given = ("rerank", "--model", mono, "--run", ranking, "--collection", "wings", "--out", out)
    assert "monot5 or mmonot5" in call(*given).err
    assert call(*given, "--prompt", "monot5", "--batch-size", "0").code == 2
    done = call(*given, "--prompt", "monot5", "--batch-size", "2")
    assert done.code == 0, done.err
    found = {line.split()[2]: float(line.split()[4]) for line in out.read_text().splitlines()}
    wanted = open_scorer(mono, prompt="monot5").margins("wing lift", WORDS)
    assert [found[f"d{place}"] for place in range(3)] == pytest.approx(wanted, abs=1e-4)


def test_a_run_is_reranked_stopped_and_continued(mono, ranked_wings):
    given = ("retrieve", "wings", "--run", "first", "--model", mono)
    assert "monot5 or mmonot5" in call(*given).err and Run.objects.count() == 1
    done = call(*given, "--prompt", "monot5", "--top", "2", "--batch-size", "1")
    assert done.code == 0, done.err
    run = Run.objects.get(name="first+mono")
    asked = iter([False, True])
    assert len(rankings.as_run(work_on(run, lambda: next(asked, True)))) == 1, "it was not stopped between two queries"
    kept = rankings.as_run(run)["q0"]
    run = work_on(run)
    assert (run.kind, run.state, run.error) == ("rerank-folder", "ready", "")
    found, scorer = rankings.as_run(run), open_scorer(mono, prompt="monot5")
    assert found["q0"] == kept and set(found["q0"]) == {"d2", "d1"} and set(found["q1"]) == {"d0", "d1"}
    wanted = scorer.margins("wing lift", [WORDS[2], WORDS[1]])
    assert [kept["d2"], kept["d1"]] == pytest.approx(wanted, abs=1e-5)
    assert "already has a run" in call(*given, "--prompt", "mmonot5").err


def test_the_page_offers_what_lies_among_the_base_models(mono, ranked_wings, tmp_path, settings):
    client = client_of(make_member(ranked_wings, "alice", Role.ADMIN))
    address, settings.BASE_MODELS = reverse("make_run", args=["wings"]), tmp_path / "bases"
    assert "No model folder" in client.get(address, {"type": "sparse"}).content.decode()
    seq2seq(settings.BASE_MODELS / "mono")
    sparse_encoder(tmp_path / "made").rename(settings.BASE_MODELS / "splade")
    for kind, offered, other in (("sparse", "splade", "mono"), ("rerank-folder", "mono", "splade")):
        page = client.get(address, {"type": kind}).content.decode()
        assert f'<option value="{offered}">' in page and f'<option value="{other}">' not in page
    common = {"depth": 3, "batch_size": 2, "run": "first", "top": 2, "model": "mono"}
    refused = client.post(f"{address}?type=rerank-folder", {**common, "name": "a"})
    assert refused.status_code == 422 and "monot5 or mmonot5" in refused.content.decode()
    elsewhere = client.post(f"{address}?type=sparse", {"name": "b", "depth": 3, "batch_size": 2, "model": "../x"})
    assert elsewhere.status_code == 422 and Run.objects.count() == 1
    made = client.post(f"{address}?type=rerank-folder", {**common, "name": "a", "prompt": "monot5"})
    assert made.status_code == 302 and work_on(Run.objects.get(name="a")).state == "ready"
    made = client.post(f"{address}?type=sparse", {"name": "b", "depth": 3, "batch_size": 2, "model": "splade"})
    assert made.status_code == 302 and Run.objects.get(name="b").recipe["model"].endswith("bases/splade")
